/* Contaminated training samples: a simple alternative to a guard (sampler/guard.h). A prior learned from them
 * has some density wherever the wide Gaussian has. */
#pragma once

#include "model/prior/prior.h"

/* Replaces each of the samples theta[d, n], with probability fit->contamination, by a draw from a Gaussian
 * with the samples' mean, independent coordinates and fit->guard_width times the samples' standard
 * deviations. */
Status contaminate(const PriorFit *fit, Samples *samples);

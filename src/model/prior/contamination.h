/* Contaminated training samples: the simple rival of a guard (sampler/guard.h). A prior that is learned from
 * them has some density wherever the wide Gaussian has. */
#pragma once

#include "model/prior/prior.h"

/* Replaces each of the samples theta[d, n], with probability fit->contamination, by one of a Gaussian
 * about the mean of all, with fit->guard_width of their standard deviations and independent coordinates. */
Status contaminate(const PriorFit *fit, Samples *samples);

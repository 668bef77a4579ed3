/* The exact distribution of theta* as a prior of the agent. */
#pragma once

#include "problem/theta.h"

/* Returns whether there is a prior: mixtures and densities have one; finite sets do not. */
bool theta_has_prior(const ThetaSource *source);
/* Creates a mixture as prior_from_mixture does, and a density as a prior that samples and knows its
 * density, and can do nothing else (no chain, no file, no fit). */
Status theta_prior(Arena *memory, const ThetaSource *source, const PriorFit *chain_settings, Prior *out);

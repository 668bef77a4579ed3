/* A mixture fitted to the same samples as a learned prior, to supply what must be known of that prior in
 * closed form. A denoiser corrects it (denoiser_network.h), and a guard uses it to weigh learned priors of
 * both kinds (sampler/guard.h). */
#pragma once

#include "model/prior/prior.h"

/* Sets prior->beside, in the prior's memory, to a mixture of theta = shift + scale z, made from one of z. */
Status prior_beside_scale(Prior *prior, const Mixture *mixture, const double *shift, const double *scale);

/* For a prior whose mixture serves only the guard: one component for every 20 samples, at most
 * BESIDE_COMPONENTS. In more than BESIDE_MOST dimensions there is no mixture, and nothing is done. `part` has
 * mixture_packed_size(d, BESIDE_COMPONENTS) doubles. */
enum { BESIDE_MOST = 64, BESIDE_COMPONENTS = 10 };
Status prior_beside_fit_part(const PriorFit *fit, const Samples *samples, double *part);
double prior_beside_part_cost(int d, double samples);
Status prior_beside_assemble(Prior *prior, const double *part);
Status prior_beside_load(Prior *prior, StoreFile *file); /* does nothing if the file has none */

/* The mixture that is fitted beside a learned prior, to the same samples: what has to be known of the prior
 * in closed form is taken from it. A denoiser corrects it (denoiser_network.h), and a guard weighs both kinds
 * of learned priors by it (sampler/guard.h). */
#pragma once

#include "model/prior/prior.h"

/* Packs a mixture of at most so many components as part of a fit: out[beside_packed_size(d, components)].
 * Unpacks it, not prepared. */
size_t beside_packed_size(int d, int components);
void beside_pack(const Mixture *mixture, double *out);
Status beside_unpack(Arena *memory, int d, const double *values, Mixture *out);

/* Makes prior->beside, in the memory of the prior: a mixture of theta = shift + scale z, from a mixture of
 * z. */
Status beside_scale(Prior *prior, const Mixture *mixture, const double *shift, const double *scale);

/* For a prior that has a mixture for the guard alone: so many components or fewer, one for every 20 samples.
 * In more than BESIDE_MOST dimensions there is none, and nothing is done. `part` has beside_packed_size(d,
 * BESIDE_COMPONENTS). */
enum { BESIDE_MOST = 64, BESIDE_COMPONENTS = 10 };
Status beside_fit_part(const PriorFit *fit, const Samples *samples, double *part);
double beside_part_cost(int d, double samples);
Status beside_assemble(Prior *prior, const double *part);
Status beside_load(Prior *prior, StoreFile *file); /* nothing is done where the file has none */

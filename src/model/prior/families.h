/* Internal to src/model: the registry's list, one line per family of priors. `name` is the name in study
 * files; prior_NAME is the descriptor, defined in the file that the comment names. */
#pragma once

#include "model/prior/prior.h"

#define PRIOR_LIST(ENTRY)                                                                                    \
  ENTRY(gaussian) /* prior_mixture.c */                                                                      \
  ENTRY(mixture) /* prior_mixture.c */                                                                       \
  ENTRY(diffusion) /* prior_diffusion.c */                                                                   \
  ENTRY(denoiser) /* prior_denoiser.c */

#define PRIOR_DECLARE(name) extern const PriorOps prior_##name;
PRIOR_LIST(PRIOR_DECLARE)
#undef PRIOR_DECLARE

/* Creates the prior of a mixture as prior_from_mixture does, but for its chain, which the caller has
 * (prior_mixture.c). */
Status prior_from_mixture_without_chain(Arena *memory, const Mixture *mixture, Prior *out);

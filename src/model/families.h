/* Internal to src/model: the registries' lists, one line for each prior and each likelihood. `name` is the
 * name in study files; prior_NAME and likelihood_NAME are the descriptors, defined in the file that the
 * comment names. */
#ifndef MODEL_FAMILIES_H
#define MODEL_FAMILIES_H

#include "model/likelihood.h"
#include "model/prior.h"

#define PRIOR_LIST(ENTRY)                                                                                    \
  ENTRY(gaussian) /* prior_mixture.c */                                                                      \
  ENTRY(mixture) /* prior_mixture.c */                                                                       \
  ENTRY(diffusion) /* prior_diffusion.c */                                                                   \
  ENTRY(denoiser) /* prior_denoiser.c */

#define LIKELIHOOD_LIST(ENTRY)                                                                               \
  ENTRY(gaussian) /* likelihood.c */                                                                         \
  ENTRY(logistic) /* likelihood.c */                                                                         \
  ENTRY(poisson) /* likelihood.c */

#define PRIOR_DECLARE(name) extern const PriorOps prior_##name;
#define LIKELIHOOD_DECLARE(name) extern const LikelihoodOps likelihood_##name;
PRIOR_LIST(PRIOR_DECLARE)
LIKELIHOOD_LIST(LIKELIHOOD_DECLARE)
#undef PRIOR_DECLARE
#undef LIKELIHOOD_DECLARE

#endif

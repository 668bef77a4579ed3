/* Internal to src/model: the registry's list, one line for each likelihood. `name` is the name in study
 * files; likelihood_NAME is the descriptor, defined in the file that the comment names. */
#pragma once

#include "model/history/likelihood.h"

#define LIKELIHOOD_LIST(ENTRY)                                                                               \
  ENTRY(gaussian) /* likelihood.c */                                                                         \
  ENTRY(logistic) /* likelihood.c */                                                                         \
  ENTRY(poisson) /* likelihood.c */

#define LIKELIHOOD_DECLARE(name) extern const LikelihoodOps likelihood_##name;
LIKELIHOOD_LIST(LIKELIHOOD_DECLARE)
#undef LIKELIHOOD_DECLARE

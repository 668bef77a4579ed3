/* The registry's list: one line for each posterior sampler. `name` is the name in study files; sampler_NAME
 * is the descriptor, defined in the file that the comment names. */
#pragma once

#include "sampler/sampler.h"

#define SAMPLER_LIST(ENTRY)                                                                                  \
  ENTRY(ts) /* exact.c */                                                                                    \
  ENTRY(tuned_ts) /* exact.c */                                                                              \
  ENTRY(mixts) /* exact.c */                                                                                 \
  ENTRY(exact) /* exact.c */                                                                                 \
  ENTRY(diffts) /* laplace_dps.c */                                                                          \
  ENTRY(dps) /* dps.c */                                                                                     \
  ENTRY(joint) /* twisted.c */                                                                               \
  ENTRY(twisted) /* twisted.c */                                                                             \
  ENTRY(localised) /* localised/localised.c */                                                               \
  ENTRY(smc) /* smc.c */                                                                                     \
  ENTRY(smc_tempered) /* smc_tempered.c */                                                                   \
  ENTRY(lints) /* lints.c */                                                                                 \
  ENTRY(vits1) /* vits.c */                                                                                  \
  ENTRY(vits2) /* vits.c */                                                                                  \
  ENTRY(vits2_hf) /* vits.c */                                                                               \
  ENTRY(lmc) /* lmc.c */                                                                                     \
  ENTRY(fgts) /* lmc.c */                                                                                    \
  ENTRY(vts) /* vts.c */                                                                                     \
  ENTRY(rvga) /* rvga.c */                                                                                   \
  ENTRY(tilted) /* tilted.c */                                                                               \
  ENTRY(mala) /* mala.c */

#define SAMPLER_DECLARE(name) extern const SamplerOps sampler_##name;
SAMPLER_LIST(SAMPLER_DECLARE)
#undef SAMPLER_DECLARE

/* Not in the registry: the sampler that was chosen together with its prior (auto.c). */
extern const SamplerOps sampler_auto;

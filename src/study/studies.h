/* The registry's list: one line for each kind of study. `name` is the value of the key `study`; study_NAME is
 * the descriptor, defined in NAME.c. */
#pragma once

#include "study/study.h"

#define STUDY_LIST(ENTRY)                                                                                    \
  ENTRY(bandit)                                                                                              \
  ENTRY(posterior)                                                                                           \
  ENTRY(convergence)                                                                                         \
  ENTRY(replay)                                                                                              \
  ENTRY(stream)

#define STUDY_DECLARE(name) extern const StudyOps study_##name;
STUDY_LIST(STUDY_DECLARE)
#undef STUDY_DECLARE

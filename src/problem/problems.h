/* The registry's list: one line per problem. `name` is the value of problem.family; problem_NAME is the
 * descriptor, defined in the file that the comment names. */
#pragma once

#include "problem/problem.h"

#define PROBLEM_LIST(ENTRY)                                                                                  \
  ENTRY(synthetic) /* synthetic.c */                                                                         \
  ENTRY(embedding) /* embedding/embedding_file.c */                                                          \
  ENTRY(pool) /* pool.c */                                                                                   \
  ENTRY(twin) /* twin.c */                                                                                   \
  ENTRY(inverse) /* inverse.c */                                                                             \
  ENTRY(wheel) /* wheel.c */                                                                                 \
  ENTRY(phase_retrieval) /* phase_retrieval.c */                                                             \
  ENTRY(tomography) /* tomography.c */                                                                       \
  ENTRY(table) /* problem_logged.c */                                                                        \
  ENTRY(logged) /* problem_logged.c */                                                                       \
  ENTRY(cases) /* problem_cases.c */

#define PROBLEM_DECLARE(name) extern const ProblemOps problem_##name;
PROBLEM_LIST(PROBLEM_DECLARE)
#undef PROBLEM_DECLARE

/* Words of the families' keys: problem.features (synthetic), problem.reward (pool). */
extern const char SYNTHETIC_FEATURES[], POOL_REWARDS[];

/* The world of the convergence study (target.c), which has no problem.family. */
extern const ProblemOps problem_target;

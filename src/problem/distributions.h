/* The registry's list: one line for each distribution of theta*. theta_NAME is the descriptor, defined in the
 * file that the comment names; its `name` is the value of problem.theta. */
#pragma once

#include "problem/theta.h"

#define THETA_LIST(ENTRY)                                                                                    \
  ENTRY(cross) /* theta_mixtures.c */                                                                        \
  ENTRY(rays) /* theta_planar.c */                                                                           \
  ENTRY(triangles) /* theta_planar.c */                                                                      \
  ENTRY(swirl) /* theta_planar.c */                                                                          \
  ENTRY(h) /* theta_planar.c */                                                                              \
  ENTRY(corners) /* theta_planar.c */                                                                        \
  ENTRY(gm_cross) /* theta_mixtures.c */                                                                     \
  ENTRY(gm_rays) /* theta_mixtures.c */                                                                      \
  ENTRY(gm_triangles) /* theta_mixtures.c */                                                                 \
  ENTRY(gm_four) /* theta_mixtures.c */                                                                      \
  ENTRY(gm_curve) /* theta_mixtures.c */                                                                     \
  ENTRY(mixture) /* theta_mixtures.c */                                                                      \
  ENTRY(gaussian) /* theta_mixtures.c */                                                                     \
  ENTRY(gm_sphere) /* theta_mixtures.c */                                                                    \
  ENTRY(spiral) /* theta_mixtures.c */                                                                       \
  ENTRY(roll) /* theta_mixtures.c */                                                                         \
  ENTRY(student) /* theta_mixtures.c */                                                                      \
  ENTRY(ising) /* theta.c */                                                                                 \
  ENTRY(file) /* theta.c */

#define THETA_DECLARE(name) extern const ThetaOps theta_##name;
THETA_LIST(THETA_DECLARE)
#undef THETA_DECLARE

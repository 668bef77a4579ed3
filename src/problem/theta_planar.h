/* Internal to src/problem: the six two-dimensional priors and their mixture variants, listed by theta.c. */
#ifndef PROBLEM_THETA_PLANAR_H
#define PROBLEM_THETA_PLANAR_H

#include "problem/theta.h"

/* theta_planar.c */
extern const ThetaOps theta_rays, theta_triangles, theta_swirl, theta_h, theta_corners;
/* theta_mixtures.c */
extern const ThetaOps theta_cross, theta_gm_cross, theta_gm_rays, theta_gm_triangles, theta_gm_four;

#endif

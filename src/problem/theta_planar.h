/* Internal to src/problem: the six two-dimensional priors and their mixture variants, listed by theta.c. */
#ifndef PROBLEM_THETA_PLANAR_H
#define PROBLEM_THETA_PLANAR_H

#include "problem/theta.h"

extern const ThetaOps theta_cross, theta_rays, theta_triangles, theta_swirl, theta_h, theta_corners;

#endif

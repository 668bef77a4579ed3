/* The world of the convergence study (VITS paper, Appendices F and I), which problem.c takes for that
 * study. */
#ifndef PROBLEM_TARGET_H
#define PROBLEM_TARGET_H

#include "problem/problem.h"

extern const ProblemOps problem_target;

#endif

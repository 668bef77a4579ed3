/* The bandit of Appendix G of the VITS paper. Listed by problem.c. */
#ifndef PROBLEM_TWIN_H
#define PROBLEM_TWIN_H

#include "problem/problem.h"

extern const ProblemOps problem_twin;

#endif

/* The contextual bandits of the VITS paper (Section 4.1, Appendix H). Listed by problem.c. */
#ifndef PROBLEM_POOL_H
#define PROBLEM_POOL_H

#include "problem/problem.h"

extern const ProblemOps problem_pool;

/* How a reward depends on phi' theta*, for the table of keys: "linear", "quadratic". */
extern const char POOL_REWARDS[];

#endif

/* Linear inverse problems, y = A theta* + sigma w (Bruna and Han, Tilted transport). Listed by problem.c. */
#ifndef PROBLEM_INVERSE_H
#define PROBLEM_INVERSE_H

#include "problem/problem.h"

extern const ProblemOps problem_inverse;
extern const char INVERSE_SINGULAR_VECTORS[]; /* words of problem.singular_vectors */

#endif

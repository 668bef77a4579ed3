/* Bandits on real data: theta* and arms are rows of an embedding file (DiffTS paper, Sections 6.3 and C.2).
 * Listed by problem.c. */
#ifndef PROBLEM_EMBEDDING_EMBEDDING_H
#define PROBLEM_EMBEDDING_EMBEDDING_H

#include "problem/problem.h"

extern const ProblemOps problem_embedding;

#endif

/* The linear assignment problem: match n rows to n columns one to one at least total cost. Exact; shortest
 * augmenting paths after Jonker and Volgenant (Computing 38, 1987).
 *
 * Costs are cost[n, stride], rows padded with INFINITY up to stride = reduced_stride(n). */
#pragma once

#include "core/arena.h"

typedef struct Assignment Assignment;

/* Creates room for problems of up to `most` rows. */
Status assignment_create(Arena *memory, int most, Assignment **out);

/* Solves the assignment: column_of[n] is the column of each row, v[n] the columns' dual variables. Costs
 * are finite and not negative. */
void assignment_solve(Assignment *assignment, int n, const double *cost, int *column_of, double *v);

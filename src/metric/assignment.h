/* The linear assignment problem: match n rows to n columns one to one at the least total cost. Exact;
 * shortest augmenting paths after Jonker and Volgenant (Computing 38, 1987).
 *
 * Costs are cost[n, stride], finite and not negative, with rows aligned as ALLOCATE aligns them and padded
 * with INFINITY up to stride = assignment_stride(n). */
#pragma once

#include "core/arena.h"

typedef struct Assignment Assignment;

/* Allocates memory for problems of up to `most` rows: 2 most^2 bytes. */
Status assignment_create(Arena *memory, int most, Assignment **out);

/* Solves the assignment: column_of[n] is the column of each row, v[n] the columns' dual variables. If
 * column_of is NULL, v are those of the nearly optimal matching that the search starts from. */
void assignment_solve(Assignment *assignment, int n, const double *cost, int *column_of, double *v);

enum { ASSIGNMENT_LANES = 32 }; /* columns that a pass handles at a time */

/* Returns the length of a padded row. */
int assignment_stride(int n);
/* Returns min_j c_j - v_j of a padded row. */
double assignment_cost_least(int stride, const double *c, const double *v);

/* Least and second least c_j - v_j, and the column of the least, the first if several are equal. */
typedef struct {
  double value, second;
  int column;
} AssignmentLeast;
AssignmentLeast assignment_two_least(int stride, const double *c, const double *v);

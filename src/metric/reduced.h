/* Passes over a row of reduced costs c_j - v_j, where the time of an assignment goes. Rows are aligned as
 * ALLOCATE does it and padded to stride = reduced_stride(n) columns, with INFINITY unless it says
 * otherwise. */
#pragma once

enum { REDUCED_LANES = 32 }; /* columns that a pass takes at a time */

/* Returns the length of a padded row. */
int reduced_stride(int n);

/* Returns max_j c_j, of at least 0; padded with zeros. */
double reduced_largest(int stride, const double *c);

/* Returns min_j c_j - v_j. */
double reduced_cost_least(int stride, const double *c, const double *v);

/* Least and second least c_j - v_j, and the column of the least, the first of equals. */
typedef struct {
  double value, second;
  int column;
} ReducedLeast;
ReducedLeast reduced_two_least(int stride, const double *c, const double *v);

/* Files of cases: each is a posterior of its own, with a mixture of Gaussians as its prior, observations and,
 * if there is one, a reference. NetCDF:
 *
 *   weight(case, component), mean(case, component, dim), and variance(case, component), multiples of I, or
 *   covariance(case, component, dim, dim2); a component of weight 0 is padding;
 *   x(case, observation, dim), y(case, observation); rows of NaN at the end of a case are padding;
 *   noise(case), exposure(case), theta(case, dim) and reference(case, draw, dim), each if there is one;
 *   attribute likelihood.
 *
 * Components and rows that are padding are dropped here. */
#pragma once

#include "core/arena.h"

/* One case; arrays are owned by the arena of the file. */
typedef struct {
  int components; /* C, of weight > 0 */
  double *weight; /* [C], sums to 1 */
  double *mean; /* [C, d] */
  double *variance; /* [C]; NULL: covariance */
  double *covariance; /* [C, d, d]; NULL: variance */
  int rows; /* n >= 1 */
  double *x, *y; /* [n, d], [n] */
  double noise; /* standard deviation of the rewards; 0: the file has none */
  double exposure; /* of counts; 0: the file has none */
  const double *theta; /* [d]; NULL: the file has none */
} Case;

typedef struct {
  const char *path;
  int d, count;
  int rows; /* most observations of a case */
  int references; /* reference draws of each case; 0: there are none */
  const char *likelihood;
  Case *cases; /* [count] */
} CaseFile;

/* Reads a file, but for its references, into `memory`, which must outlive it. Returns STATUS_INPUT, with the
 * file, the variable, the place, the value and what is allowed, if a value is not finite, too large
 * (DATASET_MOST) or out of range, if a covariance is not symmetric, or if padding is not at the end. */
Status io_cases_read(Arena *memory, const char *path, CaseFile *out);
/* Reads reference draws first .. first + n - 1 of a case: theta[d, n]. */
Status io_cases_read_reference(const CaseFile *file, int number, int first, int n, double *theta);

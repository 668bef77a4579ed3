/* The posterior of a prior that is uniform on the corners of {-1, 1}^d under a conjugate likelihood, which is
 * an Ising model, by enumeration of all 2^d corners. */
#pragma once

#include "core/arena.h"
#include "core/status.h"

enum { HYPERCUBE_MOST_DIMENSIONS = 20 };

typedef struct {
  int d;
  double *precision, *vector; /* [d, d], [d]: set by the caller, for exact_hypercube_weigh */
  double *field; /* [d]: vector - precision x at the current corner */
  double *cumulative; /* [2^d]: cumulative weights; bit i of a corner's number is 1 if x_i = 1 */
} Hypercube;

/* Creates the enumeration for d <= HYPERCUBE_MOST_DIMENSIONS. */
Status exact_hypercube_create(Arena *memory, int d, Hypercube *out);

/* Computes the cumulative weights, sums of exp(vector' x - x' precision x / 2), of all corners from
 * self->precision and self->vector. */
void exact_hypercube_weigh(Hypercube *self);
/* Draws the corner x[i stride] that this uniform number selects. */
void exact_hypercube_draw(const Hypercube *self, double uniform, size_t stride, double *x);

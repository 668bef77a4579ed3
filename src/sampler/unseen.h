/* The rest of a draw, given the coordinates x = axis theta that were observed, under a mixture prior: if the
 * observations are of x alone, theta | x does not depend on them. A component c is picked by its share given
 * x; then a draw theta_0 from it is moved by its regression on x (Matheron's rule),
 *
 *     theta = theta_0 + S_c axis' (axis S_c axis')^-1 (x - axis theta_0),
 *
 * so that the only factor of a d x d matrix is that of the prior, whatever was observed. */
#pragma once

#include "core/rng.h"
#include "model/mixture/mixture.h"

enum { UNSEEN_LANES = 1024 };

/* C components, n <= UNSEEN_LANES lanes, lane last. */
typedef struct {
  const Mixture *prior; /* of theta; not owned */
  Mixture projected; /* of x */
  int m;
  const double *axis; /* [m, d]; not owned */
  double *regression; /* [C, d, m]: S_c axis' (axis S_c axis')^-1 */
  double *share; /* [C, n] */
  double *top, *total, *uniform; /* [n] */
  int *component, *lane; /* [n] */
  double *normal, *drawn; /* [d, n]; of the lanes of a component */
  double *rest; /* [m, n] */
} Unseen;

/* Creates this for orthonormal rows axis[m, d], m < d, which must stay where they are, and at most `most`
 * lanes. */
Status unseen_create(Arena *memory, const Mixture *prior, int m, const double *axis, int most, Unseen *out);
/* Where x[m, n] is, and how far apart its rows and those of theta[d, n] are. */
typedef struct {
  int x_stride, theta_stride;
  const double *x;
} UnseenRows;
/* Draws theta[d, n] given x, with 1 uniform and d normals of each stream. */
void unseen_draw(Unseen *self, RngLanes rng, UnseenRows at, double *theta);

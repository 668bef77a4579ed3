#include "problem/rotation.h"

#include <math.h>
#include <stddef.h>

/* Draws standard normal rows and orthonormalises them (Gram-Schmidt, twice because of rounding). */
void rotation_draw(Rng *rng, int rows, int d, double *q) {
  const size_t columns = (size_t)d;
  rng_normal(rng, rows * d, q);
  for (size_t i = 0; i < 2 * (size_t)rows; i++) {
    double *row = q + i / 2 * columns, square = 0;
    for (size_t k = 0; k < i / 2; k++) {
      double along = 0;
      for (size_t j = 0; j < columns; j++) along += row[j] * q[k * columns + j];
      for (size_t j = 0; j < columns; j++) row[j] -= along * q[k * columns + j];
    }
    for (size_t j = 0; j < columns; j++) square += row[j] * row[j];
    for (size_t j = 0; j < columns; j++) row[j] /= sqrt(square);
  }
}

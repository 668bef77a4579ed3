#include "core/orthogonal_kernel.h"

#include "core/matrix_tile.h"

#include <float.h>

/* Vectors that meet an earlier one together: their sums do not wait for each other. */
enum { TOGETHER = 4 };

/* Vectors of `count` <= SIMD_DOUBLES lanes. */
typedef struct {
  size_t d, stride;
  double *e, *length;
} Directions;

INLINE double *vector_of(const Directions *of, size_t m) { return of->e + m * of->d * of->stride; }

/* Computes dot[w] = e_k' x of vectors x = m, m + 1, ..; e_k may be one of them. */
INLINE void dot_with(int count, const int width, const Directions *of, size_t k, size_t m, Real *dot) {
  const double *before = vector_of(of, k);
  Real left = {0}, right = {0};
  for (int w = 0; w < width; w++) dot[w] = (Real){0};
  for (size_t i = 0; i < of->d; i++) {
    tile_load(count, before + i * of->stride, &left);
    for (int w = 0; w < width; w++) {
      tile_load(count, vector_of(of, m + (size_t)w) + i * of->stride, &right);
      dot[w] += left * right;
    }
  }
}

/* Subtracts x's part along e_k: x -= (e_k' x) e_k. */
INLINE void take_out(int count, const int width, const Directions *of, size_t k, size_t m) {
  const double *before = vector_of(of, k);
  Real dot[TOGETHER], left = {0}, right = {0};
  dot_with(count, width, of, k, m, dot);
  for (size_t i = 0; i < of->d; i++) {
    tile_load(count, before + i * of->stride, &left);
    for (int w = 0; w < width; w++) {
      double *entry = vector_of(of, m + (size_t)w) + i * of->stride;
      tile_load(count, entry, &right);
      right -= dot[w] * left;
      tile_store(count, &right, entry);
    }
  }
}

/* Computes |e_m| <- 1: e <- e + (1 / |e| - 1) e, the product rounded first. */
INLINE void normalise(int count, const Directions *of, size_t m) {
  Real square, x = {0};
  dot_with(count, 1, of, m, m, &square);
  const Real least = (Real){0} + DBL_MIN;
  const Mask good = square > least;
  const Real change = 1 / tile_root((Real)(((Mask)square & good) | ((Mask)least & ~good))) - 1;
  for (size_t i = 0; i < of->d; i++) {
    double *entry = vector_of(of, m) + i * of->stride;
    tile_load(count, entry, &x);
    x += change * x + 0.0;
    tile_store(count, &x, entry);
  }
}

INLINE void add_vectors(int count, const int width, const Directions *of, size_t m) {
  for (size_t w = m; w < m + (size_t)width; w++) {
    Real square;
    dot_with(count, 1, of, w, w, &square);
    square = tile_root(square);
    tile_store(count, &square, of->length + w * of->stride);
  }
  for (size_t k = 0; k < m; k++) take_out(count, width, of, k, m);
  for (size_t w = m; w < m + (size_t)width; w++) {
    for (size_t k = m; k < w; k++) take_out(count, 1, of, k, w);
    normalise(count, of, w);
  }
}

INLINE void orthogonalise(int count, size_t vectors, const Directions *of) {
  size_t m = 0;
  for (; m + TOGETHER <= vectors; m += TOGETHER) add_vectors(count, TOGETHER, of, m);
  for (; m < vectors; m++) add_vectors(count, 1, of, m);
}

void orthogonal_kernel(int count, int d, int lanes, double *e, double *length) {
  TILE_VECTORS(n, lanes, orthogonalise, (size_t)count,
               &(Directions){(size_t)d, (size_t)lanes, e + n, length + n});
}

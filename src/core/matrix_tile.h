/* Tiles of products of small square matrices, lane last: HEIGHT x COLUMNS entries for SIMD_DOUBLES lanes,
 * whose sums stay in registers, so that each vector that is loaded meets several others. For files that are
 * compiled once for each instruction level (core/simd.h). */
#ifndef CORE_MATRIX_TILE_H
#define CORE_MATRIX_TILE_H

#include "core/matrix_kernel.h"
#include "core/simd.h"

enum { TILE_HEIGHT = SIMD_DOUBLES == 8 ? 4 : SIMD_DOUBLES == 4 ? 3 : 2, TILE_COLUMNS = 4 };

typedef double Real __attribute__((vector_size(8 * SIMD_DOUBLES)));
#define TILE_INLINE static inline __attribute__((always_inline))

/* The factors at the first of `count` <= SIMD_DOUBLES lanes; entry (i, k) of a factor in the order `of` is at
 * (i of.row + k of.column) stride. */
typedef struct {
  size_t d, stride;
  const double *a, *b;
  MatrixOrder of_a, of_b;
} MatrixFactors;

TILE_INLINE void tile_load(int count, const double *from, Real *x) {
  __builtin_memcpy(x, from, (size_t)count * sizeof *from);
}

TILE_INLINE void tile_store(int count, const Real *x, double *to) {
  __builtin_memcpy(to, x, (size_t)count * sizeof *to);
}

/* sum <- rows i .. i + height - 1 and columns j .. j + columns - 1 of the product. */
TILE_INLINE void tile_product(int count, const int height, const int columns, const MatrixFactors *p,
                              size_t i, size_t j, Real sum[TILE_HEIGHT][TILE_COLUMNS]) {
  Real x = {0}, y[TILE_COLUMNS] = {{0}};
  for (int r = 0; r < height; r++)
    for (int m = 0; m < columns; m++) sum[r][m] = (Real){0};
  for (size_t k = 0; k < p->d; k++) {
    for (int m = 0; m < columns; m++)
      tile_load(count, p->b + (k * p->of_b.row + (j + (size_t)m) * p->of_b.column) * p->stride, &y[m]);
    for (int r = 0; r < height; r++) {
      tile_load(count, p->a + ((i + (size_t)r) * p->of_a.row + k * p->of_a.column) * p->stride, &x);
      for (int m = 0; m < columns; m++) sum[r][m] += x * y[m];
    }
  }
}

#endif

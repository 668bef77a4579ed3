/* A product is made of tiles of HEIGHT x COLUMNS entries, for SIMD_DOUBLES lanes, whose sums stay in
 * registers: each vector that is loaded meets several others. Compiled once for each instruction level
 * (core/simd.h). */
#include "core/matrix_kernel.h"

#include "core/simd.h"

enum { HEIGHT = SIMD_DOUBLES == 8 ? 4 : SIMD_DOUBLES == 4 ? 3 : 2, COLUMNS = 4 };

typedef double Real __attribute__((vector_size(8 * SIMD_DOUBLES)));
#define INLINE static inline __attribute__((always_inline))

/* The factors and the product at the first of `count` <= SIMD_DOUBLES lanes. */
typedef struct {
  size_t d, stride;
  const double *a, *b;
  MatrixOrder of_a, of_b;
  double *c;
} MatrixProduct;

INLINE void load(int count, const double *from, Real *x) {
  __builtin_memcpy(x, from, (size_t)count * sizeof *from);
}

INLINE void store(int count, const Real *x, double *to) {
  __builtin_memcpy(to, x, (size_t)count * sizeof *to);
}

/* Rows i .. i + height - 1 and columns j .. j + columns - 1; of a symmetric product their mirror image
 * too. */
INLINE void matrix_tile(int count, const int height, const int columns, const MatrixProduct *p, size_t i,
                        size_t j, bool symmetric) {
  Real sum[HEIGHT][COLUMNS], x = {0}, y[COLUMNS] = {{0}};
  for (int r = 0; r < height; r++)
    for (int m = 0; m < columns; m++) sum[r][m] = (Real){0};
  for (size_t k = 0; k < p->d; k++) {
    for (int m = 0; m < columns; m++)
      load(count, p->b + (k * p->of_b.row + (j + (size_t)m) * p->of_b.column) * p->stride, &y[m]);
    for (int r = 0; r < height; r++) {
      load(count, p->a + ((i + (size_t)r) * p->of_a.row + k * p->of_a.column) * p->stride, &x);
      for (int m = 0; m < columns; m++) sum[r][m] += x * y[m];
    }
  }
  for (int r = 0; r < height; r++)
    for (int m = 0; m < columns; m++) {
      const size_t row = i + (size_t)r, column = j + (size_t)m;
      store(count, &sum[r][m], p->c + (row * p->d + column) * p->stride);
      if (symmetric) store(count, &sum[r][m], p->c + (column * p->d + row) * p->stride);
    }
}

INLINE void rows_of_tiles(int count, const int height, const MatrixProduct *p, size_t i, bool symmetric) {
  const size_t end = symmetric ? i + (size_t)height : p->d;
  size_t j = 0;
  for (; j < end && j + COLUMNS <= p->d; j += COLUMNS)
    matrix_tile(count, height, COLUMNS, p, i, j, symmetric);
  for (; j < end; j++) matrix_tile(count, height, 1, p, i, j, symmetric);
}

INLINE void product(int count, const MatrixProduct *p, bool symmetric) {
  size_t i = 0;
  for (; i + HEIGHT <= p->d; i += HEIGHT) rows_of_tiles(count, HEIGHT, p, i, symmetric);
  for (; i < p->d; i++) rows_of_tiles(count, 1, p, i, symmetric);
}

void SIMD_NAME(matrix_kernel_product)(int d, int lanes, const double *a, MatrixOrder of_a, const double *b,
                                      MatrixOrder of_b, bool symmetric, double *c) {
  for (int n = 0; n < lanes; n += SIMD_DOUBLES) {
    const MatrixProduct p = {(size_t)d, (size_t)lanes, a + n, b + n, of_a, of_b, c + n};
    if (lanes - n >= SIMD_DOUBLES)
      product(SIMD_DOUBLES, &p, symmetric);
    else
      product(lanes - n, &p, symmetric);
  }
}

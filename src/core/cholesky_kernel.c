#include "core/cholesky_kernel.h"

#include "core/matrix_tile.h"

#include <stdbool.h>

/* A factorisation by panels of TILE_COLUMNS columns. Each panel is written once: what earlier columns
 * subtract from it is summed in registers. `a` is at the first of `count` <= SIMD_DOUBLES lanes. */
typedef struct {
  int count;
  size_t d, stride;
  double *a;
  /* The replacement for a bad pivot: 2^-52 times the largest diagonal entry, which a sum of that size cannot
   * tell from zero. The entries below it, which should be zero, are set to zero: divided by so small a root,
   * they would grow from column to column. */
  Real least;
  Real bad; /* number of bad pivots */
} Factor;

INLINE double *entry(const Factor *f, size_t i, size_t j) { return f->a + (i * f->d + j) * f->stride; }

/* Computes x[r][m] <- entry (i + r, j + m) less the sum over columns k < j of L_ik L_jk; with `lower`, only
 * for m <= r. */
INLINE void subtract_columns(const Factor *f, const int height, const int width, const bool lower, size_t i,
                             size_t j, Real x[TILE_COLUMNS][TILE_COLUMNS]) {
  Real left = {0}, right[TILE_COLUMNS] = {{0}};
  for (int r = 0; r < height; r++)
    for (int m = 0; m < (lower ? r + 1 : width); m++)
      matrix_tile_load(f->count, entry(f, i + (size_t)r, j + (size_t)m), &x[r][m]);
  for (size_t k = 0; k < j; k++) {
    for (int m = 0; m < width; m++) matrix_tile_load(f->count, entry(f, j + (size_t)m, k), &right[m]);
    for (int r = 0; r < height; r++) {
      matrix_tile_load(f->count, entry(f, i + (size_t)r, k), &left);
      for (int m = 0; m < (lower ? r + 1 : width); m++) x[r][m] -= left * right[m];
    }
  }
}

/* Computes column m, rows from .. height - 1, of a tile whose earlier columns are done; `diagonal` holds the
 * panel's diagonal block of L. */
INLINE void finish_column(const int from, const int height, const int m,
                          Real diagonal[TILE_COLUMNS][TILE_COLUMNS], Real inverse,
                          Real x[TILE_COLUMNS][TILE_COLUMNS]) {
  for (int r = from; r < height; r++) {
    for (int k = 0; k < m; k++) x[r][m] -= x[r][k] * diagonal[m][k];
    x[r][m] *= inverse;
  }
}

INLINE void factor_diagonal(Factor *f, const int width, size_t j, Real x[TILE_COLUMNS][TILE_COLUMNS],
                            Real *inverse) {
  const Real one = real_of(1);
  for (int r = 0; r < TILE_COLUMNS; r++)
    for (int m = 0; m < TILE_COLUMNS; m++) x[r][m] = real_of(r == m); /* the identity in unused lanes */
  subtract_columns(f, width, width, true, j, j, x);
  for (int m = 0; m < width; m++) {
    Real pivot = x[m][m];
    for (int k = 0; k < m; k++) pivot -= x[m][k] * x[m][k];
    const Mask good = pivot > 0;
    f->bad += (Real)(~good & (Mask)one);
    x[m][m] = real_root(real_choose(good, pivot, f->least));
    inverse[m] = (Real)(good & (Mask)one) / x[m][m];
    finish_column(m + 1, width, m, x, inverse[m], x);
  }
  for (int r = 0; r < width; r++)
    for (int m = 0; m <= r; m++)
      matrix_tile_store(f->count, &x[r][m], entry(f, j + (size_t)r, j + (size_t)m));
}

INLINE void factor_rows(const Factor *f, const int height, const int width, size_t i, size_t j,
                        Real diagonal[TILE_COLUMNS][TILE_COLUMNS], const Real *inverse) {
  Real x[TILE_COLUMNS][TILE_COLUMNS] = {{{0}}};
  subtract_columns(f, height, width, false, i, j, x);
  for (int m = 0; m < width; m++) finish_column(0, height, m, diagonal, inverse[m], x);
  for (int r = 0; r < height; r++)
    for (int m = 0; m < width; m++)
      matrix_tile_store(f->count, &x[r][m], entry(f, i + (size_t)r, j + (size_t)m));
}

INLINE void factor_panel(Factor *f, const int width, size_t j) {
  Real diagonal[TILE_COLUMNS][TILE_COLUMNS], inverse[TILE_COLUMNS];
  size_t i = j + (size_t)width;
  factor_diagonal(f, width, j, diagonal, inverse);
  for (; i + TILE_HEIGHT <= f->d; i += TILE_HEIGHT)
    factor_rows(f, TILE_HEIGHT, width, i, j, diagonal, inverse);
  for (; i < f->d; i++) factor_rows(f, 1, width, i, j, diagonal, inverse);
}

INLINE void factor_lanes(int count, size_t d, size_t stride, double *a, int *jitters) {
  Factor f = {.count = count, .d = d, .stride = stride, .a = a, .least = real_of(0x1p-1000)};
  size_t j = 0;
  for (size_t i = 0; i < d; i++) {
    Real x = {0};
    matrix_tile_load(count, entry(&f, i, i), &x);
    f.least = real_max(0x1p-52 * x, f.least);
  }
  for (; j + TILE_COLUMNS <= d; j += TILE_COLUMNS) factor_panel(&f, TILE_COLUMNS, j);
  for (; j < d; j++) factor_panel(&f, 1, j);
  for (int n = 0; jitters && n < count; n++) jitters[n] += (int)f.bad[n];
}

void cholesky_kernel_factor(int d, int lanes, size_t stride, double *a, int *jitters) {
  TILE_VECTORS(n, lanes, factor_lanes, (size_t)d, stride, a + n, jitters ? jitters + n : NULL);
}

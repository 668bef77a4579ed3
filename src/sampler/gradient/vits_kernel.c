#include "sampler/gradient/vits_kernel.h"

#include "core/matrix_tile.h"

#include <math.h>

/* Everything below is for the first of `count` <= SIMD_DOUBLES lanes; entry (i, j) of a matrix is at
 * (i d + j) stride. */

/* Of a tile of C'C, what lies on and below the diagonal, and its mirror image. */
TILE_INLINE void excess_tile(int count, const int height, const int columns, const MatrixFactors *p, size_t i,
                             size_t j, const double *hessian, double *precision, double *excess,
                             Real *square) {
  Real sum[TILE_HEIGHT][TILE_COLUMNS], a = {0}, left;
  tile_product(count, height, columns, p, i, j, sum);
  for (int r = 0; r < height; r++)
    for (int m = 0; m < columns; m++) {
      const size_t row = i + (size_t)r, column = j + (size_t)m;
      const size_t below = (row * p->d + column) * p->stride, above = (column * p->d + row) * p->stride;
      if (column > row) continue;
      tile_load(count, hessian + below, &a);
      left = sum[r][m] - a;
      const Real counted = column < row ? sum[r][m] + sum[r][m] : sum[r][m]; /* in both halves */
      *square += counted * sum[r][m];
      tile_store(count, &sum[r][m], precision + below);
      tile_store(count, &sum[r][m], precision + above);
      tile_store(count, &left, excess + below);
      tile_store(count, &left, excess + above);
    }
}

TILE_INLINE void excess_rows(int count, const int height, const MatrixFactors *p, size_t i,
                             const double *hessian, double *precision, double *excess, Real *square) {
  const size_t end = i + (size_t)height;
  size_t j = 0;
  for (; j < end && j + TILE_COLUMNS <= p->d; j += TILE_COLUMNS)
    excess_tile(count, height, TILE_COLUMNS, p, i, j, hessian, precision, excess, square);
  for (; j < end; j++) excess_tile(count, height, 1, p, i, j, hessian, precision, excess, square);
}

TILE_INLINE void excess_lanes(int count, const MatrixFactors *p, const double *hessian, double *precision,
                              double *excess, double *bound) {
  Real square = {0};
  size_t i = 0;
  for (; i + TILE_HEIGHT <= p->d; i += TILE_HEIGHT)
    excess_rows(count, TILE_HEIGHT, p, i, hessian, precision, excess, &square);
  for (; i < p->d; i++) excess_rows(count, 1, p, i, hessian, precision, excess, &square);
  for (int n = 0; n < count; n++) bound[n] = sqrt(square[n]);
}

void SIMD_NAME(vits_kernel_excess)(int d, int lanes, const double *inverse, const double *hessian,
                                   double *precision, double *excess, double *bound) {
  const MatrixOrder plain = {(size_t)d, 1}, transposed = {1, (size_t)d};
  for (int n = 0; n < lanes; n += SIMD_DOUBLES) {
    const MatrixFactors p = {(size_t)d, (size_t)lanes, inverse + n, inverse + n, transposed, plain};
    if (lanes - n >= SIMD_DOUBLES)
      excess_lanes(SIMD_DOUBLES, &p, hessian + n, precision + n, excess + n, bound + n);
    else
      excess_lanes(lanes - n, &p, hessian + n, precision + n, excess + n, bound + n);
  }
}

/* panel[rows, columns] of Real <- rows i .. and columns j .. of the product. */
TILE_INLINE void panel_tile(int count, const int height, const int columns, const MatrixFactors *p, size_t i,
                            size_t j, size_t width, Real *panel) {
  Real sum[TILE_HEIGHT][TILE_COLUMNS];
  tile_product(count, height, columns, p, i, j, sum);
  for (int r = 0; r < height; r++)
    for (int m = 0; m < columns; m++) panel[(size_t)r * width + (size_t)m] = sum[r][m];
}

/* Columns j .. j + columns - 1 of B: they are all that these columns of A B need, so that B may change in
 * place. */
TILE_INLINE void root_columns(int count, const int columns, const MatrixFactors *p, size_t j, Real h,
                              const double *inverse, double *root, double *spread, Real *panel) {
  const size_t d = p->d, stride = p->stride, width = (size_t)columns;
  size_t i = 0;
  for (; i + TILE_HEIGHT <= d; i += TILE_HEIGHT)
    panel_tile(count, TILE_HEIGHT, columns, p, i, j, width, panel + i * width);
  for (; i < d; i++) panel_tile(count, 1, columns, p, i, j, width, panel + i * width);
  for (i = 0; i < d; i++) {
    Real variance = {0}, b = {0}, c = {0};
    if (j > 0) tile_load(count, spread + i * stride, &variance);
    for (size_t m = 0; m < width; m++) {
      tile_load(count, root + (i * d + j + m) * stride, &b);
      tile_load(count, inverse + ((j + m) * d + i) * stride, &c);
      b += h * (c - panel[i * width + m]);
      variance += b * b;
      tile_store(count, &b, root + (i * d + j + m) * stride);
    }
    tile_store(count, &variance, spread + i * stride);
  }
}

TILE_INLINE void root_lanes(int count, const MatrixFactors *p, const double *h, const double *inverse,
                            double *root, double *spread, Real *panel) {
  Real step = {0};
  size_t j = 0;
  tile_load(count, h, &step);
  for (; j + TILE_COLUMNS <= p->d; j += TILE_COLUMNS)
    root_columns(count, TILE_COLUMNS, p, j, step, inverse, root, spread, panel);
  for (; j < p->d; j++) root_columns(count, 1, p, j, step, inverse, root, spread, panel);
}

void SIMD_NAME(vits_kernel_root)(int d, int lanes, const double *h, const double *inverse,
                                 const double *hessian, double *root, double *spread, double *scratch) {
  const MatrixOrder plain = {(size_t)d, 1};
  for (int n = 0; n < lanes; n += SIMD_DOUBLES) {
    const MatrixFactors p = {(size_t)d, (size_t)lanes, hessian + n, root + n, plain, plain};
    if (lanes - n >= SIMD_DOUBLES)
      root_lanes(SIMD_DOUBLES, &p, h + n, inverse + n, root + n, spread + n, (Real *)scratch);
    else
      root_lanes(lanes - n, &p, h + n, inverse + n, root + n, spread + n, (Real *)scratch);
  }
}

/* Rows i .. i + height - 1 of C: they are all that these rows of C X need. */
TILE_INLINE void inverse_rows(int count, const int height, const MatrixFactors *p, size_t i, Real h,
                              double *inverse, Real *panel) {
  const size_t d = p->d, stride = p->stride;
  size_t j = 0;
  for (; j + TILE_COLUMNS <= d; j += TILE_COLUMNS)
    panel_tile(count, height, TILE_COLUMNS, p, i, j, d, panel + j);
  for (; j < d; j++) panel_tile(count, height, 1, p, i, j, d, panel + j);
  for (size_t k = 0; k < (size_t)height * d; k++) {
    Real c = {0};
    tile_load(count, inverse + (i * d + k) * stride, &c);
    c -= h * panel[k];
    tile_store(count, &c, inverse + (i * d + k) * stride);
  }
}

TILE_INLINE void inverse_lanes(int count, const MatrixFactors *p, const double *h, double *inverse,
                               Real *panel) {
  Real step = {0};
  size_t i = 0;
  tile_load(count, h, &step);
  for (; i + TILE_HEIGHT <= p->d; i += TILE_HEIGHT)
    inverse_rows(count, TILE_HEIGHT, p, i, step, inverse, panel);
  for (; i < p->d; i++) inverse_rows(count, 1, p, i, step, inverse, panel);
}

void SIMD_NAME(vits_kernel_inverse)(int d, int lanes, const double *h, const double *excess, double *inverse,
                                    double *scratch) {
  const MatrixOrder plain = {(size_t)d, 1};
  for (int n = 0; n < lanes; n += SIMD_DOUBLES) {
    const MatrixFactors p = {(size_t)d, (size_t)lanes, inverse + n, excess + n, plain, plain};
    if (lanes - n >= SIMD_DOUBLES)
      inverse_lanes(SIMD_DOUBLES, &p, h + n, inverse + n, (Real *)scratch);
    else
      inverse_lanes(lanes - n, &p, h + n, inverse + n, (Real *)scratch);
  }
}

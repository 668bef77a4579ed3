#include "sampler/gradient/vits_kernel.h"

#include "core/matrix_tile.h"

/* Everything below is for the first of `count` <= SIMD_DOUBLES lanes; entry (i, j) of a matrix is at
 * (i d + j) stride. */

/* d and the distance of entries of every matrix. */
typedef struct {
  size_t d, stride;
} Extent;

/* What excess_lanes makes of C'C; sums over its entries. */
typedef struct {
  const double *hessian;
  double *excess;
  Real trace, square;
} Excess;

/* Computes what lies on and below the diagonal of a tile of C'C, and its mirror image. */
INLINE void excess_tile(const int columns, const int height, int count, Extent of, const MatrixFactors *p,
                        size_t i, size_t j, Excess *to) {
  Real sum[PRODUCT_ROWS][PRODUCT_COLUMNS], a = {0}, left;
  tile_clear(height, columns, sum);
  tile_product(count, height, columns, p, i, j, sum);
  PRODUCT_EACH (r, height)
    PRODUCT_EACH (m, columns) {
      const size_t row = i + (size_t)r, column = j + (size_t)m;
      const size_t below = (row * of.d + column) * of.stride, above = (column * of.d + row) * of.stride;
      if (column > row) continue;
      tile_load(count, to->hessian + below, &a);
      left = sum[r][m] - a;
      const Real counted = column < row ? sum[r][m] + sum[r][m] : sum[r][m]; /* in both halves */
      to->square += counted * sum[r][m];
      if (column == row) to->trace += sum[r][m];
      tile_store(count, &left, to->excess + below);
      tile_store(count, &left, to->excess + above);
    }
}

INLINE void excess_rows(const int height, int count, Extent of, const MatrixFactors *p, size_t i,
                        Excess *to) {
  for (size_t j = 0, columns; j < i + (size_t)height; j += columns) {
    columns = tile_extent(of.d - j, PRODUCT_COLUMNS);
    SIMD_CALL(columns, PRODUCT_COLUMNS, excess_tile, height, count, of, p, i, j, to);
  }
}

INLINE void excess_lanes(int count, Extent of, const double *inverse, const double *hessian, double *excess,
                         double *bound) {
  const MatrixOrder plain = {of.d * of.stride, of.stride}, transposed = {of.stride, of.d * of.stride};
  const MatrixFactors p = {of.d, inverse, inverse, transposed, plain};
  Excess to = {.hessian = hessian, .excess = excess};
  for (size_t i = 0, height; i < of.d; i += height) {
    height = tile_extent(of.d - i, PRODUCT_ROWS);
    SIMD_CALL(height, PRODUCT_ROWS, excess_rows, count, of, &p, i, &to);
  }
  for (int n = 0; n < count; n++) bound[n] = matrix_moment_bound((int)of.d, to.trace[n], to.square[n]);
}

void vits_kernel_excess(int d, int lanes, const double *inverse, const double *hessian, double *excess,
                        double *bound) {
  const Extent of = {(size_t)d, (size_t)lanes};
  TILE_VECTORS(n, lanes, excess_lanes, of, inverse + n, hessian + n, excess + n, bound + n);
}

/* Copies columns of B, or rows of C, as they were before they change: [d, width], side by side. */
INLINE void copy_panel(int count, size_t d, size_t width, const double *from, MatrixOrder order,
                       Real *panel) {
  for (size_t k = 0; k < d; k++)
    for (size_t m = 0; m < width; m++, panel++) {
      *panel = (Real){0};
      tile_load(count, from + k * order.row + m * order.column, panel);
    }
}

/* What an update of B or C works with. */
typedef struct {
  Real h;
  const double *inverse;
  double *changed, *spread; /* B or C; of B */
  Real *panel;
} Change;

/* Computes B += h (C' - A B) from the panel of B, and its part of the spread. */
INLINE void root_tile(const int height, const int columns, int count, Extent of, const MatrixFactors *p,
                      size_t i, size_t j, const Change *to) {
  Real sum[PRODUCT_ROWS][PRODUCT_COLUMNS], c = {0};
  tile_clear(height, columns, sum);
  tile_product(count, height, columns, p, i, 0, sum);
  PRODUCT_EACH (r, height) {
    const size_t row = i + (size_t)r;
    Real variance = {0};
    if (j > 0) tile_load(count, to->spread + row * of.stride, &variance);
    PRODUCT_EACH (m, columns) {
      const size_t column = j + (size_t)m;
      Real b = to->panel[row * (size_t)columns + (size_t)m];
      tile_load(count, to->inverse + (column * of.d + row) * of.stride, &c);
      b += to->h * (c - sum[r][m]);
      variance += b * b;
      tile_store(count, &b, to->changed + (row * of.d + column) * of.stride);
    }
    tile_store(count, &variance, to->spread + row * of.stride);
  }
}

/* Computes columns j .. j + columns - 1 of B, all that these columns of A B need. */
INLINE void root_columns(const int columns, int count, Extent of, const double *hessian, size_t j,
                         const Change *to) {
  const MatrixOrder plain = {of.d * of.stride, of.stride},
                    side = {(size_t)columns * SIMD_DOUBLES, SIMD_DOUBLES};
  const MatrixFactors p = {of.d, hessian, (const double *)to->panel, plain, side};
  copy_panel(count, of.d, (size_t)columns, to->changed + j * of.stride, plain, to->panel);
  for (size_t i = 0, height; i < of.d; i += height) {
    height = tile_extent(of.d - i, PRODUCT_ROWS);
    SIMD_CALL(height, PRODUCT_ROWS, root_tile, columns, count, of, &p, i, j, to);
  }
}

INLINE void root_lanes(int count, Extent of, const double *h, const double *inverse, const double *hessian,
                       double *root, double *spread, Real *panel) {
  Change to = {.inverse = inverse, .changed = root, .spread = spread, .panel = panel};
  tile_load(count, h, &to.h);
  for (size_t j = 0, columns; j < of.d; j += columns) {
    columns = tile_extent(of.d - j, PRODUCT_COLUMNS);
    SIMD_CALL(columns, PRODUCT_COLUMNS, root_columns, count, of, hessian, j, &to);
  }
}

void vits_kernel_root(int d, int lanes, const double *h, const double *inverse, const double *hessian,
                      double *root, double *spread, double *scratch) {
  const Extent of = {(size_t)d, (size_t)lanes};
  Real *panel = (Real *)scratch;
  TILE_VECTORS(n, lanes, root_lanes, of, h + n, inverse + n, hessian + n, root + n, spread + n, panel);
}

/* Subtracts h C X from the panel of C. */
INLINE void inverse_tile(const int columns, const int height, int count, Extent of, const MatrixFactors *p,
                         size_t i, size_t j, const Change *to) {
  Real sum[PRODUCT_ROWS][PRODUCT_COLUMNS];
  tile_clear(height, columns, sum);
  tile_product(count, height, columns, p, 0, j, sum);
  PRODUCT_EACH (r, height)
    PRODUCT_EACH (m, columns) {
      const size_t row = i + (size_t)r, column = j + (size_t)m;
      const Real c = to->panel[column * (size_t)height + (size_t)r] - to->h * sum[r][m];
      tile_store(count, &c, to->changed + (row * of.d + column) * of.stride);
    }
}

/* Computes rows i .. i + height - 1 of C, all that these rows of C X need. */
INLINE void inverse_rows(const int height, int count, Extent of, const double *excess, size_t i,
                         const Change *to) {
  const MatrixOrder plain = {of.d * of.stride, of.stride}, transposed = {of.stride, of.d * of.stride},
                    side = {SIMD_DOUBLES, (size_t)height * SIMD_DOUBLES};
  const MatrixFactors p = {of.d, (const double *)to->panel, excess, side, plain};
  copy_panel(count, of.d, (size_t)height, to->changed + i * of.d * of.stride, transposed, to->panel);
  for (size_t j = 0, columns; j < of.d; j += columns) {
    columns = tile_extent(of.d - j, PRODUCT_COLUMNS);
    SIMD_CALL(columns, PRODUCT_COLUMNS, inverse_tile, height, count, of, &p, i, j, to);
  }
}

INLINE void inverse_lanes(int count, Extent of, const double *h, const double *excess, double *inverse,
                          Real *panel) {
  Change to = {.changed = inverse, .panel = panel};
  tile_load(count, h, &to.h);
  for (size_t i = 0, height; i < of.d; i += height) {
    height = tile_extent(of.d - i, PRODUCT_ROWS);
    SIMD_CALL(height, PRODUCT_ROWS, inverse_rows, count, of, excess, i, &to);
  }
}

void vits_kernel_inverse(int d, int lanes, const double *h, const double *excess, double *inverse,
                         double *scratch) {
  const Extent of = {(size_t)d, (size_t)lanes};
  Real *panel = (Real *)scratch;
  TILE_VECTORS(n, lanes, inverse_lanes, of, h + n, excess + n, inverse + n, panel);
}

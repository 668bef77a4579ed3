#include "core/matrix_kernel.h"

#include "core/matrix_tile.h"

/* Where the product goes, at the first of `count` <= SIMD_DOUBLES lanes. */
typedef struct {
  size_t rows, columns, stride;
  MatrixResult result;
  double *c;
} Product;

/* Rows i .. i + height - 1 and columns j .. j + columns - 1; of a symmetric product their mirror image
 * too. */
TILE_INLINE void matrix_tile(const int columns, const int height, int count, const MatrixFactors *p, size_t i,
                             size_t j, const Product *to) {
  Real sum[PRODUCT_ROWS][PRODUCT_COLUMNS];
  tile_clear(height, columns, sum);
  if (to->result == MATRIX_ADDED)
    PRODUCT_EACH (r, height)
      PRODUCT_EACH (m, columns)
        tile_load(count, to->c + ((i + (size_t)r) * to->columns + j + (size_t)m) * to->stride, &sum[r][m]);
  tile_product(count, height, columns, p, i, j, sum);
  PRODUCT_EACH (r, height)
    PRODUCT_EACH (m, columns) {
      const size_t row = i + (size_t)r, column = j + (size_t)m;
      tile_store(count, &sum[r][m], to->c + (row * to->columns + column) * to->stride);
      if (to->result == MATRIX_SYMMETRIC)
        tile_store(count, &sum[r][m], to->c + (column * to->columns + row) * to->stride);
    }
}

TILE_INLINE void rows_of_tiles(const int height, int count, const MatrixFactors *p, size_t i,
                               const Product *to) {
  const size_t end = to->result == MATRIX_SYMMETRIC ? i + (size_t)height : to->columns;
  for (size_t j = 0, columns; j < end; j += columns) {
    columns = tile_extent(to->columns - j, PRODUCT_COLUMNS);
    TILE_CALL(columns, PRODUCT_COLUMNS, matrix_tile, height, count, p, i, j, to);
  }
}

TILE_INLINE void product(int count, const MatrixFactors *p, const Product *to) {
  for (size_t i = 0, height; i < to->rows; i += height) {
    height = tile_extent(to->rows - i, PRODUCT_ROWS);
    TILE_CALL(height, PRODUCT_ROWS, rows_of_tiles, count, p, i, to);
  }
}

void SIMD_NAME(matrix_kernel_product)(MatrixShape shape, const double *a, MatrixOrder of_a, const double *b,
                                      MatrixOrder of_b, MatrixResult result, double *c) {
  const size_t stride = (size_t)shape.lanes;
  for (int n = 0; n < shape.lanes; n += SIMD_DOUBLES) {
    const MatrixFactors p = {(size_t)shape.depth, a + n, b + n, tile_order(of_a, stride),
                             tile_order(of_b, stride)};
    const Product to = {(size_t)shape.rows, (size_t)shape.columns, stride, result, c + n};
    if (shape.lanes - n >= SIMD_DOUBLES)
      product(SIMD_DOUBLES, &p, &to);
    else
      product(shape.lanes - n, &p, &to);
  }
}

TILE_INLINE void dot_lanes(int count, size_t rows, size_t stride, const double *x, const double *y,
                           double *out) {
  Real left = {0}, right = {0}, sum = {0};
  for (size_t i = 0; i < rows; i++) {
    tile_load(count, x + i * stride, &left);
    tile_load(count, y + i * stride, &right);
    sum += left * right;
  }
  tile_store(count, &sum, out);
}

void SIMD_NAME(matrix_kernel_dot)(int rows, int lanes, const double *x, const double *y, double *out) {
  for (int n = 0; n < lanes; n += SIMD_DOUBLES) {
    if (lanes - n >= SIMD_DOUBLES)
      dot_lanes(SIMD_DOUBLES, (size_t)rows, (size_t)lanes, x + n, y + n, out + n);
    else
      dot_lanes(lanes - n, (size_t)rows, (size_t)lanes, x + n, y + n, out + n);
  }
}

/* ---- inversion: pivots are blocks of TILE_COLUMNS rows and columns, so that an entry is read and written
 * once for each block. */

/* Entry (i, j) of the matrix whose first lane is at a. */
TILE_INLINE double *entry(double *a, size_t d, size_t stride, size_t i, size_t j) {
  return a + (i * d + j) * stride;
}

/* A small matrix in registers <- its inverse. */
TILE_INLINE void invert_block(const int size, Real block[TILE_COLUMNS][TILE_COLUMNS]) {
  for (int k = 0; k < size; k++) {
    const Real pivot = 1 / block[k][k];
    block[k][k] = (Real){0} + 1;
    for (int j = 0; j < size; j++) block[k][j] *= pivot;
    for (int i = 0; i < size; i++) {
      if (i == k) continue;
      const Real factor = block[i][k];
      block[i][k] = (Real){0};
      for (int j = 0; j < size; j++) block[i][j] -= factor * block[k][j];
    }
  }
}

/* Rows i .. i + height - 1 less their part in the pivots: a_ij -= sum_m a_ik_m a_k_mj, a_ik <- -a_ik P. */
TILE_INLINE void eliminate_rows(int count, const int height, const int size, size_t d, size_t stride,
                                double *a, size_t i, size_t k, Real pivot[TILE_COLUMNS][TILE_COLUMNS]) {
  Real factor[TILE_COLUMNS][TILE_COLUMNS] = {{{0}}}, x = {0}, row[TILE_COLUMNS] = {{0}};
  for (int r = 0; r < height; r++)
    for (int m = 0; m < size; m++)
      tile_load(count, entry(a, d, stride, i + (size_t)r, k + (size_t)m), &factor[r][m]);
  for (size_t j = 0; j < d; j++) {
    if (j == k) j += (size_t)size;
    if (j == d) break;
    for (int m = 0; m < size; m++) tile_load(count, entry(a, d, stride, k + (size_t)m, j), &row[m]);
    for (int r = 0; r < height; r++) {
      tile_load(count, entry(a, d, stride, i + (size_t)r, j), &x);
      for (int m = 0; m < size; m++) x -= factor[r][m] * row[m];
      tile_store(count, &x, entry(a, d, stride, i + (size_t)r, j));
    }
  }
  for (int r = 0; r < height; r++)
    for (int m = 0; m < size; m++) {
      x = (Real){0};
      for (int l = 0; l < size; l++) x -= factor[r][l] * pivot[l][m];
      tile_store(count, &x, entry(a, d, stride, i + (size_t)r, k + (size_t)m));
    }
}

/* Pivots k .. k + size - 1. */
TILE_INLINE void eliminate(int count, const int size, size_t d, size_t stride, double *a, size_t k) {
  Real pivot[TILE_COLUMNS][TILE_COLUMNS] = {{{0}}}, column[TILE_COLUMNS] = {{0}}, x = {0};
  for (int l = 0; l < size; l++)
    for (int m = 0; m < size; m++) {
      pivot[l][m] = (Real){0} + (l == m); /* of lanes that are not there, the identity */
      tile_load(count, entry(a, d, stride, k + (size_t)l, k + (size_t)m), &pivot[l][m]);
    }
  invert_block(size, pivot);
  for (size_t j = 0; j < d; j++) {
    if (j == k) j += (size_t)size;
    if (j == d) break;
    for (int m = 0; m < size; m++) tile_load(count, entry(a, d, stride, k + (size_t)m, j), &column[m]);
    for (int l = 0; l < size; l++) {
      x = (Real){0};
      for (int m = 0; m < size; m++) x += pivot[l][m] * column[m];
      tile_store(count, &x, entry(a, d, stride, k + (size_t)l, j));
    }
  }
  for (size_t i = 0; i < d;) {
    if (i == k) {
      i += (size_t)size;
    } else if (i + TILE_COLUMNS <= (i < k ? k : d)) {
      eliminate_rows(count, TILE_COLUMNS, size, d, stride, a, i, k, pivot);
      i += TILE_COLUMNS;
    } else {
      eliminate_rows(count, 1, size, d, stride, a, i++, k, pivot);
    }
  }
  for (int l = 0; l < size; l++)
    for (int m = 0; m < size; m++)
      tile_store(count, &pivot[l][m], entry(a, d, stride, k + (size_t)l, k + (size_t)m));
}

TILE_INLINE void invert(int count, size_t d, size_t stride, double *a) {
  size_t k = 0;
  for (; k + TILE_COLUMNS <= d; k += TILE_COLUMNS) eliminate(count, TILE_COLUMNS, d, stride, a, k);
  for (; k < d; k++) eliminate(count, 1, d, stride, a, k);
}

void SIMD_NAME(matrix_kernel_invert)(int d, int lanes, double *a) {
  for (int n = 0; n < lanes; n += SIMD_DOUBLES) {
    if (lanes - n >= SIMD_DOUBLES)
      invert(SIMD_DOUBLES, (size_t)d, (size_t)lanes, a + n);
    else
      invert(lanes - n, (size_t)d, (size_t)lanes, a + n);
  }
}

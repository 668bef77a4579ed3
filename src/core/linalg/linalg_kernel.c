/* linalg_plain.c has the same product in plain loops. */
#include "core/linalg/linalg_kernel.h"

#include "core/linalg/linalg_tile.h"

/* A product at the first of `count` <= SIMD_DOUBLES lanes, whose entries are `stride` apart: entry (i, k) of
 * A is at i of_a.row + k of_a.column. */
typedef struct {
  size_t rows, columns, depth, stride;
  const double *a, *b;
  MatrixOrder of_a, of_b;
  MatrixResult result;
  double *c;
} Product;

/* Computes rows i .. i + height - 1 and columns j .. j + columns - 1 of the product; if it is symmetric,
 * their mirror image too. */
INLINE void product_tile(const int columns, const int height, int count, const Product *p, size_t i,
                         size_t j) {
  Real sum[PRODUCT_ROWS][PRODUCT_COLUMNS], x = {0}, y[PRODUCT_COLUMNS];
  PRODUCT_EACH (m, columns) y[m] = (Real){0};
  PRODUCT_EACH (r, height)
    PRODUCT_EACH (m, columns) {
      sum[r][m] = (Real){0};
      if (p->result == MATRIX_ADDED)
        linalg_tile_load(count, p->c + ((i + (size_t)r) * p->columns + j + (size_t)m) * p->stride,
                         &sum[r][m]);
    }
  for (size_t k = 0; k < p->depth; k++) {
    PRODUCT_EACH (m, columns)
      linalg_tile_load(count, p->b + k * p->of_b.row + (j + (size_t)m) * p->of_b.column, &y[m]);
    PRODUCT_EACH (r, height) {
      linalg_tile_load(count, p->a + (i + (size_t)r) * p->of_a.row + k * p->of_a.column, &x);
      PRODUCT_EACH (m, columns) sum[r][m] += x * y[m];
    }
  }
  PRODUCT_EACH (r, height)
    PRODUCT_EACH (m, columns) {
      const size_t row = i + (size_t)r, column = j + (size_t)m;
      linalg_tile_store(count, &sum[r][m], p->c + (row * p->columns + column) * p->stride);
      if (p->result == MATRIX_SYMMETRIC)
        linalg_tile_store(count, &sum[r][m], p->c + (column * p->columns + row) * p->stride);
    }
}

INLINE void rows_of_tiles(const int height, int count, const Product *p, size_t i) {
  const size_t end = p->result == MATRIX_SYMMETRIC ? i + (size_t)height : p->columns;
  for (size_t j = 0, columns; j < end; j += columns) {
    columns = tile_extent(p->columns - j, PRODUCT_COLUMNS);
    SIMD_CALL(columns, PRODUCT_COLUMNS, product_tile, height, count, p, i, j);
  }
}

INLINE void product(int count, const Product *p) {
  for (size_t i = 0, height; i < p->rows; i += height) {
    height = tile_extent(p->rows - i, PRODUCT_ROWS);
    SIMD_CALL(height, PRODUCT_ROWS, rows_of_tiles, count, p, i);
  }
}

void linalg_kernel_product(MatrixShape shape, const double *a, MatrixOrder of_a, const double *b,
                           MatrixOrder of_b, MatrixResult result, double *c) {
  const size_t stride = (size_t)shape.lanes;
  const MatrixOrder in_a = {of_a.row * stride, of_a.column * stride},
                    in_b = {of_b.row * stride, of_b.column * stride};
  TILE_VECTORS(n, shape.lanes, product,
               &(Product){(size_t)shape.rows, (size_t)shape.columns, (size_t)shape.depth, stride, a + n,
                          b + n, in_a, in_b, result, c + n});
}

/* ---- one matrix for all lanes */

/* Eight sums, since eight additions are in flight at once: six rows take 1.6 times as long at d = 32. */
enum { SHARED_ROWS = 8, SHARED_BLOCK = 128 };

/* Columns first .. end - 1 of the matrix and the same rows of x, which are packed: rows far apart share few
 * sets of the cache. */
typedef struct {
  size_t first, end, stride;
  const double *q;
  MatrixOrder of_q;
  const Real *x;
  double *y;
} SharedBlock;

/* Adds the block's part, in the order of columns, to rows i .. i + height - 1 of y, which start from 0. */
INLINE void add_shared_rows(const int height, int count, const SharedBlock *p, size_t i) {
  Real sum[SHARED_ROWS];
  SIMD_UNROLL(8) for (int r = 0; r < height; r++) {
    sum[r] = (Real){0};
    if (p->first > 0) linalg_tile_load(count, p->y + (i + (size_t)r) * p->stride, &sum[r]);
  }
  for (size_t j = p->first; j < p->end; j++) {
    const double *column = p->q + i * p->of_q.row + j * p->of_q.column;
    SIMD_UNROLL(8)
    for (int r = 0; r < height; r++) sum[r] += column[(size_t)r * p->of_q.row] * p->x[j - p->first];
  }
  SIMD_UNROLL(8)
  for (int r = 0; r < height; r++) linalg_tile_store(count, &sum[r], p->y + (i + (size_t)r) * p->stride);
}

INLINE void multiply_shared(int count, size_t d, size_t stride, const double *q, MatrixOrder of_q,
                            const double *x, double *y) {
  Real packed[SHARED_BLOCK];
  for (size_t first = 0; first < d; first += SHARED_BLOCK) {
    const size_t end = first + SHARED_BLOCK < d ? first + SHARED_BLOCK : d;
    const SharedBlock block = {
        .first = first, .end = end, .stride = stride, .q = q, .of_q = of_q, .x = packed, .y = y};
    for (size_t j = first; j < end; j++) {
      packed[j - first] = (Real){0};
      linalg_tile_load(count, x + j * stride, &packed[j - first]);
    }
    size_t i = 0;
    for (; i + SHARED_ROWS <= d; i += SHARED_ROWS) add_shared_rows(SHARED_ROWS, count, &block, i);
    for (; i + SHARED_ROWS / 2 <= d; i += SHARED_ROWS / 2) add_shared_rows(SHARED_ROWS / 2, count, &block, i);
    for (; i < d; i++) add_shared_rows(1, count, &block, i);
  }
}

void linalg_kernel_shared(int d, int lanes, const double *q, MatrixOrder of_q, const double *x, double *y) {
  TILE_VECTORS(n, lanes, multiply_shared, (size_t)d, (size_t)lanes, q, of_q, x + n, y + n);
}

INLINE void dot_lanes(int count, size_t rows, size_t stride, const double *x, const double *y, double *out) {
  Real sum = {0};
  for (size_t i = 0; i < rows * stride; i += stride)
    sum += linalg_tile_read(count, 0, x + i) * linalg_tile_read(count, 0, y + i);
  linalg_tile_store(count, &sum, out);
}

void linalg_kernel_dot(int rows, int lanes, const double *x, const double *y, double *out) {
  TILE_VECTORS(n, lanes, dot_lanes, (size_t)rows, (size_t)lanes, x + n, y + n, out + n);
}

INLINE void add_quadratic(int count, size_t d, size_t stride, double factor, const double *b, const double *x,
                          const double *image, double *out) {
  Real sum = linalg_tile_read(count, 0, out);
  for (size_t i = 0; i < d * stride; i += stride)
    sum += factor * linalg_tile_read(count, 0, x + i) *
           (linalg_tile_read(count, 0, b + i) - 0.5 * linalg_tile_read(count, 0, image + i));
  linalg_tile_store(count, &sum, out);
}

void linalg_kernel_add_quadratic(int d, int lanes, double factor, const double *b, const double *x,
                                 const double *image, double *out) {
  TILE_VECTORS(n, lanes, add_quadratic, (size_t)d, (size_t)lanes, factor, b + n, x + n, image + n, out + n);
}

/* ---- inversion of definite matrices: the sweep operator (Goodnight 1979) for blocks of SWEEP_PIVOTS pivots,
 * which keeps a symmetric matrix symmetric. Swept by all pivots, A becomes -A^-1. */

/* The lower triangle of a matrix, and the columns of the pivots before and after a sweep. */
typedef struct {
  size_t d, stride;
  double *a;
  Real *before, *after; /* [d, SWEEP_PIVOTS] */
} Sweep;

INLINE double *entry(const Sweep *s, size_t i, size_t j) { return s->a + (i * s->d + j) * s->stride; }

/* Inverts a small matrix in registers. */
INLINE void invert_block(const int size, Real block[SWEEP_PIVOTS][SWEEP_PIVOTS]) {
  PRODUCT_EACH (k, size) {
    const Real pivot = 1 / block[k][k];
    block[k][k] = real_of(1);
    PRODUCT_EACH (j, size) block[k][j] *= pivot;
    PRODUCT_EACH (i, size) {
      if (i == k) continue;
      const Real factor = block[i][k];
      block[i][k] = (Real){0};
      PRODUCT_EACH (j, size) block[i][j] -= factor * block[k][j];
    }
  }
}

/* Collects columns k .. k + size - 1, taken from the rows above the diagonal, and computes their products
 * with the inverse of the pivots' block. */
INLINE void sweep_columns(const int size, int count, const Sweep *s, size_t k,
                          Real pivot[SWEEP_PIVOTS][SWEEP_PIVOTS]) {
  for (size_t i = 0; i < s->d; i++) {
    Real before[SWEEP_PIVOTS], *after = s->after + i * SWEEP_PIVOTS;
    PRODUCT_EACH (m, size) {
      const size_t column = k + (size_t)m;
      before[m] = (Real){0};
      linalg_tile_load(count, i > column ? entry(s, i, column) : entry(s, column, i), &before[m]);
    }
    PRODUCT_EACH (m, size) {
      Real sum = {0};
      PRODUCT_EACH (l, size) sum += before[l] * pivot[l][m];
      after[m] = sum;
      s->before[i * SWEEP_PIVOTS + (size_t)m] = before[m];
    }
  }
}

/* Subtracts from rows i .. i + height - 1, up to the diagonal, what the pivots account for. */
INLINE void sweep_rows(const int height, const int size, int count, const Sweep *s, size_t i) {
  Real factor[SWEEP_PIVOTS][SWEEP_PIVOTS], before[SWEEP_PIVOTS], x = {0};
  PRODUCT_EACH (r, height)
    PRODUCT_EACH (m, size) factor[r][m] = s->after[(i + (size_t)r) * SWEEP_PIVOTS + (size_t)m];
  for (size_t j = 0; j < i + (size_t)height; j++) {
    PRODUCT_EACH (m, size) before[m] = s->before[j * SWEEP_PIVOTS + (size_t)m];
    PRODUCT_EACH (r, height) {
      linalg_tile_load(count, entry(s, i + (size_t)r, j), &x);
      PRODUCT_EACH (m, size) x -= factor[r][m] * before[m];
      linalg_tile_store(count, &x, entry(s, i + (size_t)r, j));
    }
  }
}

/* Sweeps the matrix by pivots k .. k + size - 1. */
INLINE void sweep_block(const int size, int count, const Sweep *s, size_t k) {
  Real pivot[SWEEP_PIVOTS][SWEEP_PIVOTS];
  PRODUCT_EACH (l, size)
    PRODUCT_EACH (m, size) {
      const size_t row = k + (size_t)(l > m ? l : m), column = k + (size_t)(l > m ? m : l);
      pivot[l][m] = real_of(l == m); /* the identity in unused lanes */
      linalg_tile_load(count, entry(s, row, column), &pivot[l][m]);
    }
  invert_block(size, pivot);
  sweep_columns(size, count, s, k, pivot);
  for (size_t i = 0, height; i < s->d; i += height) {
    height = s->d - i < SWEEP_PIVOTS ? s->d - i : SWEEP_PIVOTS;
    if (i != k) SIMD_CALL(height, SWEEP_PIVOTS, sweep_rows, size, count, s, i);
  }
  for (size_t i = 0; i < s->d; i++)
    PRODUCT_EACH (m, size) {
      const size_t column = k + (size_t)m;
      const Real x =
          i < k || i >= k + (size_t)size ? s->after[i * SWEEP_PIVOTS + (size_t)m] : -pivot[i - k][m];
      linalg_tile_store(count, &x, i > column ? entry(s, i, column) : entry(s, column, i));
    }
}

INLINE void invert(int count, const Sweep *s) {
  for (size_t k = 0, size; k < s->d; k += size) {
    size = s->d - k < SWEEP_PIVOTS ? s->d - k : SWEEP_PIVOTS;
    SIMD_CALL(size, SWEEP_PIVOTS, sweep_block, count, s, k);
  }
  for (size_t i = 0; i < s->d; i++)
    for (size_t j = 0; j <= i; j++) {
      Real x = {0};
      linalg_tile_load(count, entry(s, i, j), &x);
      x = -x;
      linalg_tile_store(count, &x, entry(s, i, j));
      linalg_tile_store(count, &x, entry(s, j, i));
    }
}

void linalg_kernel_invert(int d, int lanes, double *a, double *scratch) {
  Real *before = (Real *)scratch, *after = before + (size_t)d * SWEEP_PIVOTS;
  TILE_VECTORS(
      n, lanes, invert,
      &(Sweep){.d = (size_t)d, .stride = (size_t)lanes, .a = a + n, .before = before, .after = after});
}

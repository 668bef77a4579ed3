/* linalg_plain.c has the Cholesky factors in plain loops. The rotations by which Jacobi's method makes a
 * symmetric matrix diagonal are the classical ones (Golub and Van Loan, Matrix Computations, 8.5). */
#include "core/linalg/linalg_factor.h"

#include "core/arena.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/linalg/linalg_tile.h"

#include <cblas.h>
#include <float.h>

/* ---- eigenvectors */

/* A rotation is a chain of dependent divisions and roots, so a few vectors of lanes go through it side by
 * side. The entries that come last keep matrices of a power of two apart in the cache. */
enum { SWEEPS = 12, JACOBI_VECTORS = 4, JACOBI_APART = 3 };

/* Goes through LAPACK lane by lane. Decompositions in these dimensions cost so much that an allocation hardly
 * counts. */
static void linalg_eigen_each_lane(int d, int lanes, const double *a, double *q, double *w) {
  const size_t size = (size_t)d * (size_t)d;
  double *own, *vectors, *values;
  const Status status = memory_new((void **)&own, 2 * size + (size_t)d, sizeof *own);
  ASSERT(status == STATUS_OK);
  vectors = own + size;
  values = vectors + size;
  for (int n = 0; n < lanes; n++) {
    bool good = true;
    lanes_copy(d * d, 1, a + n, lanes, own, 1);
    for (size_t k = 0; k < size; k++) good = good && isfinite(own[k]);
    good = good && linalg_eigen(d, own, vectors, values) == STATUS_OK;
    if (!good)
      for (size_t k = 0; k < size + (size_t)d; k++) vectors[k] = NAN;
    lanes_copy(d * d, 1, vectors, 1, q + n, lanes);
    lanes_copy(d, 1, values, 1, w + n, lanes);
  }
  free(own);
}

/* Rotates (x, y) <- (c x - s y, s x + c y). Adding a zero to one product leaves the compiler no choice of
 * which to fuse with the sum (special_two_products). */
INLINE void jacobi_rotate(Real c, Real s, Real *x, Real *y) {
  const Real old = *x;
  *x = c * old + (-s * *y + 0.0);
  *y = s * old + (c * *y + 0.0);
}

/* Finds the rotation that makes a_pr zero, with a tangent of at most 1, as its cosine and sine; it is the
 * identity where a_pr is negligible. Updates a_pp, a_rr and a_pr. Returns where it is not the identity.
 * Avoids squares of a, which could overflow. */
INLINE Mask jacobi_annihilate(Real *a_pp, Real *a_rr, Real *a_pr, Real *c, Real *s) {
  const Real difference = *a_rr - *a_pp, twice = 2 * *a_pr, zero = {0}, one = real_of(1);
  const Real gap = real_size(difference), size = real_size(twice);
  const Real size_p = real_size(*a_pp), size_r = real_size(*a_rr);
  const Mask gap_is_larger = gap > size;
  const Real larger = real_choose(gap_is_larger, gap, size);
  const Real smaller = real_choose(gap_is_larger, size, gap);
  const Real ratio = smaller / real_choose(larger > 0, larger, one);
  const Real denominator = gap + larger * real_root(1 + ratio * ratio);
  const Mask still = size <= 0x1p-54 * real_choose(size_p < size_r, size_p, size_r);
  const Real signed_twice = (Real)((Mask)twice ^ ((Mask)difference & INT64_MIN));
  const Real tangent =
      real_choose(still, zero, signed_twice / real_choose(denominator > 0, denominator, one));
  *a_pp -= tangent * *a_pr;
  *a_rr += tangent * *a_pr;
  *a_pr = zero;
  *c = 1 / real_root(1 + tangent * tangent);
  *s = tangent * *c;
  return ~still;
}

/* Diagonalises a[vectors, d, d], given by upper triangles: leaves the eigenvalues on the diagonals, and turns
 * q[vectors, d, d] from the identity into the eigenvectors. A lane that has converged stays the same bit for
 * bit, so that no lane depends on when the others stop. */
static void jacobi_diagonalise(int d, int vectors, int stride, Real *a, Real *q) {
  Mask moved = ~(Mask){0};
  for (int sweep = 0; sweep < (d == 2 ? 1 : SWEEPS) && !real_everywhere(~moved); sweep++) {
    moved = (Mask){0};
    for (int p = 0; p < d; p++)
      for (int r = p + 1; r < d; r++) {
        Real c[JACOBI_VECTORS], s[JACOBI_VECTORS];
        for (int v = 0; v < vectors; v++) {
          Real *own = a + v * stride;
          moved |= jacobi_annihilate(&own[p * d + p], &own[r * d + r], &own[p * d + r], &c[v], &s[v]);
        }
        for (int k = 0; k < d; k++)
          for (int v = 0; v < vectors; v++) {
            Real *own = a + v * stride, *turned = q + v * stride;
            if (k != p && k != r)
              jacobi_rotate(c[v], s[v], &own[k < p ? k * d + p : p * d + k],
                            &own[k < r ? k * d + r : r * d + k]);
            jacobi_rotate(c[v], s[v], &turned[k * d + p], &turned[k * d + r]);
          }
      }
  }
}

void linalg_factor_eigen(int d, int lanes, const double *a, double *q, double *w) {
  Real own[TILE_DOUBLES / REAL_WIDTH + JACOBI_APART], turned[TILE_DOUBLES / REAL_WIDTH + JACOBI_APART];
  const int size = d * d, stride = size + JACOBI_APART, fit = TILE_DOUBLES / REAL_WIDTH / stride;
  const int most = fit < 1 ? 1 : fit < JACOBI_VECTORS ? fit : JACOBI_VECTORS;
  if (d > LINALG_BATCH_DIMENSION) {
    linalg_eigen_each_lane(d, lanes, a, q, w);
    return;
  }
  for (RealLanes next = real_begin(lanes); next.count > 0;) {
    RealLanes at[JACOBI_VECTORS];
    int vectors = 0;
    while (vectors < most && next.count > 0) {
      at[vectors] = next;
      real_load(next, size, a, own + vectors * stride);
      for (int k = 0; k < size; k++) turned[vectors * stride + k] = real_of(k % (d + 1) == 0);
      vectors++;
      real_next(&next);
    }
    jacobi_diagonalise(d, vectors, stride, own, turned);
    for (int v = 0; v < vectors; v++) {
      for (int i = 0; i < d; i++)
        real_store(at[v], 1, &own[v * stride + i * (d + 1)], w + (size_t)i * next.lanes);
      real_store(at[v], size, turned + v * stride, q);
    }
  }
}

INLINE void spectral(int count, size_t d, size_t stride, const double *q, const double *w, double *a) {
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++) {
      Real sum = {0};
      for (size_t k = 0; k < d; k++)
        sum += linalg_tile_read(count, 0, q + (i * d + k) * stride) *
               linalg_tile_read(count, 0, w + k * stride) *
               linalg_tile_read(count, 0, q + (j * d + k) * stride);
      linalg_tile_store(count, &sum, a + (i * d + j) * stride);
      linalg_tile_store(count, &sum, a + (j * d + i) * stride);
    }
}

void linalg_factor_spectral(int d, int lanes, const double *q, const double *w, double *a) {
  TILE_VECTORS(n, lanes, spectral, (size_t)d, (size_t)lanes, q + n, w + n, a + n);
}

/* ---- Cholesky factors */

/* Computes rows i .. i + height - 1 of column j of L from the columns before it; their sums stay in
 * registers. */
enum { FACTOR_ROWS = 8 };
INLINE void factor_rows(const int height, size_t row, size_t i, size_t j, Real inverse, Real *a) {
  Real x[FACTOR_ROWS];
  for (int r = 0; r < height; r++) x[r] = a[(i + (size_t)r) * row + j];
  for (size_t k = 0; k < j; k++)
    for (int r = 0; r < height; r++) x[r] -= a[(i + (size_t)r) * row + k] * a[j * row + k];
  for (int r = 0; r < height; r++) a[(i + (size_t)r) * row + j] = x[r] * inverse;
}

/* Returns how far rows are apart in the matrix that is factored: an odd number of vectors, since rows that
 * are a multiple of 4 kB apart would push each other out of the cache. */
INLINE size_t factor_row(size_t d) { return d | 1; }

/* Factors `count` <= SIMD_DOUBLES lanes in own[d, factor_row], where rows that are far apart in `a` share the
 * cache. */
INLINE void factor_lanes(int count, size_t d, size_t stride, double *a, Real *own, int *jitters) {
  const Real one = real_of(1);
  const size_t row = factor_row(d);
  /* The replacement for a bad pivot: 2^-52 times the largest diagonal entry, which a sum of that size cannot
   * tell from zero. The entries below it, which should be zero, are set to zero: divided by so small a root,
   * they would grow from column to column. */
  Real least = real_of(0x1p-1000), bad = {0};
  for (size_t i = 0; i < d; i++) {
    for (size_t j = 0; j <= i; j++) /* the identity in unused lanes */
      own[i * row + j] = linalg_tile_read(count, i == j, a + (i * d + j) * stride);
    least = real_max(0x1p-52 * own[i * row + i], least);
  }
  for (size_t j = 0, i; j < d; j++) {
    Real pivot = own[j * row + j];
    for (size_t k = 0; k < j; k++) pivot -= own[j * row + k] * own[j * row + k];
    const Mask good = pivot > 0;
    bad += real_choose(good, (Real){0}, one);
    own[j * row + j] = real_root(real_choose(good, pivot, least));
    const Real inverse = real_choose(good, one, (Real){0}) / own[j * row + j];
    for (i = j + 1; i + FACTOR_ROWS <= d; i += FACTOR_ROWS) factor_rows(FACTOR_ROWS, row, i, j, inverse, own);
    for (; i + FACTOR_ROWS / 2 <= d; i += FACTOR_ROWS / 2)
      factor_rows(FACTOR_ROWS / 2, row, i, j, inverse, own);
    for (; i < d; i++) factor_rows(1, row, i, j, inverse, own);
  }
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++) linalg_tile_store(count, &own[i * row + j], a + (i * d + j) * stride);
  for (int n = 0; jitters && n < count; n++) jitters[n] += (int)bad[n];
}

static void linalg_cholesky_vectors(int d, int count, int lanes, double *a, int *jitters) {
  enum { FEW = 32 };
  Real few[FEW * (FEW + 1)], *own = few;
  if (d > FEW) own = aligned_alloc(sizeof *own, (size_t)d * factor_row((size_t)d) * sizeof *own);
  ASSERT(own);
  TILE_VECTORS(n, count, factor_lanes, (size_t)d, (size_t)lanes, a + n, own, jitters ? jitters + n : NULL);
  if (d > FEW) free(own);
}

/* Goes through LAPACK lane by lane, except for matrices that need jitter. */
static void linalg_cholesky_each_lane(int d, int lanes, double *a, int *jitters) {
  double *own;
  const Status status = memory_new((void **)&own, (size_t)d * (size_t)d, sizeof *own);
  ASSERT(status == STATUS_OK);
  for (int n = 0; n < lanes; n++) {
    lanes_copy(d * d, 1, a + n, lanes, own, 1);
    if (!linalg_try_cholesky(d, own)) {
      linalg_cholesky_vectors(d, 1, lanes, a + n, jitters ? jitters + n : NULL);
      continue;
    }
    for (int i = 0; i < d; i++)
      lanes_copy(i + 1, 1, own + i * d, 1, a + (size_t)(i * d) * (size_t)lanes + n, lanes);
  }
  free(own);
}

void linalg_factor_cholesky(int d, int lanes, double *a, int *jitters) {
  if (linalg_lanes_is_single(d, lanes) || d > LINALG_TILE_DIMENSION)
    linalg_cholesky_each_lane(d, lanes, a, jitters);
  else
    linalg_cholesky_vectors(d, lanes, lanes, a, jitters);
}

/* ---- solves and inverses with a factor */

/* Solves L y = x, or L' y = x with `transposed`. */
INLINE void solve(int count, const bool transposed, size_t d, size_t stride, const double *l, double *x) {
  for (size_t step = 0; step < d; step++) {
    const size_t i = transposed ? d - 1 - step : step, end = transposed ? d : i;
    Real sum = linalg_tile_read(count, 0, x + i * stride);
    for (size_t j = transposed ? i + 1 : 0; j < end; j++)
      sum -= linalg_tile_read(count, 0, l + (transposed ? j * d + i : i * d + j) * stride) *
             linalg_tile_read(count, 0, x + j * stride);
    sum /= linalg_tile_read(count, 1, l + i * (d + 1) * stride);
    linalg_tile_store(count, &sum, x + i * stride);
  }
}

INLINE void solve_lanes(int d, int lanes, const bool transposed, const double *l, double *x) {
  if (linalg_lanes_is_single(d, lanes))
    cblas_dtrsv(CblasRowMajor, CblasLower, transposed ? CblasTrans : CblasNoTrans, CblasNonUnit, d, l, d, x,
                1);
  else
    TILE_VECTORS(n, lanes, solve, transposed, (size_t)d, (size_t)lanes, l + n, x + n);
}

void linalg_factor_forward(int d, int lanes, const double *l, double *x) {
  solve_lanes(d, lanes, false, l, x);
}

void linalg_factor_backward(int d, int lanes, const double *l, double *x) {
  solve_lanes(d, lanes, true, l, x);
}

void linalg_factor_solve(int d, int lanes, const double *l, double *x) {
  linalg_factor_forward(d, lanes, l, x);
  linalg_factor_backward(d, lanes, l, x);
}

/* Solves L y = x by the sums of each row. */
INLINE void forward_shared(int count, size_t d, size_t stride, const double *l, double *x) {
  for (size_t i = 0; i < d; i++) {
    Real sum = linalg_tile_read(count, 0, x + i * stride);
    for (size_t j = 0; j < i; j++) sum -= l[i * d + j] * linalg_tile_read(count, 0, x + j * stride);
    sum /= real_of(l[i * (d + 1)]);
    linalg_tile_store(count, &sum, x + i * stride);
  }
}

/* Solves L' y = x: as soon as an entry is known, it is taken from those above, which reads L by rows too. */
INLINE void backward_shared(int count, size_t d, size_t stride, const double *l, double *x) {
  for (size_t i = d; i-- > 0;) {
    const Real y = linalg_tile_read(count, 0, x + i * stride) / real_of(l[i * (d + 1)]);
    linalg_tile_store(count, &y, x + i * stride);
    for (size_t j = 0; j < i; j++) {
      const Real left = linalg_tile_read(count, 0, x + j * stride) - l[i * d + j] * y;
      linalg_tile_store(count, &left, x + j * stride);
    }
  }
}

void linalg_factor_forward_shared(int d, int lanes, const double *l, double *x) {
  TILE_VECTORS(n, lanes, forward_shared, (size_t)d, (size_t)lanes, l, x + n);
}

void linalg_factor_backward_shared(int d, int lanes, const double *l, double *x) {
  TILE_VECTORS(n, lanes, backward_shared, (size_t)d, (size_t)lanes, l, x + n);
}

/* Computes L^-1 in the lower triangle of out[d, d], with one division per row, and then L^-T L^-1 in place:
 * row i needs rows i .. d - 1, and replaces its diagonal entry last. */
INLINE void invert_factor(int count, size_t d, size_t stride, const double *l, double *out) {
  for (size_t i = 0; i < d; i++) {
    const Real diagonal = 1 / linalg_tile_read(count, 1, l + i * (d + 1) * stride);
    for (size_t j = 0; j < i; j++) {
      Real sum = {0};
      for (size_t k = j; k < i; k++)
        sum -= linalg_tile_read(count, 0, l + (i * d + k) * stride) *
               linalg_tile_read(count, 0, out + (k * d + j) * stride);
      sum *= diagonal;
      linalg_tile_store(count, &sum, out + (i * d + j) * stride);
    }
    linalg_tile_store(count, &diagonal, out + i * (d + 1) * stride);
  }
  for (size_t i = 0; i < d; i++) {
    const Real diagonal = linalg_tile_read(count, 0, out + i * (d + 1) * stride);
    for (size_t j = 0; j <= i; j++) {
      Real sum = linalg_tile_read(count, 0, out + (i * d + j) * stride) * diagonal;
      for (size_t k = i + 1; k < d; k++)
        sum += linalg_tile_read(count, 0, out + (k * d + i) * stride) *
               linalg_tile_read(count, 0, out + (k * d + j) * stride);
      linalg_tile_store(count, &sum, out + (i * d + j) * stride);
      linalg_tile_store(count, &sum, out + (j * d + i) * stride);
    }
  }
}

void linalg_factor_inverse(int d, int lanes, const double *l, double *inverse) {
  if (linalg_lanes_is_single(d, lanes)) {
    linalg_inverse(d, l, inverse);
    return;
  }
  TILE_VECTORS(n, lanes, invert_factor, (size_t)d, (size_t)lanes, l + n, inverse + n);
}

/* ---- orthonormal vectors */

INLINE Real dot_product(int count, size_t d, size_t stride, const double *x, const double *y) {
  Real sum = {0};
  for (size_t i = 0; i < d * stride; i += stride)
    sum += linalg_tile_read(count, 0, x + i) * linalg_tile_read(count, 0, y + i);
  return sum;
}

/* Computes x += factor y. */
INLINE void add_multiple(int count, size_t d, size_t stride, Real factor, const double *y, double *x) {
  for (size_t i = 0; i < d * stride; i += stride) {
    const Real sum = linalg_tile_read(count, 0, x + i) + factor * linalg_tile_read(count, 0, y + i);
    linalg_tile_store(count, &sum, x + i);
  }
}

INLINE void orthonormalise(int count, size_t vectors, size_t d, size_t stride, double *e, double *length) {
  const size_t vector = d * stride;
  for (size_t m = 0; m < vectors; m++) {
    double *own = e + m * vector;
    const Real before = real_root(dot_product(count, d, stride, own, own));
    linalg_tile_store(count, &before, length + m * stride);
    for (const double *other = e; other < own; other += vector)
      add_multiple(count, d, stride, -dot_product(count, d, stride, other, own), other, own);
    const Real square = real_max(dot_product(count, d, stride, own, own), real_of(DBL_MIN));
    add_multiple(count, d, stride, 1 / real_root(square) - 1, own, own);
  }
}

void linalg_factor_orthonormalise(int count, int d, int lanes, double *e, double *length) {
  TILE_VECTORS(n, lanes, orthonormalise, (size_t)count, (size_t)d, (size_t)lanes, e + n, length + n);
}

/* Batched loops over matrices with the lane last: the compiler turns each inner loop into vector
 * instructions, so nothing in them branches on data. Eigendecomposition: cyclic Jacobi (Golub and Van Loan,
 * Matrix Computations, 8.5). */
#include "core/linalg.h"

#include "core/cholesky_kernel.h"
#include "core/matrix_kernel.h"
#include "core/memory.h"
#include "core/real.h"
#include "core/tiling.h"

#include <cblas.h>
#include <float.h>
#include <lapacke.h>

/* ---- one matrix at a time, by BLAS and LAPACK */

/* Returns scratch for the two functions below. They cost d^3 operations, so that an allocation hardly
 * counts. */
static double *lapack_new_square(int d) {
  double *square;
  Status status = memory_new((void **)&square, (size_t)d * (size_t)d + (size_t)d, sizeof *square);
  ASSERT(status == STATUS_OK);
  return square;
}

static void lapack_eigen_lanes(int d, int lanes, const double *a, double *q, double *w) {
  size_t elements = (size_t)d * d, stride = (size_t)lanes;
  double *work = lapack_new_square(d), *values = work + elements;
  for (size_t n = 0; n < stride; n++) {
    bool finite = true;
    for (size_t k = 0; k < elements; k++) {
      work[k] = a[k * stride + n];
      finite = finite && isfinite(work[k]);
    }
    bool good = finite && LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', d, work, d, values) == 0;
    for (size_t i = 0; i < (size_t)d; i++) {
      w[i * stride + n] = good ? values[i] : NAN;
      for (size_t j = 0; j < (size_t)d; j++)
        q[(i * (size_t)d + j) * stride + n] = good ? work[j * (size_t)d + i] : NAN;
    }
  }
  free(work);
}

static void lapack_cholesky_lanes(int d, int lanes, double *a, int *jitters) {
  size_t stride = (size_t)lanes;
  double *work = lapack_new_square(d);
  for (size_t n = 0; n < stride; n++) {
    for (size_t k = 0; k < (size_t)d * d; k++) work[k] = a[k * stride + n];
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', d, work, d) != 0) {
      cholesky_kernel_factor(d, 1, stride, a + n, jitters ? jitters + n : NULL);
      continue;
    }
    for (size_t i = 0; i < (size_t)d; i++)
      for (size_t j = 0; j <= i; j++) a[(i * (size_t)d + j) * stride + n] = work[i * (size_t)d + j];
  }
  free(work);
}

static void blas_solve_triangle(int d, bool transposed, const double *l, double *x) {
  cblas_dtrsv(CblasRowMajor, CblasLower, transposed ? CblasTrans : CblasNoTrans, CblasNonUnit, d, l, d, x, 1);
}

static void blas_multiply(int d, bool transposed, const double *q, const double *x, double *y) {
  cblas_dgemv(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, d, d, 1, q, d, x, 1, 0, y, 1);
}

/* ---- many matrices side by side */

/* Jacobi works on copies of up to CHUNK_LANES lanes and TILE_DOUBLES doubles, which stay in the first-level
 * cache. The number of lanes is rounded up to a multiple of VECTOR_LANES with zero matrices, so that a lane
 * goes through the same instructions at every place. */
enum { SWEEPS = 12 };

static inline int jacobi_tile_lanes(int d) {
  int lanes = TILE_DOUBLES / (d * d) / VECTOR_LANES * VECTOR_LANES;
  return lanes < CHUNK_LANES ? lanes : CHUNK_LANES;
}

/* Rotates (x, y) <- (c x - s y, s x + c y) for `width` lanes. */
static inline void linalg_rotate(int width, const double *restrict c, const double *restrict s,
                                 double *restrict x, double *restrict y) {
  for (int n = 0; n < width; n++) {
    double x_n = x[n], y_n = y[n];
    x[n] = special_two_products(c[n], x_n, -s[n], y_n);
    y[n] = special_two_products(s[n], x_n, c[n], y_n);
  }
}

/* Finds the rotation that makes a_pr zero, with a tangent of at most 1, as its cosine and sine; it is the
 * identity where a_pr is negligible. Updates a_pp, a_rr and a_pr, and counts the rotations in moved[n].
 * Avoids squares of a, which could overflow. */
static inline void jacobi_annihilate(int width, double *restrict a_pp, double *restrict a_rr,
                                     double *restrict a_pr, double *restrict c, double *restrict s,
                                     double *restrict moved) {
  for (int n = 0; n < width; n++) {
    double difference = a_rr[n] - a_pp[n], twice = 2 * a_pr[n];
    double size_p = fabs(a_pp[n]), size_r = fabs(a_rr[n]);
    double least = size_p < size_r ? size_p : size_r;
    double gap = fabs(difference), size = fabs(twice);
    double larger = gap > size ? gap : size, smaller = gap > size ? size : gap;
    double ratio = smaller / (larger > 0 ? larger : 1);
    double denominator = gap + larger * sqrt(1 + ratio * ratio);
    double tangent = copysign(1, difference) * twice / (denominator > 0 ? denominator : 1);
    int negligible = size <= 0x1p-54 * least;
    tangent = negligible ? 0 : tangent;
    moved[n] += negligible ? 0 : 1;
    a_pp[n] -= tangent * a_pr[n];
    a_rr[n] += tangent * a_pr[n];
    a_pr[n] = 0;
    c[n] = 1 / sqrt(1 + tangent * tangent);
    s[n] = tangent * c[n];
  }
}

/* Diagonalises a[d, d, width], given by its upper triangle: leaves the eigenvalues on the diagonal, and turns
 * q[d, d, width] from the identity into the eigenvectors. A lane that has converged stays the same bit for
 * bit, so that no lane depends on when the others stop. */
SIMD_CLONES
static void jacobi_diagonalise(int d, int width, double *restrict a, double *restrict q) {
  double c[CHUNK_LANES], s[CHUNK_LANES], moved[CHUNK_LANES];
  int sweeps = d == 2 ? 1 : SWEEPS;
  for (int sweep = 0; sweep < sweeps; sweep++) {
    for (int n = 0; n < width; n++) moved[n] = 0;
    for (int p = 0; p < d; p++) {
      for (int r = p + 1; r < d; r++) {
        jacobi_annihilate(width, a + (p * d + p) * width, a + (r * d + r) * width, a + (p * d + r) * width, c,
                          s, moved);
        for (int k = 0; k < d; k++) {
          int k_p = k < p ? k * d + p : p * d + k, k_r = k < r ? k * d + r : r * d + k;
          if (k != p && k != r) linalg_rotate(width, c, s, a + k_p * width, a + k_r * width);
          linalg_rotate(width, c, s, q + (k * d + p) * width, q + (k * d + r) * width);
        }
      }
    }
    double total = 0;
    for (int n = 0; n < width; n++) total += moved[n];
    if (total == 0) break;
  }
}

void linalg_eigen_lanes(int d, int lanes, const double *a, double *q, double *w) {
  if (d > LINALG_BATCH_DIMENSION) {
    lapack_eigen_lanes(d, lanes, a, q, w);
    return;
  }
  double a_work[TILE_DOUBLES], q_work[TILE_DOUBLES];
  for (int first = 0; first < lanes; first += jacobi_tile_lanes(d)) {
    int count = lanes - first < jacobi_tile_lanes(d) ? lanes - first : jacobi_tile_lanes(d);
    int width = (count + VECTOR_LANES - 1) / VECTOR_LANES * VECTOR_LANES;
    size_t bytes = (size_t)count * sizeof(double);
    memset(a_work, 0, (size_t)(d * d * width) * sizeof(double));
    memset(q_work, 0, (size_t)(d * d * width) * sizeof(double));
    for (int i = 0; i < d; i++) {
      for (int n = 0; n < width; n++) q_work[(i * d + i) * width + n] = 1;
      for (int j = i; j < d; j++)
        memcpy(a_work + (i * d + j) * width, a + (size_t)(i * d + j) * lanes + first, bytes);
    }
    jacobi_diagonalise(d, width, a_work, q_work);
    for (int i = 0; i < d; i++) memcpy(w + (size_t)i * lanes + first, a_work + (i * d + i) * width, bytes);
    for (int k = 0; k < d * d; k++) memcpy(q + (size_t)k * lanes + first, q_work + k * width, bytes);
  }
}

SIMD_CLONES
void linalg_spectral_lanes(int d, int lanes, const double *restrict q, const double *restrict w,
                           double *restrict a) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      double *restrict low = a + (i * d + j) * lanes;
      for (int n = 0; n < lanes; n++) low[n] = 0;
      for (int k = 0; k < d; k++) {
        const double *restrict q_ik = q + (i * d + k) * lanes, *restrict q_jk = q + (j * d + k) * lanes,
                               *restrict w_k = w + k * lanes;
        for (int n = 0; n < lanes; n++) low[n] += q_ik[n] * w_k[n] * q_jk[n];
      }
      if (j < i) memcpy(a + (j * d + i) * lanes, low, (size_t)lanes * sizeof *low);
    }
}

void linalg_cholesky_lanes(int d, int lanes, double *a, int *jitters) {
  if (linalg_is_single(d, lanes) || d > LINALG_TILE_DIMENSION)
    lapack_cholesky_lanes(d, lanes, a, jitters);
  else
    cholesky_kernel_factor(d, lanes, (size_t)lanes, a, jitters);
}

SIMD_CLONES
static void linalg_forward(int d, int lanes, const double *restrict l, double *restrict x) {
  size_t stride = (size_t)lanes;
  for (int i = 0; i < d; i++) {
    double *restrict x_i = x + (size_t)i * stride;
    for (int j = 0; j < i; j++) {
      const double *restrict l_ij = l + (size_t)(i * d + j) * stride, *restrict x_j = x + (size_t)j * stride;
      for (int n = 0; n < lanes; n++) x_i[n] -= l_ij[n] * x_j[n];
    }
    const double *restrict l_ii = l + (size_t)(i * d + i) * stride;
    for (int n = 0; n < lanes; n++) x_i[n] /= l_ii[n];
  }
}

SIMD_CLONES
static void linalg_backward(int d, int lanes, const double *restrict l, double *restrict x) {
  size_t stride = (size_t)lanes;
  for (int i = d - 1; i >= 0; i--) {
    double *restrict x_i = x + (size_t)i * stride;
    for (int j = i + 1; j < d; j++) {
      const double *restrict l_ji = l + (size_t)(j * d + i) * stride, *restrict x_j = x + (size_t)j * stride;
      for (int n = 0; n < lanes; n++) x_i[n] -= l_ji[n] * x_j[n];
    }
    const double *restrict l_ii = l + (size_t)(i * d + i) * stride;
    for (int n = 0; n < lanes; n++) x_i[n] /= l_ii[n];
  }
}

void linalg_forward_lanes(int d, int lanes, const double *l, double *x) {
  if (linalg_is_single(d, lanes))
    blas_solve_triangle(d, 0, l, x);
  else
    linalg_forward(d, lanes, l, x);
}

void linalg_backward_lanes(int d, int lanes, const double *l, double *x) {
  if (linalg_is_single(d, lanes))
    blas_solve_triangle(d, 1, l, x);
  else
    linalg_backward(d, lanes, l, x);
}

void linalg_solve_lanes(int d, int lanes, const double *l, double *x) {
  linalg_forward_lanes(d, lanes, l, x);
  linalg_backward_lanes(d, lanes, l, x);
}

/* Computes L^-1 in the lower triangle of out[d, d, N], with one division per row. */
SIMD_CLONES
static void linalg_triangle_inverse(int d, int lanes, const double *restrict l, double *restrict out) {
  const size_t stride = (size_t)lanes;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      out[(size_t)(i * d + i) * stride + n] = 1 / l[(size_t)(i * d + i) * stride + n];
  for (int j = 0; j < d; j++)
    for (int i = j + 1; i < d; i++) {
      double *restrict sum = out + (size_t)(i * d + j) * stride;
      const double *restrict diagonal = out + (size_t)(i * d + i) * stride;
      for (int n = 0; n < lanes; n++) sum[n] = 0;
      for (int k = j; k < i; k++) {
        const double *restrict left = l + (size_t)(i * d + k) * stride, *restrict right =
                                                                            out +
                                                                            (size_t)(k * d + j) * stride;
        for (int n = 0; n < lanes; n++) sum[n] -= left[n] * right[n];
      }
      for (int n = 0; n < lanes; n++) sum[n] *= diagonal[n];
    }
}

/* Computes L^-T L^-1 from L^-1, in place: row i needs rows i .. d - 1, and replaces its diagonal entry
 * last. */
SIMD_CLONES
static void linalg_triangle_square(int d, int lanes, double *out) {
  const size_t stride = (size_t)lanes;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      double *low = out + (size_t)(i * d + j) * stride, *high = out + (size_t)(j * d + i) * stride;
      const double *diagonal = out + (size_t)(i * d + i) * stride;
      for (int n = 0; n < lanes; n++) low[n] *= diagonal[n];
      for (int k = i + 1; k < d; k++) {
        const double *left = out + (size_t)(k * d + i) * stride, *right = out + (size_t)(k * d + j) * stride;
        for (int n = 0; n < lanes; n++) low[n] += left[n] * right[n];
      }
      if (j < i) memcpy(high, low, stride * sizeof *high);
    }
}

void linalg_inverse_lanes(int d, int lanes, const double *l, double *inverse) {
  linalg_triangle_inverse(d, lanes, l, inverse);
  linalg_triangle_square(d, lanes, inverse);
}

static void linalg_multiply_each(int d, int lanes, bool transposed, const double *q, const double *x,
                                 double *y) {
  const MatrixShape shape = {d, 1, d, lanes};
  const MatrixOrder vector = {1, 1};
  if (linalg_is_single(d, lanes))
    blas_multiply(d, transposed, q, x, y);
  else
    matrix_kernel_product(shape, q, matrix_order(d, transposed), x, vector, MATRIX_PLAIN, y);
}

void linalg_multiply_lanes(int d, int lanes, const double *q, const double *x, double *y) {
  linalg_multiply_each(d, lanes, false, q, x, y);
}

void linalg_multiply_transposed_lanes(int d, int lanes, const double *q, const double *x, double *y) {
  linalg_multiply_each(d, lanes, true, q, x, y);
}

void linalg_multiply_shared(int d, int lanes, bool transpose, const double *q, const double *x, double *y) {
  if (linalg_is_single(d, lanes))
    blas_multiply(d, transpose, q, x, y);
  else
    matrix_kernel_shared(d, lanes, q, matrix_order(d, transpose), x, y);
}

/* Computes out[lanes] += factor (b' x - x' image / 2). */
SIMD_CLONES
static void linalg_add_image(int d, int lanes, double factor, const double *restrict b,
                             const double *restrict x, const double *restrict image, double *restrict out) {
  for (int i = 0; i < d * lanes; i += lanes)
    for (int n = 0; n < lanes; n++) out[n] += factor * x[i + n] * (b[i + n] - 0.5 * image[i + n]);
}

void linalg_add_quadratic_lanes(int d, int lanes, double factor, const double *a, const double *b,
                                const double *x, double *image, double *out) {
  linalg_multiply_lanes(d, lanes, a, x, image);
  linalg_add_image(d, lanes, factor, b, x, image, out);
}

INLINE Real dot_product(RealLanes at, int d, const double *x, const double *y) {
  Real sum = {0}, left, right;
  for (size_t i = 0; i < (size_t)d; i++) {
    real_load(at, 1, x + i * at.lanes, &left);
    real_load(at, 1, y + i * at.lanes, &right);
    sum += left * right;
  }
  return sum;
}

/* Computes x += factor y. */
INLINE void add_multiple(RealLanes at, int d, Real factor, const double *y, double *x) {
  Real own, other;
  for (size_t i = 0; i < (size_t)d; i++) {
    real_load(at, 1, x + i * at.lanes, &own);
    real_load(at, 1, y + i * at.lanes, &other);
    own += factor * other;
    real_store(at, 1, &own, x + i * at.lanes);
  }
}

SIMD_CLONES
void linalg_orthonormalise_lanes(int count, int d, int lanes, double *e, double *length) {
  const size_t vector = (size_t)d * (size_t)lanes;
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at))
    for (size_t m = 0; m < (size_t)count; m++) {
      double *own = e + m * vector;
      const Real before = real_root(dot_product(at, d, own, own));
      real_store(at, 1, &before, length + m * at.lanes);
      for (const double *other = e; other < own; other += vector)
        add_multiple(at, d, -dot_product(at, d, other, own), other, own);
      const Real square = real_max(dot_product(at, d, own, own), real_of(DBL_MIN));
      add_multiple(at, d, 1 / real_root(square) - 1, own, own);
    }
}

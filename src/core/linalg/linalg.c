/* One matrix at a time, by BLAS and LAPACK. LAPACK is column-major; a symmetric matrix reads the same both
 * ways, and a row-major lower triangle is LAPACK's upper one. */
#include "core/linalg/linalg.h"

#include "core/simd.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void linalg_one_thread(void) {
#ifdef THOMPSON_OPENBLAS
  if (!getenv("OPENBLAS_NUM_THREADS")) openblas_set_num_threads(1);
#endif
}

bool linalg_try_cholesky(int d, double *a) {
  return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', d, a, d) == 0;
}

Status linalg_cholesky(int d, double *a) {
  if (!linalg_try_cholesky(d, a))
    return status_set(STATUS_INPUT, "a %d x %d matrix is not positive definite", d, d);
  for (int i = 0; i < d; i++)
    for (int j = i + 1; j < d; j++) a[(size_t)i * d + j] = 0;
  return STATUS_OK;
}

void linalg_inverse(int d, const double *cholesky, double *inverse) {
  memcpy(inverse, cholesky, (size_t)d * d * sizeof *inverse);
  lapack_int info = LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'U', d, inverse, d);
  ASSERT(info == 0);
  for (int i = 0; i < d; i++)
    for (int j = i + 1; j < d; j++) inverse[(size_t)i * d + j] = inverse[(size_t)j * d + i];
}

void linalg_invert_triangle(int d, double *l) {
  lapack_int info = LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'U', 'N', d, l, d);
  ASSERT(info == 0);
}

static CBLAS_TRANSPOSE blas_transpose_flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

void linalg_product(int d, bool transpose_a, const double *a, bool transpose_b, const double *b, double *c) {
  cblas_dgemm(CblasRowMajor, blas_transpose_flag(transpose_a), blas_transpose_flag(transpose_b), d, d, d, 1,
              a, d, b, d, 0, c, d);
}

/* Columns that dgetri handles at a time. */
enum { INVERT_COLUMNS = 32 };

bool linalg_invert(int d, const double *a, double *inverse) {
  const size_t n = (size_t)d;
  lapack_int *pivot = malloc(n * sizeof *pivot);
  double *work = malloc(n * INVERT_COLUMNS * sizeof *work);
  ASSERT(pivot && work);
  memcpy(inverse, a, n * n * sizeof *a);
  bool good = LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, d, d, inverse, d, pivot) == 0;
  if (good) LAPACKE_dgetri_work(LAPACK_COL_MAJOR, d, inverse, d, pivot, work, d * INVERT_COLUMNS);
  free(pivot);
  free(work);
  return good;
}

void linalg_add_square(int d, int k, const float *a, float *square) {
  cblas_ssyrk(CblasRowMajor, CblasLower, CblasNoTrans, d, k, 1, a, k, 1, square, d);
}

double linalg_log_determinant(int d, const double *cholesky) {
  double sum = 0;
  for (int i = 0; i < d; i++) sum += log(cholesky[(size_t)i * d + i]);
  return 2 * sum;
}

Status linalg_eigen(int d, const double *a, double *q, double *w) {
  memcpy(q, a, (size_t)d * d * sizeof *q);
  lapack_int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', d, q, d, w);
  if (info != 0)
    return status_set(STATUS_INTERNAL, "the eigendecomposition of a %d x %d matrix failed (dsyevd gave %d)",
                      d, d, (int)info);
  for (int i = 0; i < d; i++) {
    for (int j = i + 1; j < d; j++) {
      double swap = q[(size_t)i * d + j];
      q[(size_t)i * d + j] = q[(size_t)j * d + i];
      q[(size_t)j * d + i] = swap;
    }
  }
  return STATUS_OK;
}

/* Returns the sum of (a_n - mean_a)(b_n - mean_b), accumulated in 16 partial sums that fit vector
 * registers. */
SIMD_CLONES
static double linalg_centred_product(int n, const double *restrict a, double mean_a, const double *restrict b,
                                     double mean_b) {
  enum { PARTS = 16 };
  double part[PARTS] = {0}, sum = 0;
  int i = 0;
  for (; i + PARTS <= n; i += PARTS)
    for (int k = 0; k < PARTS; k++) part[k] += (a[i + k] - mean_a) * (b[i + k] - mean_b);
  for (; i < n; i++) sum += (a[i] - mean_a) * (b[i] - mean_b);
  for (int k = 0; k < PARTS; k++) sum += part[k];
  return sum;
}

void linalg_mean(int d, int n, const double *x, double *mean) {
  ASSERT(n >= 1);
  for (int i = 0; i < d; i++) {
    const double *row = x + (size_t)i * n;
    double sum = 0;
    for (int k = 0; k < n; k++) sum += row[k];
    mean[i] = sum / n;
  }
}

void linalg_moments(int d, int n, const double *x, double *mean, double *covariance) {
  linalg_mean(d, n, x, mean);
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++)
      covariance[(size_t)i * d + j] = covariance[(size_t)j * d + i] =
          linalg_centred_product(n, x + (size_t)i * n, mean[i], x + (size_t)j * n, mean[j]) / n;
}

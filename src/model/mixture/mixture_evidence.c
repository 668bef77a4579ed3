#include "model/mixture/mixture_evidence.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/real.h"

#include <float.h>

void mixture_evidence_constants(const Mixture *mixture, double *out) {
  const size_t d = (size_t)mixture->d;
  for (size_t c = 0; c < (size_t)mixture->components; c++) {
    double square = 0;
    for (size_t i = 0; i < d; i++) square += mixture->mean[c * d + i] * mixture->information[c * d + i];
    out[c] = mixture->log_norm[c] - 0.5 * square;
  }
}

void mixture_evidence_add(const Mixture *mixture, int c, int lanes, const double *precision, const double *b,
                          double *factor, double *vector) {
  const int d = mixture->d;
  const size_t entries = (size_t)d * (size_t)lanes;
  lanes_repeat(d * d, lanes, mixture->precision + (size_t)c * (size_t)(d * d), factor);
  lanes_add(entries * (size_t)d, 1, precision, factor);
  lanes_repeat(d, lanes, mixture->information + c * d, vector);
  lanes_add(entries, 1, b, vector);
}

SIMD_CLONES
void mixture_evidence_weigh(int d, int lanes, double constant, const double *factor, const double *whitened,
                            double *restrict log_weight) {
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real sum = real_of(constant);
    for (int i = 0; i < d; i++) {
      Real y, pivot;
      real_load(at, 1, whitened + i * lanes, &y);
      real_load(at, 1, factor + (i * d + i) * lanes, &pivot);
      sum += 0.5 * y * y - real_log(pivot);
    }
    real_store(at, 1, &sum, log_weight);
  }
}

/* ---- in square-root form */

void mixture_evidence_root_add(int width, size_t stride, double *root, double *row) {
  const size_t n = (size_t)width;
  for (size_t i = 0; i < n; i++) {
    if (row[i] == 0) continue;
    double *pivot = root + (i * n + i) * stride;
    const double length = hypot(*pivot, row[i]), c = *pivot / length, s = row[i] / length;
    *pivot = length;
    for (size_t j = i + 1; j < n; j++) {
      double *entry = root + (i * n + j) * stride;
      const double above = *entry;
      *entry = c * above + s * row[j];
      row[j] = c * row[j] - s * above;
    }
    row[i] = 0;
  }
}

void mixture_evidence_root_of(int width, const double *a, size_t stride, double *root) {
  const size_t n = (size_t)width;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < i && k <= j; k++) sum -= root[(k * n + i) * stride] * root[(k * n + j) * stride];
      double *entry = root + (i * n + j) * stride, pivot = root[(i * n + i) * stride];
      if (j == i) /* what is left of a pivot below rounding error carries no information */
        *entry = sum > 16 * DBL_EPSILON * a[i * n + i] ? sqrt(sum) : 0;
      else
        *entry = j > i && pivot > 0 ? sum / pivot : 0;
    }
}

void mixture_evidence_root_condition(const Mixture *prior, int c, const double *root, double *row,
                                     double *out) {
  const size_t d = (size_t)prior->d, n = d + 1;
  const double *a = prior->cholesky + (size_t)c * d * d, *m = prior->mean + (size_t)c * d;
  memset(out, 0, n * n * sizeof *out);
  for (size_t i = 0; i < d; i++) out[i * n + i] = 1;
  for (size_t k = 0; k < n; k++) {
    row[d] = root[k * n + d];
    for (size_t j = 0; j < d; j++) {
      row[j] = 0;
      for (size_t i = j > k ? j : k; i < d; i++) row[j] += root[k * n + i] * a[i * d + j];
      row[d] -= root[k * n + j] * m[j];
    }
    mixture_evidence_root_add((int)n, 1, out, row);
  }
}

void mixture_evidence_root_draw(const Mixture *prior, int c, const double *conditioned, double *x) {
  const size_t d = (size_t)prior->d, n = d + 1;
  const double *a = prior->cholesky + (size_t)c * d * d, *m = prior->mean + (size_t)c * d;
  for (size_t i = d; i-- > 0;) {
    x[i] += conditioned[i * n + d];
    for (size_t j = i + 1; j < d; j++) x[i] -= conditioned[i * n + j] * x[j];
    x[i] /= conditioned[i * n + i];
  }
  for (size_t i = d; i-- > 0;) {
    double sum = m[i];
    for (size_t j = 0; j <= i; j++) sum += a[i * d + j] * x[j];
    x[i] = sum;
  }
}

void mixture_evidence_root_covariance(const Mixture *prior, int c, const double *conditioned, double *work,
                                      double *covariance) {
  const size_t d = (size_t)prior->d, n = d + 1;
  for (size_t i = 0; i < d; i++) /* T', lower */
    for (size_t j = 0; j < d; j++) work[i * d + j] = j <= i ? conditioned[j * n + i] : 0;
  linalg_invert_triangle((int)d, work);
  linalg_product((int)d, false, prior->cholesky + (size_t)c * d * d, true, work, covariance);
  memcpy(work, covariance, d * d * sizeof *work);
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++) {
      double sum = 0;
      for (size_t k = 0; k < d; k++) sum += work[i * d + k] * work[j * d + k];
      covariance[i * d + j] = sum;
    }
}

double mixture_evidence_root_hidden(int d, const double *conditioned) {
  const size_t n = (size_t)d + 1;
  double hidden = 1;
  for (size_t i = 0; i + 1 < n; i++) {
    double column = 0;
    for (size_t k = 0; k <= i; k++) column += conditioned[k * n + i] * conditioned[k * n + i];
    hidden = fmax(hidden, column / (conditioned[i * n + i] * conditioned[i * n + i]));
  }
  return hidden;
}

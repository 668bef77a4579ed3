#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_root_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A pivot this far below its diagonal entry has lost all but two digits to rounding. */
static const double LOST = 256 * DBL_EPSILON;

Status history_root_create(Arena *memory, int d, int columns, EvidenceRoots *out) {
  const size_t n = (size_t)d + 1, runs = (size_t)columns;
  *out = (EvidenceRoots){.d = d, .columns = runs};
  ALLOCATE(memory, out->root, n * n * runs);
  ALLOCATE(memory, out->from, runs);
  ALLOCATE(memory, out->row, n);
  ALLOCATE_ARRAYS(memory, n * n, &out->sums, &out->own, &out->conditioned);
  ALLOCATE(memory, out->inverse, (size_t)d * (size_t)d);
  history_root_clear(out, columns);
  return STATUS_OK;
}

void history_root_clear(const EvidenceRoots *self, int runs) {
  for (int run = 0; run < runs; run++) self->from[run] = -1;
}

/* Computes an upper triangular root of the symmetric sums, which may be singular. */
void history_root_start(const EvidenceRoots *self, int run, double trace) {
  const size_t n = (size_t)self->d + 1, stride = self->columns;
  const double *a = self->sums;
  double *root = self->root + run;
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
  self->from[run] = trace;
}

/* Rotates row[n] into an upper triangular root[n, n] with entries `stride` apart; row becomes zeros. */
static void history_root_rotate(int n, size_t stride, double *root, double *row) {
  for (int i = 0; i < n; i++) {
    if (row[i] == 0) continue;
    double *pivot = root + (size_t)(i * n + i) * stride;
    const double length = hypot(*pivot, row[i]), c = *pivot / length, s = row[i] / length;
    *pivot = length;
    for (int j = i + 1; j < n; j++) {
      double *entry = root + (size_t)(i * n + j) * stride;
      const double above = *entry;
      *entry = c * above + s * row[j];
      row[j] = c * row[j] - s * above;
    }
    row[i] = 0;
  }
}

void history_root_add(const EvidenceRoots *self, int run) {
  history_root_rotate(self->d + 1, self->columns, self->root + run, self->row);
}

void history_root_copy(const EvidenceRoots *from, int m, const EvidenceRoots *to, int n) {
  to->from[n] = from->from[m];
  if (history_root_has(from, m))
    lanes_copy((from->d + 1) * (from->d + 1), 1, from->root + m, (int)from->columns, to->root + n,
               (int)to->columns);
}

void history_root_discount(const EvidenceRoots *self, int runs, double factor) {
  const size_t n = (size_t)self->d + 1;
  for (size_t k = 0; k < n * n; k++)
    for (int run = 0; run < runs; run++) self->root[k * self->columns + (size_t)run] *= sqrt(factor);
  for (int run = 0; run < runs; run++) self->from[run] *= factor;
}

/* ---- a mixture given the evidence */

/* Copies the root of a run, tempered, to self->own. */
static void history_root_take(const EvidenceRoots *self, double temper, int run) {
  const size_t n = (size_t)self->d + 1;
  const double scale = sqrt(temper);
  for (size_t k = 0; k < n * n; k++) self->own[k] = scale * self->root[k * self->columns + (size_t)run];
}

/* Computes the posterior of a component N(m, S) in x, theta = m + A x with S = A A', from self->own: the root
 * (T, t), which includes the prior N(0, I) of x, so that T x - t is N(0, I). The square of its last entry is
 * what this posterior leaves unexplained in y. */
static void history_root_include(const EvidenceRoots *self, const Mixture *mixture, int c) {
  const size_t d = (size_t)self->d, n = d + 1;
  const double *a = mixture->cholesky + (size_t)c * d * d, *m = mixture->mean + (size_t)c * d;
  double *row = self->row;
  memset(self->conditioned, 0, n * n * sizeof *self->conditioned);
  for (size_t i = 0; i < d; i++) self->conditioned[i * n + i] = 1;
  for (size_t k = 0; k < n; k++) {
    row[d] = self->own[k * n + d];
    for (size_t j = 0; j < d; j++) {
      row[j] = 0;
      for (size_t i = j > k ? j : k; i < d; i++) row[j] += self->own[k * n + i] * a[i * d + j];
      row[d] -= self->own[k * n + j] * m[j];
    }
    history_root_rotate((int)n, 1, self->conditioned, row);
  }
}

/* Replaces (T, t) in x by the same in theta, (T A^-1, t + T A^-1 m), made triangular again in self->own. */
static void history_root_return_to_theta(const EvidenceRoots *self, const Mixture *mixture, int c) {
  const size_t d = (size_t)self->d, n = d + 1;
  const double *t = self->conditioned, *m = mixture->mean + (size_t)c * d;
  double *row = self->row;
  memcpy(self->inverse, mixture->cholesky + (size_t)c * d * d, d * d * sizeof *self->inverse);
  linalg_invert_triangle((int)d, self->inverse);
  memset(self->own, 0, n * n * sizeof *self->own);
  for (size_t i = 0; i < d; i++) {
    row[d] = t[i * n + d];
    for (size_t j = 0; j < d; j++) {
      row[j] = 0;
      for (size_t k = i > j ? i : j; k < d; k++) row[j] += t[i * n + k] * self->inverse[k * d + j];
      row[d] += row[j] * m[j];
    }
    history_root_rotate((int)n, 1, self->own, row);
  }
}

void history_root_condition(const EvidenceRoots *self, double temper, int run, const Mixture *mixture, int c,
                            int stride, const Conditioned *out) {
  const int d = self->d, n = d + 1;
  double explained = 0;
  history_root_take(self, temper, run);
  for (int i = 0; i < n; i++) explained += self->own[i * n + d] * self->own[i * n + d];
  history_root_include(self, mixture, c);
  const double rest = self->conditioned[n * n - 1];
  history_root_return_to_theta(self, mixture, c);
  const double *t = self->own;
  double log_weight = mixture->log_norm[c] - 0.5 * rest * rest;
  for (int i = 0; i < d; i++) {
    log_weight -= log(t[i * n + i]);
    out->whitened[i * stride] = t[i * n + d];
    for (int j = 0; j <= i; j++) out->factor[(i * d + j) * stride] = t[j * n + i];
  }
  *out->log_weight = log_weight;
  *out->common = 0.5 * explained;
}

/* Returns the largest ratio of the diagonal of T'T to the square of a pivot. */
static double history_root_ratio(const EvidenceRoots *self) {
  const int n = self->d + 1;
  const double *t = self->conditioned;
  double largest = 1;
  for (int i = 0; i + 1 < n; i++) {
    double column = 0;
    for (int k = 0; k <= i; k++) column += t[k * n + i] * t[k * n + i];
    largest = fmax(largest, column / (t[i * n + i] * t[i * n + i]));
  }
  return largest;
}

PriorDigits history_root_digits(const EvidenceRoots *self, double temper, int run, const Mixture *mixture,
                                double *outweighs) {
  *outweighs = 1;
  for (int c = 0; c < mixture->components; c++) {
    history_root_take(self, temper, run);
    history_root_include(self, mixture, c);
    *outweighs = fmax(*outweighs, history_root_ratio(self));
  }
  if (*outweighs * LOST < 1) return DIGITS_KEPT;
  const bool rounded = self->from[run] * temper * mixture->widest * LOST >= 1; /* before there was a root */
  return rounded || !(sqrt(*outweighs) * LOST < 1) ? DIGITS_LOST : DIGITS_BEYOND_SUMS;
}

/* What a history stores, and the evidence of a block of runs under a conjugate likelihood (DiffTS paper,
 * equation 3). */
#include "model/history.h"

#include "core/memory.h"
#include "core/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Status history_create(int d, int runs, const Likelihood *likelihood, History *out) {
  ASSERT(d >= 1 && runs >= 1);
  *out = (History){.d = d, .runs = runs, .likelihood = likelihood, .temper = 1};
  if (!likelihood->ops->conjugate) return STATUS_OK;
  size_t vectors = (size_t)d * (size_t)runs;
  NEW(out->precision, vectors * (size_t)d);
  NEW(out->vector, vectors);
  NEW(out->reward_squares, runs);
  return STATUS_OK;
}

static void free_rows(History *history) {
  free(history->features);
  free(history->rewards);
  free(history->longest);
  history->features = history->rewards = history->longest = NULL;
}

Status history_reserve(History *history, int rows) {
  history_clear(history);
  if (history->likelihood->ops->conjugate) return STATUS_OK;
  free_rows(history);
  history->capacity = 0;
  size_t strips = ((size_t)history->runs + HISTORY_STRIP - 1) / HISTORY_STRIP;
  size_t count = strips * (size_t)rows * HISTORY_STRIP;
  NEW(history->features, count * (size_t)history->d);
  NEW(history->rewards, count);
  NEW(history->longest, history->runs);
  history->capacity = rows;
  return STATUS_OK;
}

void history_destroy(History *history) {
  free(history->precision);
  free(history->vector);
  free(history->reward_squares);
  free_rows(history);
  *history = (History){0};
}

void history_clear(History *history) {
  size_t runs = (size_t)history->runs, vectors = (size_t)history->d * runs;
  history->rounds = 0;
  if (history->longest) memset(history->longest, 0, (size_t)history->runs * sizeof *history->longest);
  if (!history->likelihood->ops->conjugate) return;
  memset(history->precision, 0, vectors * (size_t)history->d * sizeof *history->precision);
  memset(history->vector, 0, vectors * sizeof *history->vector);
  memset(history->reward_squares, 0, runs * sizeof *history->reward_squares);
}

/* sum[n] += factor a[n] b[n]. */
static inline void add_product(int count, double factor, const double *restrict a, const double *restrict b,
                               double *restrict sum) {
  for (int n = 0; n < count; n++) sum[n] += factor * a[n] * b[n];
}

/* Both triangles meet the same factors in the same order: the precision stays symmetric to the last bit. */
SIMD_CLONES
static void append(int d, int runs, double inverse_variance, const double *phi, const double *y,
                   double *precision, double *vector, double *reward_squares) {
  size_t stride = (size_t)runs;
  for (int i = 0; i < d; i++) {
    for (int j = 0; j < d; j++) {
      int low = i < j ? i : j, high = i < j ? j : i;
      add_product(runs, inverse_variance, phi + (size_t)low * stride, phi + (size_t)high * stride,
                  precision + (size_t)(i * d + j) * stride);
    }
    add_product(runs, inverse_variance, phi + (size_t)i * stride, y, vector + (size_t)i * stride);
  }
  for (int n = 0; n < runs; n++) reward_squares[n] += inverse_variance * y[n] * y[n];
}

static void append_row(History *history, const double *phi, const double *y) {
  const size_t d = (size_t)history->d, runs = (size_t)history->runs, capacity = (size_t)history->capacity;
  ASSERT(history->rounds < history->capacity);
  for (size_t n = 0; n < runs; n++) {
    const size_t row = n / HISTORY_STRIP * capacity + (size_t)history->rounds, lane = n % HISTORY_STRIP;
    double square = 0;
    for (size_t i = 0; i < d; i++) {
      double x = history->features[(row * d + i) * HISTORY_STRIP + lane] = phi[i * runs + n];
      square += x * x;
    }
    history->rewards[row * HISTORY_STRIP + lane] = y[n];
    history->longest[n] = fmax(history->longest[n], sqrt(square));
  }
  history->rounds++;
}

void history_append(History *history, const double *phi, const double *y) {
  if (!history->likelihood->ops->conjugate) {
    append_row(history, phi, y);
    return;
  }
  double noise = history->likelihood->noise;
  append(history->d, history->runs, 1 / (noise * noise), phi, y, history->precision, history->vector,
         history->reward_squares);
  history->rounds++;
}

enum { CHUNK = 64 };

/* One chunk of lanes: lane n belongs to run[n]. In z the log likelihood is -1/2 z' S A S z + z' S (b - A
 * shift). */
SIMD_CLONES
static void evidence_chunk(const History *history, int count, const int *restrict run, size_t stride,
                           const double *shift, const double *scale, double *restrict precision,
                           double *restrict vector) {
  const size_t d = (size_t)history->d, runs = (size_t)history->runs;
  const double temper = history->temper;
  for (size_t i = 0; i < d; i++) {
    double s_i = scale ? scale[i] : 1;
    const double *b = history->vector + i * runs;
    double *restrict b_z = vector + i * stride;
    for (int n = 0; n < count; n++) b_z[n] = b[run[n]];
    for (size_t j = 0; j < d; j++) {
      double s_ij = temper * s_i * (scale ? scale[j] : 1), m_j = shift ? shift[j] : 0;
      const double *a = history->precision + (i * d + j) * runs;
      double *restrict a_z = precision + (i * d + j) * stride;
      for (int n = 0; n < count; n++) {
        a_z[n] = s_ij * a[run[n]];
        b_z[n] -= m_j * a[run[n]];
      }
    }
    for (int n = 0; n < count; n++) b_z[n] *= temper * s_i;
  }
}

void history_evidence(const History *history, int draws, int first, int lanes, const double *shift,
                      const double *scale, double *precision, double *vector) {
  ASSERT(draws >= 1 && first >= 0 && first + lanes <= history->runs * draws);
  ASSERT(history->likelihood->ops->conjugate);
  for (int from = 0; from < lanes; from += CHUNK) {
    int run[CHUNK], count = lanes - from < CHUNK ? lanes - from : CHUNK;
    for (int n = 0; n < count; n++) run[n] = (first + from + n) / draws;
    evidence_chunk(history, count, run, (size_t)lanes, shift, scale, precision + from, vector + from);
  }
}

#include "model/logs/em_logs.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/logs/em_logs_internal.h"
#include "model/mixture/mixture_evidence.h"

#include <string.h>

/* ---- the posterior of a chunk under each component */

/* Computes feature[F, N]: 1, the mean, and covariance + mean mean', lower triangle. */
SIMD_CLONES
static void em_logs_fill_features(int d, const double *restrict mean, const double *restrict covariance,
                                  double *restrict feature) {
  for (int n = 0; n < N; n++) feature[n] = 1;
  memcpy(feature + N, mean, (size_t)(d * N) * sizeof *mean);
  double *restrict row = feature + (1 + d) * N;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++, row += N)
      for (int n = 0; n < N; n++)
        row[n] = covariance[(i * d + j) * N + n] + mean[i * N + n] * mean[j * N + n];
}

static void em_logs_weigh_component(const EmLogs *self, const Mixture *mixture, int c, int first,
                                    double *feature) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  double *log_weight = at->share + c * N, log_scale[N];
  em_logs_find_evidence(self, mixture, c, first, log_scale);
  em_logs_integrate(self, mixture, c, log_weight);
  for (int n = 0; n < N; n++) log_weight[n] += log_scale[n];
  if (!feature) return;
  linalg_factor_backward(d, N, at->factor, at->mean);
  linalg_factor_inverse(d, N, at->factor, at->inverse);
  em_logs_fill_features(d, at->mean, at->inverse, feature);
}

/* Computes responsibilities, 0 in unused lanes, log marginal likelihoods and, if `features`, expected
 * features. */
static void em_logs_evaluate_chunk(const EmLogs *self, const Mixture *mixture, int first, int items,
                                   bool features) {
  Scratch *at = self->scratch;
  const size_t size = em_features(self->data.d) * N;
  double top[N], total[N];
  em_logs_load_chunk(self, first, items);
  mixture_evidence_constants(mixture, at->constant);
  for (int c = 0; c < mixture->components; c++)
    em_logs_weigh_component(self, mixture, c, first, features ? at->features + (size_t)c * size : NULL);
  lanes_exponentiate(mixture->components, N, at->share, top, total);
  for (int n = 0; n < N; n++) at->log_sum[n] = n < at->used ? top[n] + log(total[n]) : 0;
  for (int n = 0; n < N; n++) total[n] = n < at->used ? 1 / total[n] : 0;
  for (int c = 0; c < mixture->components; c++)
    for (int n = 0; n < N; n++) at->share[c * N + n] *= total[n];
  /* The part of log p(y | X) that does not depend on the prior. */
  for (int n = 0; n < at->used && !logs_has_rows(self->logs); n++)
    at->log_sum[n] -= 0.5 * (at->count[n] * log(2 * M_PI * self->variance) + at->square[n] / self->variance);
}

/* ---- sums */

static double em_logs_sum_lanes(const double *x) {
  double part[VECTOR_LANES] = {0}, sum = 0;
  for (int n = 0; n < N; n += VECTOR_LANES)
    for (int k = 0; k < VECTOR_LANES; k++) part[k] += x[n + k];
  for (int k = 0; k < VECTOR_LANES; k++) sum += part[k];
  return sum;
}

/* Adds shares times features to sums[C, F] and sets expected[F, N] to the features expected under the whole
 * mixture. */
SIMD_CLONES
static void em_logs_sum_features(int components, int features, const double *restrict share,
                                 const double *restrict feature, double *restrict expected,
                                 double *restrict sums) {
  memset(expected, 0, (size_t)(features * N) * sizeof *expected);
  for (int c = 0; c < components; c++)
    for (int f = 0; f < features; f++, feature += N) {
      double part[VECTOR_LANES] = {0};
      for (int n = 0; n < N; n += VECTOR_LANES)
        for (int k = 0; k < VECTOR_LANES; k++) {
          const double value = share[c * N + n + k] * feature[n + k];
          part[k] += value;
          expected[f * N + n + k] += value;
        }
      for (int k = 0; k < VECTOR_LANES; k++) sums[c * features + f] += part[k];
    }
}

/* Returns the expected |y - X z|^2 of the chunk. */
static double em_logs_squared_residual(const EmLogs *self) {
  const int d = self->data.d;
  const Scratch *at = self->scratch;
  const double *mean = at->expected + N, *second = at->expected + (1 + d) * N;
  double residual[N];
  memcpy(residual, at->square, sizeof residual);
  for (int i = 0; i < d; i++) {
    for (int n = 0; n < N; n++) residual[n] -= 2 * mean[i * N + n] * at->moment[i * N + n];
    for (int j = 0; j <= i; j++, second += N)
      for (int n = 0; n < N; n++) residual[n] += (i == j ? 1 : 2) * at->gram[(i * d + j) * N + n] * second[n];
  }
  return em_logs_sum_lanes(residual);
}

static double logs_expect(EmData *data, int items, const Mixture *mixture, double *sums) {
  EmLogs *self = (EmLogs *)data;
  const Scratch *at = self->scratch;
  const size_t features = em_features(data->d), width = 3 + (size_t)mixture->components * features;
  const int chunks = (items + N - 1) / N, size = self->ranks ? self->ranks->size : 1,
            rank = self->ranks ? self->ranks->rank : 0;
  double *slices = at->slices, total[3] = {0};
  memset(slices, 0, EM_LOGS_SLICES * width * sizeof *slices);
  for (int s = 0; s < EM_LOGS_SLICES; s++) {
    double *slice = slices + (size_t)s * width;
    if (em_logs_owner(s, size) != rank) continue;
    for (int chunk = em_logs_slice(s, chunks); chunk < em_logs_slice(s + 1, chunks); chunk++) {
      em_logs_evaluate_chunk(self, mixture, chunk * N, items, true);
      em_logs_sum_features(mixture->components, (int)features, at->share, at->features, at->expected,
                           slice + 3);
      slice[0] += em_logs_sum_lanes(at->log_sum);
      slice[1] += em_logs_squared_residual(self);
      slice[2] += em_logs_sum_lanes(at->count);
    }
  }
  if (self->ranks) self->ranks->combine(self->ranks->context, EM_LOGS_SLICES * width, slices);
  for (size_t s = 0; s < EM_LOGS_SLICES; s++) {
    for (size_t k = 0; k < 3; k++) total[k] += slices[s * width + k];
    for (size_t k = 3; k < width; k++) sums[k - 3] += slices[s * width + k];
  }
  if (self->logs->estimate_noise) self->variance = fmax(total[1] / total[2], self->frame->least_variance);
  return total[0];
}

void em_logs_density(EmLogs *self, const Mixture *mixture, double *density) {
  for (int first = 0; first < self->data.items; first += N) {
    em_logs_evaluate_chunk(self, mixture, first, self->data.items, false);
    memcpy(density + first, self->scratch->log_sum, (size_t)self->scratch->used * sizeof *density);
  }
}

int em_logs_count_few(EmLogs *self, const Mixture *mixture) {
  const Scratch *at = self->scratch;
  int count = 0;
  ASSERT(logs_has_rows(self->logs));
  for (int first = 0; first < self->data.items; first += N) {
    em_logs_evaluate_chunk(self, mixture, first, self->data.items, false);
    for (int n = 0; n < at->used; n++) {
      double share = 0;
      for (int c = 0; c < mixture->components; c++) share += at->few[c * N + n] ? at->share[c * N + n] : 0;
      count += share > 0.5;
    }
  }
  return count;
}

/* ---- draws */

/* Draws once for each task of an evaluated chunk, from component c[N]: z[d, N] = L^-T (L^-1 h + z), where z
 * is standard normal on entry; or, unless uniform[N] is NULL, one of its weighted points if there are enough.
 */
static void em_logs_draw_chunk(const EmLogs *self, const Mixture *mixture, int first, const int *c,
                               const double *uniform, double *z) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  em_logs_set_priors(self, mixture, c);
  em_logs_find_own_evidence(self, first);
  for (int i = 0; i < d * d * N; i++) at->factor[i] = at->one_precision[i] + at->precision[i];
  for (int i = 0; i < d * N; i++) at->mean[i] = at->one_vector[i] + at->vector[i];
  linalg_factor_cholesky(d, N, at->factor, at->jitters);
  linalg_factor_forward(d, N, at->factor, at->mean);
  for (int i = 0; i < d * N; i++) z[i] += at->mean[i];
  linalg_factor_backward(d, N, at->factor, z);
  for (int n = 0; n < N && uniform && logs_has_rows(self->logs); n++)
    logs_points_pick(&at->points, n, uniform[n], z);
}

void em_logs_draw(EmLogs *self, const Mixture *mixture, int draws, RngKey key, uint32_t run, double *z) {
  const int d = self->data.d, items = self->data.items;
  const size_t stride = (size_t)items * (size_t)draws;
  const Scratch *at = self->scratch;
  double *chunk = at->features, *normal = at->expected; /* [d, N], [d] */
  for (int first = 0; first < items; first += N) {
    em_logs_evaluate_chunk(self, mixture, first, items, false);
    for (int m = 0; m < draws; m++) {
      int c[N] = {0};
      double point[N] = {0};
      for (int n = 0; n < at->used; n++) {
        Rng rng = {.key = key, .run = run, .round = (uint32_t)(first + n), .draw = (uint32_t)m};
        double uniform, below = at->share[n];
        rng_uniform(&rng, 1, &uniform);
        rng_normal(&rng, d, normal);
        rng_uniform(&rng, 1, &point[n]);
        /* The component at which the running sum of responsibilities exceeds the uniform. */
        while (c[n] + 1 < mixture->components && below <= uniform) {
          c[n]++;
          below += at->share[c[n] * N + n];
        }
        for (int i = 0; i < d; i++) chunk[i * N + n] = normal[i];
      }
      em_logs_draw_chunk(self, mixture, first, c, point, chunk);
      for (int i = 0; i < d; i++)
        for (int n = 0; n < at->used; n++)
          z[(size_t)i * stride + (size_t)(first + n) * (size_t)draws + (size_t)m] = chunk[i * N + n];
    }
  }
}

void em_logs_means(EmLogs *self, const Mixture *gaussian, double *z) {
  const int d = self->data.d, items = self->data.items, c[N] = {0};
  double *chunk = self->scratch->features; /* [d, N] */
  for (int first = 0; first < items; first += N) {
    em_logs_load_chunk(self, first, items);
    memset(chunk, 0, (size_t)(d * N) * sizeof *chunk);
    em_logs_draw_chunk(self, gaussian, first, c, NULL, chunk);
    lanes_copy(d, self->scratch->used, chunk, N, z + first, items);
  }
}

/* ---- starts */

/* Computes z[d], a draw from an item's posterior under the common Gaussian, or its mean if `rng` is NULL. */
static void em_logs_common_posterior(const EmLogs *self, int item, Rng *rng, double *z) {
  const int d = self->data.d, first = item / N * N, n = item % N, c[N] = {0};
  Scratch *at = self->scratch;
  double *chunk = at->features;
  em_logs_load_chunk(self, first, self->data.items);
  memset(chunk, 0, (size_t)(d * N) * sizeof *chunk);
  if (rng) {
    rng_normal(rng, d, at->expected);
    for (int i = 0; i < d; i++) chunk[i * N + n] = at->expected[i];
  }
  em_logs_draw_chunk(self, &self->frame->common, first, c, NULL, chunk);
  for (int i = 0; i < d; i++) z[i] = chunk[i * N + n];
}

static void logs_place(EmData *data, int item, double *z) {
  const EmLogs *self = (const EmLogs *)data, *from = self->sample ? self->sample : self;
  em_logs_common_posterior(from, item % from->data.items, NULL, z);
}

/* Starts from equal weights, with means drawn from posteriors of tasks under the common Gaussian, and its
 * covariance times C^(-2/d). */
static void logs_seed(EmData *data, int items, int components, Rng *rng, double *sums) {
  const EmLogs *self = (const EmLogs *)data, *from = self->sample ? self->sample : self;
  const int d = data->d;
  const double count = (double)items / components, spread = pow(components, -2.0 / d);
  for (int c = 0; c < components; c++) {
    double *mean = sums + 1, *second = mean + d;
    em_logs_common_posterior(from, (int)rng_index(rng, (uint64_t)from->data.items), rng, mean);
    sums[0] = count;
    for (int i = 0; i < d; i++)
      for (int j = 0; j <= i; j++)
        *second++ = count * (mean[i] * mean[j] + spread * self->frame->common.covariance[i * d + j]);
    for (int i = 0; i < d; i++) mean[i] *= count;
    sums += em_features(d);
  }
}

Status em_logs_create(Arena *memory, const Logs *logs, const LogsFrame *frame, int first, int items,
                      int components, EmLogs *out) {
  const size_t d = (size_t)logs->d, features = em_features(logs->d), count = (size_t)components;
  Scratch *at;
  ALLOCATE(memory, at, 1);
  *out = (EmLogs){
      .data = {.d = logs->d, .items = items, .expect = logs_expect, .seed = logs_seed, .place = logs_place},
      .logs = logs,
      .first = first,
      .frame = frame,
      .variance = logs_has_rows(logs) ? 1 : frame->variance,
      .scratch = at};
  ALLOCATE_ARRAYS(memory, d * d * N, &at->gram, &at->precision, &at->factor, &at->inverse,
                  &at->one_precision);
  ALLOCATE_ARRAYS(memory, d * N, &at->moment, &at->vector, &at->mean, &at->one_vector);
  ALLOCATE_ARRAYS(memory, N, &at->square, &at->count, &at->log_sum);
  ALLOCATE(memory, at->jitters, N);
  ALLOCATE(memory, at->constant, count);
  ALLOCATE(memory, at->features, count * features * N);
  ALLOCATE(memory, at->share, count * N);
  ALLOCATE(memory, at->expected, features * N);
  ALLOCATE(memory, at->slices, EM_LOGS_SLICES * (3 + count * features));
  return logs_has_rows(logs) ? em_logs_create_rows(memory, components, out) : STATUS_OK;
}

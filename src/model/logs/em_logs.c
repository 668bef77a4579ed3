#include "model/logs/em_logs.h"

#include "core/core_tick.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/ep.h"
#include "model/history/irls.h"
#include "model/logs/logs_points.h"
#include "model/mixture/mixture_evidence.h"

#include <string.h>

enum { N = LOGS_BLOCK }; /* tasks per chunk: the lanes below */

/* Tolerances of the modes that expectation propagation starts from, and of its sites: the remaining errors
 * average out over tasks. */
static const double START_TOLERANCE = 1e-2, SITE_TOLERANCE = 2e-2;

/* One chunk of tasks; unused lanes have no evidence. */
typedef struct EmLogsScratch {
  int used;
  double *gram, *moment; /* [d, d, N] and [d, N]: X'X and X'y in coordinates z */
  double *square, *count; /* [N]: y'y, n */
  double *precision, *vector; /* [d, d, N], [d, N]: evidence, of one component if each has its own */
  double *factor, *mean, *inverse; /* [d, d, N], [d, N], [d, d, N]: L_c, P_c^-1 h_c, P_c^-1 */
  double *constant; /* [C] of the mixture */
  double *features; /* [C, F, N]: expected under each component */
  double *share; /* [C, N]: log weight, then responsibility */
  double *log_sum; /* [N]: log marginal likelihood */
  double *expected; /* [F, N]: expected under all components */
  double *one_precision, *one_vector; /* [d, d, N], [d, N]: prior of one component, in each lane */
  int *jitters; /* [N] */
  double *slices; /* [EM_LOGS_SLICES, 3 + C F]: log likelihood, squared residuals, n, sums */
  /* For likelihoods that are not conjugate: the rows, as one history per chunk. Tasks with fewer rows than
   * the longest of their chunk are padded with rows of x = 0, which carry no information. */
  History *history; /* [chunks] */
  double *padding; /* [chunks, N]: log likelihood of the padding rows */
  Irls irls;
  Ep ep;
  LogsPoints points; /* correct ep */
  bool *inexact,
      *few; /* [N], [C, N]: points are wanted; too few have weight, and the numbers are those of ep */
  Arena *memory; /* the creator's */
  int most, kept; /* C; the components whose evidence is kept, 0 at first */
  double *evidence; /* [C, chunks, F, N]: what is kept, log_scale, b and the lower triangle of Lambda */
  double *one_mean, *one_root; /* [d, N], [d, d, N]: the same prior as mean and Cholesky factor */
  double *mode; /* [d, N] */
  int64_t *fallbacks; /* [N] */
} Scratch;

/* ---- evidence of a chunk */

/* Loads a task into lane n of the chunk, with y - X shift in place of y and X scale in place of X. */
static void em_logs_load_task(const EmLogs *self, const double *task, int n) {
  const size_t d = (size_t)self->data.d, packed = d * (d + 1) / 2;
  const double *gram = task, *moment = task + packed, *shift = self->frame->shift,
               *scale = self->frame->scale;
  Scratch *at = self->scratch;
  double square = moment[d];
  for (size_t i = 0; i < d; i++) {
    double pull = 0;
    for (size_t j = 0; j < d; j++) {
      const double entry = gram[i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i];
      at->gram[(i * d + j) * N + (size_t)n] = entry * scale[i] * scale[j];
      pull += entry * shift[j];
    }
    at->moment[i * N + (size_t)n] = scale[i] * (moment[i] - pull);
    square += shift[i] * (pull - 2 * moment[i]);
  }
  at->square[n] = fmax(square, 0);
  at->count[n] = moment[d + 1];
}

static void em_logs_load_chunk(const EmLogs *self, int first, int items) {
  const int d = self->data.d;
  const double factor = 1 / self->variance;
  Scratch *at = self->scratch;
  at->used = items - first < N ? items - first : N;
  memset(at->gram, 0, (size_t)(d * d * N) * sizeof *at->gram);
  memset(at->moment, 0, (size_t)(d * N) * sizeof *at->moment);
  memset(at->square, 0, N * sizeof *at->square);
  memset(at->count, 0, N * sizeof *at->count);
  for (int n = 0; n < at->used; n++)
    em_logs_load_task(self, logs_task(self->logs, (self->first + first + n) % self->logs->tasks), n);
  for (int i = 0; i < d * d * N; i++) at->precision[i] = at->gram[i] * factor;
  for (int i = 0; i < d * N; i++) at->vector[i] = at->moment[i] * factor;
}

/* Gives each lane n the prior of component c[n]. */
static void em_logs_set_priors(const EmLogs *self, const Mixture *mixture, const int *c) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  for (int n = 0; n < N; n++) {
    for (int i = 0; i < d * d; i++) at->one_precision[i * N + n] = mixture->precision[c[n] * d * d + i];
    for (int i = 0; i < d; i++) at->one_vector[i * N + n] = mixture->information[c[n] * d + i];
    if (!logs_has_rows(self->logs)) continue;
    for (int i = 0; i < d * d; i++) at->one_root[i * N + n] = mixture->cholesky[c[n] * d * d + i];
    for (int i = 0; i < d; i++) at->one_mean[i * N + n] = mixture->mean[c[n] * d + i];
  }
}

/* Computes each lane's evidence by expectation propagation, under its prior, and log_mass[N], the logarithm
 * of the integral of prior times likelihood; log_volume[N] is that of the factor which depends only on the
 * prior (ep.h). Where that is not exact enough, weighted points correct both (logs_points.h). */
static void em_logs_approximate_tasks(const EmLogs *self, int first, const double *log_volume,
                                      double *log_mass) {
  Scratch *at = self->scratch;
  const size_t vector = (size_t)self->data.d * N;
  const HistoryView in_theta = history_view(&at->history[first / N], 1, 0, N),
                    view = history_view_in(in_theta, self->frame->shift, self->frame->scale);
  const Rng stream = {.key = rng_key(0, RNG_PAST_POINTS), .round = (uint32_t)(self->first + first)};
  memset(at->precision, 0, (size_t)self->data.d * vector * sizeof *at->precision);
  memset(at->vector, 0, vector * sizeof *at->vector);
  const PriorLanes prior = {.precision = at->one_precision, .vector = at->one_vector};
  const EvidenceLanes evidence = {.precision = at->precision, .vector = at->vector};
  irls_solve(&at->irls, &view, prior, evidence, at->mode, at->fallbacks);
  ep_solve(&at->ep, &view, prior, evidence, log_mass, at->fallbacks);
  for (int n = 0; n < N; n++) log_mass[n] += log_volume[n];
  ep_find_inexact(&at->ep, &view, prior, evidence, at->inexact);
  const RootLanes root = {.mean = at->one_mean, .root = at->one_root};
  logs_points_weigh(&at->points, &view, root, evidence, at->inexact, stream, log_mass);
  for (int n = 0; n < N; n++) log_mass[n] -= at->padding[first + n];
}

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

/* Computes L_c and L_c^-1 h_c of each lane for its evidence, and log_weight[N]. */
static void em_logs_integrate(const EmLogs *self, const Mixture *mixture, int c, double *log_weight) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  mixture_evidence_add(mixture, c, N, at->precision, at->vector, at->factor, at->mean);
  linalg_factor_cholesky(d, N, at->factor, at->jitters);
  linalg_factor_forward(d, N, at->factor, at->mean);
  mixture_evidence_weigh(d, N, at->constant[c] + 0.5 * d * log(2 * M_PI), at->factor, at->mean, log_weight);
}

/* Finds the evidence of each lane under component c, with log_scale[N]: the likelihood is close to
 * exp(log_scale + b' z - z' Lambda z / 2). */
static void em_logs_find_evidence(const EmLogs *self, const Mixture *mixture, int c, int first,
                                  double *log_scale) {
  Scratch *at = self->scratch;
  const double weight = log(mixture->weight[c]),
               volume = at->constant[c] + 0.5 * self->data.d * log(2 * M_PI) - weight;
  double log_volume[N], log_mass[N], log_weight[N];
  int component[N];
  for (int n = 0; n < N; n++) {
    component[n] = c;
    log_volume[n] = volume;
  }
  em_logs_set_priors(self, mixture, component);
  em_logs_approximate_tasks(self, first, log_volume, log_mass);
  for (int n = 0; n < N; n++) at->few[c * N + n] = at->inexact[n] && !at->points.enough[n];
  em_logs_integrate(self, mixture, c, log_weight);
  for (int n = 0; n < N; n++) log_scale[n] = log_mass[n] + weight - log_weight[n];
}

/* ---- evidence that is kept */

/* Returns the evidence of a chunk under component c: log_scale[N], then b and the lower triangle of Lambda.
 */
static double *em_logs_kept(const EmLogs *self, int c, int first) {
  const size_t chunks = (size_t)(self->data.items + N - 1) / N, size = em_features(self->data.d) * N;
  return self->scratch->evidence + ((size_t)c * chunks + (size_t)(first / N)) * size;
}

static void em_logs_keep(const EmLogs *self, int c, int first, const double *log_scale) {
  const int d = self->data.d;
  const Scratch *at = self->scratch;
  double *row = em_logs_kept(self, c, first);
  memcpy(row, log_scale, N * sizeof *row);
  memcpy(row + N, at->vector, (size_t)(d * N) * sizeof *row);
  row += (1 + d) * N;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++, row += N) memcpy(row, at->precision + (i * d + j) * N, N * sizeof *row);
}

static void em_logs_recall(const EmLogs *self, int c, int first, double *log_scale) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  const double *row = em_logs_kept(self, c, first);
  memcpy(log_scale, row, N * sizeof *row);
  memcpy(at->vector, row + N, (size_t)(d * N) * sizeof *row);
  row += (1 + d) * N;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++, row += N) {
      memcpy(at->precision + (i * d + j) * N, row, N * sizeof *row);
      memcpy(at->precision + (j * d + i) * N, row, N * sizeof *row);
    }
}

Status em_logs_approximate(EmLogs *self, const Mixture *mixture) {
  Scratch *at = self->scratch;
  const int chunks = (self->data.items + N - 1) / N, size = self->ranks ? self->ranks->size : 1,
            rank = self->ranks ? self->ranks->rank : 0;
  ASSERT(logs_has_rows(self->logs) && mixture->components <= at->most);
  if (!at->evidence)
    ALLOCATE(at->memory, at->evidence, (size_t)(at->most * chunks) * em_features(self->data.d) * N);
  at->kept = mixture->components;
  mixture_evidence_constants(mixture, at->constant);
  for (int s = 0; s < EM_LOGS_SLICES; s++) {
    if (em_logs_owner(s, size) != rank) continue;
    for (int chunk = em_logs_slice(s, chunks); chunk < em_logs_slice(s + 1, chunks); chunk++)
      for (int c = 0; c < mixture->components; c++) {
        double log_scale[N];
        TRY(core_tick_check());
        em_logs_find_evidence(self, mixture, c, chunk * N, log_scale);
        em_logs_keep(self, c, chunk * N, log_scale);
      }
  }
  return STATUS_OK;
}

/* ---- the posterior under each component */

static void em_logs_weigh_component(const EmLogs *self, const Mixture *mixture, int c, int first,
                                    double *feature) {
  const int d = self->data.d;
  Scratch *at = self->scratch;
  double *log_weight = at->share + c * N, log_scale[N] = {0};
  if (at->kept > 0)
    em_logs_recall(self, at->kept > 1 ? c : 0, first, log_scale);
  else if (logs_has_rows(self->logs))
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
  const double log_volume[N] = {0};
  double ignored[N];
  em_logs_set_priors(self, mixture, c);
  if (at->kept == 1)
    em_logs_recall(self, 0, first, ignored);
  else if (logs_has_rows(self->logs))
    em_logs_approximate_tasks(self, first, log_volume, ignored);
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

/* Arranges the rows of one chunk as rounds of a history, and computes their padding; the rows of task t are
 * row[start[t]] .. row[start[t + 1] - 1]. */
static Status em_logs_fill_history(Arena *memory, const EmLogs *self, int chunk, const int64_t *start,
                                   const int64_t *row) {
  SCRATCH_ARENA(scratch);
  const Logs *logs = self->logs;
  const int d = logs->d, left = self->data.items - chunk * N;
  const double zero = 0;
  History *history = &self->scratch->history[chunk];
  int64_t from[N], count[N] = {0}, rounds = 0;
  double *phi, y[N], none;
  ALLOCATE(&scratch, phi, d * N);
  for (int n = 0; n < N && n < left; n++) {
    const int64_t task = ((int64_t)self->first + chunk * N + n) % logs->tasks;
    from[n] = start[task];
    count[n] = start[task + 1] - from[n];
    if (count[n] > rounds) rounds = count[n];
  }
  TRY(history_create(memory, d, N, logs->likelihood, history));
  TRY(history_reserve(history, (int)rounds));
  for (int64_t k = 0; k < rounds; k++) {
    memset(phi, 0, (size_t)(d * N) * sizeof *phi);
    memset(y, 0, sizeof y);
    for (int n = 0; n < N; n++) {
      if (k >= count[n]) continue;
      const double *own = logs_row(logs, row[from[n] + k]);
      for (int i = 0; i < d; i++) phi[i * N + n] = own[i];
      y[n] = own[d];
    }
    history_record(history, NULL, phi, y);
  }
  logs->likelihood->ops->deviance(logs->likelihood, 1, &zero, &zero, &none);
  for (int n = 0; n < N; n++) self->scratch->padding[chunk * N + n] = -none / 2 * (double)(rounds - count[n]);
  return STATUS_OK;
}

static Status em_logs_create_rows(Arena *memory, int components, const EmLogs *self) {
  SCRATCH_ARENA(scratch);
  const Logs *logs = self->logs;
  const int chunks = (self->data.items + N - 1) / N;
  const size_t width = logs_width(logs->d);
  Scratch *at = self->scratch;
  int64_t *start, *next, *row;
  ALLOCATE(memory, at->history, chunks);
  ALLOCATE(memory, at->padding, (size_t)chunks * N);
  ALLOCATE(memory, at->mode, logs->d * N);
  ALLOCATE(memory, at->fallbacks, N);
  ALLOCATE(memory, at->few, components * N);
  ALLOCATE(memory, at->inexact, N);
  at->most = components;
  at->memory = memory;
  TRY(irls_create(memory, logs->d, N, START_TOLERANCE, &at->irls));
  TRY(ep_create(memory, logs->d, N, SITE_TOLERANCE, &at->ep));
  TRY(logs_points_create(memory, logs->d, N, &at->points));
  ALLOCATE(memory, at->one_root, logs->d * logs->d * N);
  ALLOCATE(memory, at->one_mean, logs->d * N);
  ALLOCATE(&scratch, start, logs->tasks + 1);
  ALLOCATE(&scratch, next, logs->tasks);
  ALLOCATE(&scratch, row, logs->observations);
  for (int t = 0; t < logs->tasks; t++) {
    next[t] = start[t];
    start[t + 1] = start[t] + (int64_t)logs_task(logs, t)[width - 1];
  }
  for (int64_t r = 0; r < logs->observations; r++) row[next[(int)logs_row(logs, r)[logs->d + 1]]++] = r;
  for (int chunk = 0; chunk < chunks; chunk++) TRY(em_logs_fill_history(memory, self, chunk, start, row));
  return STATUS_OK;
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

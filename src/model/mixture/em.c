#include "model/mixture/em.h"

#include "core/core_tick.h"
#include "core/lanes.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* A component that explains fewer items than this is restarted. */
static const double LEAST_COUNT = 1e-3;

typedef struct {
  EmData *data;
  const EmPlan *plan;
  Mixture now; /* the current parameters */
  double *sums; /* [C, features] */
  double *common; /* [d], variances of the items about the means of their components */
  Rng rng; /* for restarts of empty components */
} Em;

static Status em_create(Arena *memory, EmData *data, const EmPlan *plan, int components, Em *em) {
  *em = (Em){.data = data, .plan = plan};
  TRY(mixture_create(memory, data->d, components, &em->now));
  ALLOCATE(memory, em->sums, (size_t)components * em_features(data->d));
  ALLOCATE(memory, em->common, data->d);
  return STATUS_OK;
}

/* Returns the variance of narrow clusters in coordinate i. */
static double em_local(const Em *em, size_t i) { return em->data->local ? em->data->local[i] : 1; }

static void em_clear_sums(Em *em) {
  memset(em->sums, 0, (size_t)em->now.components * em_features(em->now.d) * sizeof *em->sums);
}

/* Computes mean and covariance from the sums of 1, z and z z' over a component's items. */
static void maximise_component(const Em *em, size_t c, const double *sums) {
  const size_t d = (size_t)em->now.d;
  const double extra = c < (size_t)em->plan->tied ? 0 : em->plan->prior_items,
               shared = em->plan->shared_items, count = sums[0], total = count + extra + shared,
               spread = pow(em->now.components, -2.0 / (double)d);
  const double *sum = sums + 1, *square = sums + 1 + d;
  double *mean = em->now.mean + c * d, *covariance = em->now.covariance + c * d * d;
  for (size_t i = 0; i < d; i++) mean[i] = sum[i] / count;
  for (size_t i = 0; i < d; i++) {
    for (size_t j = 0; j <= i; j++, square++)
      covariance[i * d + j] = covariance[j * d + i] = (*square - count * mean[i] * mean[j]) / total;
    covariance[i * d + i] = fmax(covariance[i * d + i], 0) +
                            (extra * spread * em_local(em, i) + shared * em->common[i]) / total +
                            em_floor(em_local(em, i));
  }
}

/* Gives the first components one covariance: the mean of theirs, weighted by the items that they explain. */
static void tie_covariances(Em *em) {
  const size_t d = (size_t)em->now.d, square = d * d, features = em_features(em->now.d);
  const int tied = em->plan->tied < em->now.components ? em->plan->tied : em->now.components;
  const double extra = em->plan->prior_items;
  double *common = em->now.covariance, count = 0;
  for (int c = 0; c < tied; c++) count += em->sums[(size_t)c * features];
  for (size_t i = 0; i < square; i++) {
    double sum = 0;
    for (int c = 0; c < tied; c++)
      sum += em->sums[(size_t)c * features] * em->now.covariance[(size_t)c * square + i];
    common[i] = sum / (count + extra);
  }
  for (size_t i = 0; i < d; i++)
    common[i * (d + 1)] +=
        extra * pow(tied, -2.0 / (double)d) * em_local(em, i) / (count + extra) + em_floor(em_local(em, i));
  for (int c = 1; c < tied; c++) memcpy(common + (size_t)c * square, common, square * sizeof *common);
}

/* Computes `common` and the parameters, from the sums of 1, z and z z' over the items of each component. */
static void maximise_parameters(Em *em) {
  const size_t d = (size_t)em->now.d, features = em_features(em->now.d);
  double items = 0, total = 0;
  for (int c = 0; c < em->now.components; c++) items += em->sums[(size_t)c * features];
  memset(em->common, 0, d * sizeof *em->common);
  for (int c = 0; c < em->now.components; c++) {
    const double *sums = em->sums + (size_t)c * features, *square = sums + 1 + d;
    if (sums[0] < LEAST_COUNT) continue;
    for (size_t i = 0; i < d; square += ++i)
      em->common[i] += fmax(square[i] - sums[1 + i] * sums[1 + i] / sums[0], 0) / items;
  }
  for (size_t c = 0; c < (size_t)em->now.components; c++) {
    const double *sums = em->sums + c * features;
    if (sums[0] < LEAST_COUNT) { /* restart at a random item, with unit variances */
      double *covariance = em->now.covariance + c * d * d;
      em->data->place(em->data, (int)rng_index(&em->rng, (uint64_t)em->data->items), em->now.mean + c * d);
      em->now.weight[c] = 1.0 / em->data->items;
      memset(covariance, 0, d * d * sizeof *covariance);
      for (size_t i = 0; i < d; i++) covariance[i * d + i] = 1;
    } else {
      em->now.weight[c] = sums[0] / items;
      maximise_component(em, c, sums);
    }
    total += em->now.weight[c];
  }
  for (int c = 0; c < em->now.components; c++) em->now.weight[c] /= total;
  if (em->plan->tied > 0) tie_covariances(em);
}

/* Runs one iteration; *likelihood is the mean over the first `items` under the parameters before it. */
static Status iterate_em(Em *em, int items, double *likelihood) {
  TRY(core_tick_check());
  TRY(mixture_prepare(&em->now));
  em_clear_sums(em);
  *likelihood = em->data->expect(em->data, items, &em->now, em->sums) / items;
  maximise_parameters(em);
  return STATUS_OK;
}

bool em_has_converged(const EmPlan *plan, double before, double now) {
  return fabs(now - before) <= plan->tolerance * (1 + fabs(now));
}

static Status converge_em(Em *em, double *likelihood) {
  double before = *likelihood = -INFINITY;
  for (int k = 0; k < em->plan->most_iterations; k++) {
    TRY(iterate_em(em, em->data->items, likelihood));
    if (em_has_converged(em->plan, before, *likelihood)) break;
    before = *likelihood;
  }
  return STATUS_OK;
}

Status em_fit(Arena *memory, EmData *data, int components, const EmPlan *plan, RngKey key, uint32_t run,
              Mixture *out, double *likelihood) {
  SCRATCH_ARENA(scratch);
  const int items = data->items < plan->trial_items ? data->items : plan->trial_items;
  Em em;
  Mixture *trials;
  double *reached, found, highest = -INFINITY;
  TRY(em_create(&scratch, data, plan, components, &em));
  TRY(mixture_create(memory, data->d, components, out));
  ALLOCATE(&scratch, trials, plan->starts);
  ALLOCATE(&scratch, reached, plan->starts);
  /* All starts, on the first items. */
  for (int start = 0; start < plan->starts; start++) {
    TRY(mixture_create(&scratch, data->d, components, &trials[start]));
    em.rng = (Rng){.key = key, .run = run, .round = (uint32_t)(plan->first_start + start)};
    em_clear_sums(&em);
    data->seed(data, items, components, &em.rng, em.sums);
    maximise_parameters(&em);
    for (int k = 0; k < plan->trial_iterations; k++) TRY(iterate_em(&em, items, &reached[start]));
    mixture_copy_parameters(&em.now, &trials[start]);
  }
  /* The best of them, with all items. */
  for (int rank = 0; rank < plan->finalists && rank < plan->starts; rank++) {
    int chosen = 0;
    for (int start = 1; start < plan->starts; start++)
      if (reached[start] > reached[chosen]) chosen = start;
    reached[chosen] = -INFINITY;
    mixture_copy_parameters(&trials[chosen], &em.now);
    em.rng = (Rng){.key = rng_subkey(key, RNG_MIXTURE_REPAIR), .run = run, .round = (uint32_t)chosen};
    TRY(converge_em(&em, &found));
    if (!(found > highest)) continue;
    highest = found;
    mixture_copy_parameters(&em.now, out);
  }
  if (likelihood) *likelihood = highest;
  return STATUS_OK;
}

/* Continues from the parameters in `mixture` until EM has converged. */
static Status em_resume(EmData *data, const EmPlan *plan, Rng rng, Mixture *mixture, double *likelihood) {
  SCRATCH_ARENA(scratch);
  Em em;
  TRY(em_create(&scratch, data, plan, mixture->components, &em));
  mixture_copy_parameters(mixture, &em.now);
  em.rng = rng;
  TRY(converge_em(&em, likelihood));
  mixture_copy_parameters(&em.now, mixture);
  return STATUS_OK;
}

Status em_continue(EmData *data, const EmPlan *plan, RngKey key, uint32_t run, Mixture *mixture,
                   double *likelihood) {
  const Rng rng = {.key = rng_subkey(key, RNG_MIXTURE_REPAIR), .run = run, .round = (uint32_t)plan->starts};
  double reached;
  return em_resume(data, plan, rng, mixture, likelihood ? likelihood : &reached);
}

Status em_step(EmData *data, const EmPlan *plan, Rng rng, Mixture *mixture, double *likelihood) {
  EmPlan one = *plan;
  one.most_iterations = 1;
  return em_resume(data, &one, rng, mixture, likelihood);
}

/* ---- samples as items */

/* Limits of a chunk: in many dimensions it has fewer samples, for the sake of their features. */
enum { MOST_FEATURES = 1 << 21, LEAST_CHUNK = 8 };

/* Fills features[F, chunk] of the chunk at z. */
SIMD_CLONES
static void em_fill_features(int d, int chunk, size_t stride, const double *restrict z,
                             double *restrict features) {
  double *restrict row = features + (size_t)(1 + d) * (size_t)chunk;
  for (int n = 0; n < chunk; n++) features[n] = 1;
  for (int i = 0; i < d; i++) {
    const double *restrict z_i = z + (size_t)i * stride;
    memcpy(features + (1 + i) * chunk, z_i, (size_t)chunk * sizeof *features);
    for (int j = 0; j <= i; j++, row += chunk) {
      const double *restrict z_j = z + (size_t)j * stride;
      for (int n = 0; n < chunk; n++) row[n] = z_i[n] * z_j[n];
    }
  }
}

/* Multiplies each row of features[F, chunk] by factor[chunk]. */
SIMD_CLONES
static void em_scale_features(int rows, int chunk, const double *restrict factor, double *restrict features) {
  for (int f = 0; f < rows; f++)
    for (int n = 0; n < chunk; n++) features[f * chunk + n] *= factor[n];
}

/* Adds share features' to sums[C, F]. */
static void em_add_features(const EmSamples *self, int components, double *sums) {
  const int features = (int)em_features(self->data.d);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, components, features, self->chunk, 1, self->share,
              self->chunk, self->features, self->chunk, 1, sums, features);
}

static double em_samples_expect(EmData *data, int items, const Mixture *mixture, double *sums) {
  EmSamples *self = (EmSamples *)data;
  const int features = (int)em_features(data->d), components = mixture->components, chunk = self->chunk;
  double top[CHUNK_SAMPLES], total[CHUNK_SAMPLES], sum = 0;
  /* coefficient[C, F] multiplies the features in log weight_c N(z | c). */
  double *coefficient = self->coefficient;
  for (size_t c = 0, d = (size_t)data->d; c < (size_t)components; c++) {
    const double *precision = mixture_precision(mixture, (int)c),
                 *information = mixture_information(mixture, (int)c);
    double *constant = coefficient++;
    *constant = mixture->log_norm[c];
    for (size_t i = 0; i < d; i++) {
      *constant -= 0.5 * mixture->mean[c * d + i] * information[i];
      *coefficient++ = information[i];
    }
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j <= i; j++) *coefficient++ = (i == j ? -0.5 : -1) * precision[i * d + j];
  }
  for (int first = 0; first < items; first += chunk) {
    double own = 0;
    em_fill_features(data->d, chunk, (size_t)self->padded, self->z + first, self->features);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, components, chunk, features, 1, self->coefficient,
                features, self->features, chunk, 0, self->share, chunk);
    lanes_exponentiate(components, chunk, self->share, top, total);
    for (int n = 0; n < chunk && first + n < items; n++) own += top[n] + log(total[n]);
    for (int n = 0; n < chunk; n++) total[n] = first + n < items ? 1 / total[n] : 0;
    em_scale_features(features, chunk, total, self->features);
    em_add_features(self, components, sums);
    sum += own;
  }
  return sum;
}

/* Lowers distance[padded] and sets nearest[padded] where `centre` is closer than all before; returns the sum
 * of the squared distances of the first `items`. */
SIMD_CLONES
static double em_approach_centre(EmSamples *self, int items, int c) {
  const size_t stride = (size_t)self->padded;
  const int chunk = self->chunk;
  const double *restrict z = self->z;
  double *restrict distance = self->distance, sum = 0;
  int *restrict nearest = self->nearest;
  for (int first = 0; first < items; first += chunk) {
    double square[CHUNK_SAMPLES] = {0};
    for (size_t i = 0; i < (size_t)self->data.d; i++) {
      const double *restrict z_i = z + i * stride + (size_t)first;
      double centre = self->centre[i];
      for (int n = 0; n < chunk; n++) square[n] += (z_i[n] - centre) * (z_i[n] - centre);
    }
    for (int n = 0; n < chunk; n++) {
      int nearer = c == 0 || square[n] < distance[first + n];
      nearest[first + n] = nearer ? c : nearest[first + n];
      distance[first + n] = nearer ? square[n] : distance[first + n];
    }
  }
  for (int n = 0; n < items; n++) sum += distance[n];
  return sum;
}

static void em_samples_place(EmData *data, int item, double *z) {
  const EmSamples *self = (const EmSamples *)data;
  for (size_t i = 0; i < (size_t)data->d; i++) z[i] = self->z[i * (size_t)self->padded + (size_t)item];
}

/* Chooses samples as centres: by k-means++ in even starts, with probability proportional to the squared
 * distance from the centres so far; uniformly in odd starts, which finds optima where one component lies on
 * another (measured: swirl). Every sample is assigned to the nearest centre. */
static void em_samples_seed(EmData *data, int items, int components, Rng *rng, double *sums) {
  EmSamples *self = (EmSamples *)data;
  const int chunk = self->chunk;
  double sum = 0;
  for (int c = 0; c < components; c++) {
    int k = (int)rng_index(rng, (uint64_t)items);
    if (sum > 0 && rng->round % 2 == 0) {
      double u;
      rng_uniform(rng, 1, &u);
      double below = u * sum;
      for (k = 0; k + 1 < items && below >= self->distance[k]; k++) below -= self->distance[k];
    }
    em_samples_place(data, k, self->centre);
    sum = em_approach_centre(self, items, c);
  }
  for (int first = 0; first < items; first += chunk) {
    for (int c = 0; c < components; c++)
      for (int n = 0; n < chunk; n++)
        self->share[c * chunk + n] = first + n < items && self->nearest[first + n] == c;
    em_fill_features(data->d, chunk, (size_t)self->padded, self->z + first, self->features);
    em_add_features(self, components, sums);
  }
}

Status em_samples_create(Arena *memory, int d, int n, const double *z, int first, int items, int components,
                         EmSamples *out) {
  const size_t features = em_features(d), count = (size_t)components;
  int chunk = CHUNK_SAMPLES;
  while (chunk > LEAST_CHUNK && features * (size_t)chunk > MOST_FEATURES) chunk /= 2;
  const int padded = (items + chunk - 1) / chunk * chunk;
  *out = (EmSamples){.data = {.d = d,
                              .items = items,
                              .expect = em_samples_expect,
                              .seed = em_samples_seed,
                              .place = em_samples_place},
                     .chunk = chunk,
                     .padded = padded};
  ALLOCATE(memory, out->z, (size_t)d * (size_t)padded);
  ALLOCATE(memory, out->features, features * (size_t)chunk);
  ALLOCATE(memory, out->coefficient, count * features);
  ALLOCATE(memory, out->share, count * (size_t)chunk);
  ALLOCATE(memory, out->distance, padded);
  ALLOCATE(memory, out->nearest, padded);
  ALLOCATE(memory, out->centre, d);
  for (size_t i = 0; i < (size_t)d; i++) {
    const double *from = z + i * (size_t)n;
    double *to = out->z + i * (size_t)padded;
    for (int k = 0; k < items; k++) to[k] = from[(first + k) % n];
  }
  return STATUS_OK;
}

#include "model/mixture/em.h"

#include "core/core_tick.h"

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
  TRY(core_tick_check(0));
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

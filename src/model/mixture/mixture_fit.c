/* A mixture of Gaussians fitted to samples of theta, with a number of components that is given, or chosen by
 * the likelihood of samples that were held out.
 *
 * Samples are standardised for each coordinate first, so that the floor on the variances means the same at
 * any scale. */
#include "model/mixture/mixture_fit.h"

#include "core/linalg.h"
#include "model/mixture/em_samples.h"
#include "model/mixture/mixture_choice.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Standardised samples, theta = shift + scale z, in an order of their own. */
typedef struct {
  int d, n;
  double *shift, *scale, *z; /* [d], [d], [d, n] */
} Standardised;

static bool is_constant(int n, const double *row) {
  for (int k = 1; k < n; k++)
    if (row[k] != row[0]) return false;
  return true;
}

/* Finds mean and standard deviation of a coordinate; one that does not vary keeps its unit: its variance
 * is 0, whatever the rounding of its mean makes of it. */
static void find_scale(int n, const double *row, double *shift, double *scale) {
  double variance;
  linalg_moments(1, n, row, shift, &variance);
  const bool constant = is_constant(n, row);
  if (constant) *shift = row[0];
  *scale = !constant && variance > 0 ? sqrt(variance) : 1;
}

/* Creates the standardised samples; order[n] says which sample stands where, NULL: as they come. */
static Status standardised_create(Arena *memory, int d, int n, const double *theta, const int *order,
                                  Standardised *out) {
  *out = (Standardised){.d = d, .n = n};
  ALLOCATE_ARRAYS(memory, d, out->shift, out->scale);
  ALLOCATE(memory, out->z, (size_t)d * (size_t)n);
  for (size_t i = 0; i < (size_t)d; i++) {
    const double *row = theta + i * (size_t)n;
    double *z = out->z + i * (size_t)n;
    find_scale(n, row, &out->shift[i], &out->scale[i]);
    for (int k = 0; k < n; k++) z[k] = (row[order ? order[k] : k] - out->shift[i]) / out->scale[i];
  }
  return STATUS_OK;
}

/* Returns what standardising adds to the log density of a sample. */
static double log_jacobian(const Standardised *samples) {
  double sum = 0;
  for (int i = 0; i < samples->d; i++) sum -= log(samples->scale[i]);
  return sum;
}

/* Fits a mixture of one, the moments: EM has nothing to do. */
static Status fit_one(Arena *memory, const Standardised *samples, Mixture *out) {
  const int d = samples->d;
  TRY(mixture_create(memory, d, 1, out));
  out->weight[0] = 1;
  linalg_moments(d, samples->n, samples->z, out->mean, out->covariance);
  for (int i = 0; i < d; i++) out->covariance[i * (d + 1)] += EM_FLOOR;
  return STATUS_OK;
}

/* Computes the mean log density of theta[d, n]. */
static Status mean_log_density(const Mixture *mixture, int n, const double *theta, double *out) {
  SCRATCH_ARENA(scratch);
  double *density;
  ALLOCATE(&scratch, density, n);
  mixture_log_density(mixture, n, theta, density);
  *out = 0;
  for (int k = 0; k < n; k++) *out += density[k] / n;
  return STATUS_OK;
}

/* Returns the plan for a number of components that is given. */
static EmPlan plan_given(int starts) {
  return (EmPlan){.starts = starts,
                  .finalists = 5,
                  .trial_items = INT_MAX,
                  .trial_iterations = 60,
                  .most_iterations = 1000,
                  .tolerance = 1e-8};
}

/* Returns the plan for a mixture that stands in for another prior: a millionth of the likelihood is as
 * good there as 1e-8, which takes ten times as long. */
static EmPlan plan_rough(int starts) {
  EmPlan plan = plan_given(starts);
  plan.finalists = 2, plan.most_iterations = 200, plan.tolerance = 1e-6;
  return plan;
}

double mixture_fit_cost(int d, double n, int components, int starts) {
  const EmPlan plan = plan_given(starts);
  return components == 1 ? 0 : em_cost(&plan, components, n, em_samples_cost(d));
}

double mixture_fit_roughly_cost(int d, double n, int components, int starts) {
  const EmPlan plan = plan_rough(starts);
  return components == 1 ? 0 : em_cost(&plan, components, n, em_samples_cost(d));
}

static Status fit(Arena *memory, int d, int n, const double *theta, int components, const EmPlan *plan,
                  RngKey key, uint32_t run, Mixture *out) {
  SCRATCH_ARENA(scratch);
  Standardised samples;
  EmSamples em;
  *out = (Mixture){0};
  ASSERT(plan->starts >= 1 && components >= 1);
  if (n < components)
    return status_set(STATUS_INPUT,
                      "a mixture of %d components needs at least as many samples, but there are %d",
                      components, n);
  TRY(standardised_create(&scratch, d, n, theta, NULL, &samples));
  if (components == 1) {
    TRY(fit_one(memory, &samples, out));
  } else {
    TRY(em_samples_create(&scratch, d, n, samples.z, 0, n, components, &em));
    TRY(em_fit(memory, &em.data, components, plan, key, run, out, NULL));
  }
  return mixture_transform(out, samples.shift, samples.scale);
}

Status mixture_fit(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out, double *mean_log_likelihood) {
  const EmPlan plan = plan_given(starts);
  TRY(fit(memory, d, n, theta, components, &plan, key, run, out));
  return mean_log_likelihood ? mean_log_density(out, n, theta, mean_log_likelihood) : STATUS_OK;
}

Status mixture_fit_roughly(Arena *memory, int d, int n, const double *theta, int components, int starts,
                           RngKey key, uint32_t run, Mixture *out) {
  const EmPlan plan = plan_rough(starts);
  return fit(memory, d, n, theta, components, &plan, key, run, out);
}

/* n samples are cut into parts of a tenth, of which as many are held out, one after the other, as have a
 * thousand samples together. */
typedef struct {
  int count, size;
} Folds;

static Folds folds_of(int n) {
  enum { ENOUGH = 1000, MOST_FOLDS = 10 };
  const int tenth = n / 10, size = tenth < 1                       ? 1
                                   : tenth > MIXTURE_MOST_HELD_OUT ? MIXTURE_MOST_HELD_OUT
                                                                   : tenth;
  const int wanted = (ENOUGH + size - 1) / size, most = n < MOST_FOLDS ? n : MOST_FOLDS;
  return (Folds){.count = wanted < most ? wanted : most, .size = size};
}

/* Candidates, from the one that takes longest: ranks then end at the same time. */
static const int CANDIDATES[MIXTURE_MOST_CANDIDATES] = {256, 192, 128, 96, 64, 48, 32, 24,
                                                        16,  12,  8,   6,  4,  3,  2,  1};
/* Most numbers of a candidate, so that all of them fit into memory in many dimensions too. */
static const double MOST_NUMBERS = 1 << 20;

int mixture_candidate(int d, int index) {
  int first = 0;
  while (first < MIXTURE_MOST_CANDIDATES - 1 && CANDIDATES[first] * (1 + d + (double)d * d) > MOST_NUMBERS)
    first++;
  return first + index < MIXTURE_MOST_CANDIDATES ? CANDIDATES[first + index] : 0;
}

bool mixture_candidate_fits(int d, int n, int components) {
  enum { EACH = 3 };
  return components == 1 || EACH * components * (d + 1.0) <= n - folds_of(n).size;
}

/* Computes density[size] of the samples first .. first + size - 1 under a fit to the others, which is left
 * in `out` for the first of the folds. */
static Status hold_out(Arena *memory, const Standardised *samples, int first, int size, int components,
                       const EmPlan *plan, RngKey key, uint32_t run, Mixture *out, double *density) {
  const int d = samples->d, n = samples->n;
  SCRATCH_ARENA(scratch);
  EmSamples training;
  Mixture fit;
  double *z;
  ALLOCATE(&scratch, z, d * size);
  for (int i = 0; i < d; i++)
    memcpy(z + i * size, samples->z + (size_t)i * (size_t)n + first, (size_t)size * sizeof *z);
  TRY(em_samples_create(&scratch, d, n, samples->z, first + size, n - size, components, &training));
  TRY(em_fit(&scratch, &training.data, components, plan, key, run, &fit, NULL));
  TRY(mixture_prepare(&fit));
  mixture_log_density(&fit, size, z, density);
  for (int k = 0; k < size; k++) density[k] += log_jacobian(samples);
  return first == 0 ? mixture_copy(memory, &fit, out) : STATUS_OK;
}

/* Returns the plan. Few components have several optima, many have a good one near most starts. */
static EmPlan plan_of(int components, int starts) {
  enum { SHARED = 40, LEAST = 2, TRIAL_ITEMS = 4096, TRIAL_EACH = 64 };
  const int share = SHARED / components > LEAST ? SHARED / components : LEAST;
  return (EmPlan){.starts = components == 1  ? 1
                            : starts < share ? starts
                                             : share,
                  .finalists = components <= 8 ? 2 : 1,
                  .trial_items =
                      TRIAL_ITEMS > TRIAL_EACH * components ? TRIAL_ITEMS : TRIAL_EACH * components,
                  .trial_iterations = components == 1 ? 0 : 30,
                  .most_iterations = components == 1 ? 1 : 300,
                  .tolerance = 1e-5,
                  .prior_items = 1};
}

int mixture_fold(int n) { return folds_of(n).size; }

int mixture_held_out(int n) {
  const Folds folds = folds_of(n);
  return folds.count * folds.size;
}

Status mixture_try(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out, double *held_out) {
  const EmPlan plan = plan_of(components, starts);
  const Folds folds = folds_of(n);
  SCRATCH_ARENA(scratch);
  Standardised samples;
  EmSamples all;
  int *order;
  *out = (Mixture){0};
  if (n < 2) return mixture_fit(memory, d, n, theta, components, starts, key, run, out, NULL);
  ALLOCATE(&scratch, order, n);
  rng_permutation(&(Rng){.key = rng_subkey(key, RNG_MIXTURE_FOLD), .run = run}, n, order);
  TRY(standardised_create(&scratch, d, n, theta, order, &samples));
  for (int first = 0; first < folds.count * folds.size; first += folds.size)
    TRY(hold_out(memory, &samples, first, folds.size, components, &plan, key, run, out, held_out + first));
  TRY(em_samples_create(&scratch, d, n, samples.z, 0, n, components, &all));
  TRY(em_continue(&all.data, &plan, key, run, out, NULL));
  return mixture_transform(out, samples.shift, samples.scale);
}

double mixture_try_cost(int d, double n, int components, int starts) {
  const EmPlan plan = plan_of(components, starts);
  const Folds folds = folds_of((int)n);
  return folds.count * em_cost(&plan, components, n - folds.size, em_samples_cost(d));
}

/* A mixture of Gaussians fitted to samples of theta, with a given number of components, or one that is chosen
 * by the likelihood of held-out samples, in the coordinates of mixture_frame.h. */
#include "model/mixture/mixture_fit.h"

#include "core/linalg/linalg.h"
#include "model/mixture/em_samples.h"
#include "model/mixture/mixture_density.h"
#include "model/mixture/mixture_frame.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Returns the plan for a given number of components. For a mixture that only approximates another prior, a
 * tolerance of a millionth is as good as 1e-8, which takes ten times as long. */
static EmPlan em_plan_given(int starts, bool roughly) {
  return (EmPlan){.starts = starts,
                  .finalists = roughly ? 2 : 5,
                  .trial_items = INT_MAX,
                  .trial_iterations = 60,
                  .most_iterations = roughly ? 200 : 1000,
                  .tolerance = roughly ? 1e-6 : 1e-8};
}

/* Makes a mixture of equal components of z, which has no coordinates if none of theta varies; `z` gets one
 * that frames ignore. */
static Status mixture_fit_nothing(Arena *memory, int components, Mixture *out) {
  TRY(mixture_create(memory, 1, components, out));
  for (int c = 0; c < components; c++) out->weight[c] = 1.0 / components;
  return STATUS_OK;
}

static Status mixture_fit_one(Arena *memory, const MixtureFrame *samples, Mixture *out) {
  const int k = samples->k;
  TRY(mixture_create(memory, k, 1, out));
  out->weight[0] = 1;
  linalg_moments(k, samples->n, samples->z, out->mean, out->covariance);
  for (int i = 0; i < k; i++) out->covariance[i * (k + 1)] += em_floor(samples->local[i]);
  return STATUS_OK;
}

/* Makes the samples first .. first + items - 1 (wrapping around) the items of EM. */
static Status mixture_fit_items(Arena *memory, const MixtureFrame *samples, int first, int items,
                                int components, EmSamples *out) {
  TRY(em_samples_create(memory, samples->k, samples->n, samples->z, first, items, components, out));
  out->data.local = samples->local;
  return STATUS_OK;
}

static Status fit_components(Arena *memory, int d, int n, const double *theta, int components, EmPlan plan,
                             RngKey key, uint32_t run, Mixture *out) {
  SCRATCH_ARENA(scratch);
  MixtureFrame samples;
  EmSamples em;
  *out = (Mixture){0};
  ASSERT(plan.starts >= 1 && components >= 1);
  if (n < components)
    return status_set(STATUS_INPUT,
                      "a mixture of %d components needs at least that many samples, but there are %d",
                      components, n);
  TRY(mixture_frame_create(&scratch, d, n, theta, NULL, &samples));
  if (samples.k == 0) {
    TRY(mixture_fit_nothing(&scratch, components, out));
  } else if (components == 1) { /* nothing for EM to do */
    TRY(mixture_fit_one(memory, &samples, out));
  } else {
    TRY(mixture_fit_items(&scratch, &samples, 0, n, components, &em));
    TRY(em_fit(memory, &em.data, components, &plan, key, run, out, NULL));
  }
  return mixture_frame_apply(memory, &samples, out);
}

Status mixture_fit(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out) {
  return fit_components(memory, d, n, theta, components, em_plan_given(starts, false), key, run, out);
}

Status mixture_fit_roughly(Arena *memory, int d, int n, const double *theta, int components, int starts,
                           RngKey key, uint32_t run, Mixture *out) {
  return fit_components(memory, d, n, theta, components, em_plan_given(starts, true), key, run, out);
}

void mixture_choice_make(int n, int count, const int *components, const double *const *density,
                         MixtureChoice *out) {
  *out = (MixtureChoice){.count = count, .most = components[count - 1]};
  int best = 0;
  for (int k = 0; k < count; k++) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += density[k][i];
    out->components[k] = components[k];
    out->held_out[k] = sum / n;
    if (out->held_out[k] > out->held_out[best]) best = k;
  }
  for (int k = count - 1; k >= 0; k--) {
    const double below = out->held_out[best] - out->held_out[k];
    double square = 0;
    for (int i = 0; i < n; i++) {
      const double off = density[k][i] - density[best][i] + below;
      square += off * off;
    }
    out->error[k] = n > 1 ? sqrt(square / (n - 1) / n) : INFINITY;
    if (below <= out->error[k]) out->chosen = k;
  }
}

/* Returns the size of the tenths of n samples, which are held out one after another until a thousand samples
 * have been. */
int mixture_fold(int n) {
  const int tenth = n / 10;
  return tenth < 1 ? 1 : tenth > MIXTURE_MOST_HELD_OUT ? MIXTURE_MOST_HELD_OUT : tenth;
}

int mixture_held_out(int n) {
  enum { ENOUGH = 1000, MOST_FOLDS = 10 };
  const int size = mixture_fold(n), wanted = (ENOUGH + size - 1) / size,
            most = n < MOST_FOLDS ? n : MOST_FOLDS;
  return size * (wanted < most ? wanted : most);
}

/* Candidates, the slowest first, so that ranks end at the same time. */
static const int CANDIDATES[MIXTURE_MOST_CANDIDATES] = {256, 192, 128, 96, 64, 48, 32, 24,
                                                        16,  12,  8,   6,  4,  3,  2,  1};
/* Most parameters of a candidate, so that all of them fit into memory in many dimensions too. */
static const double MOST_NUMBERS = 1 << 20;
/* The largest candidate is doubled up to this. */
static const int MOST_COMPONENTS = 1024;

static bool mixture_has_room(int d, int components) {
  return components * (1 + d + (double)d * d) <= MOST_NUMBERS;
}

int mixture_candidate(int d, int index) {
  int first = 0;
  while (first < MIXTURE_MOST_CANDIDATES - 1 && !mixture_has_room(d, CANDIDATES[first])) first++;
  return first + index < MIXTURE_MOST_CANDIDATES ? CANDIDATES[first + index] : 0;
}

int mixture_most(int d) {
  int components = mixture_candidate(d, 0);
  while (2 * components <= MOST_COMPONENTS && mixture_has_room(d, 2 * components)) components *= 2;
  return components;
}

bool mixture_candidate_fits(int d, int n, int components) {
  enum { LEAST = 8 };
  return components == 1 || components * fmax(d + 1.0, LEAST) <= n - mixture_fold(n);
}

/* Returns whether the largest candidate may be doubled to this: it needs two samples for each parameter. */
static bool mixture_may_grow(int d, int n, int components) {
  return components <= mixture_most(d) && 2.0 * components * (double)em_features(d) <= n - mixture_fold(n);
}

/* Returns the plan for a candidate. Few components have several optima, while many have a good one close to
 * most starts. */
static EmPlan em_plan_candidate(int components, int starts) {
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

/* Fits one fold's mixture to the samples outside the fold, from scratch or from its present parameters, and
 * computes density[size], the log density of samples first .. first + size - 1 of the fold. */
static Status mixture_fit_fold(Arena *memory, const MixtureFrame *samples, int first, int size,
                               int components, const EmPlan *plan, RngKey key, uint32_t run, Mixture *fit,
                               double *density) {
  const int k = samples->k, n = samples->n;
  const double log_factor = mixture_frame_log_factor(samples);
  SCRATCH_ARENA(scratch);
  EmSamples training;
  double *z;
  ALLOCATE(&scratch, z, k * size);
  for (int i = 0; i < k; i++)
    memcpy(z + i * size, samples->z + (size_t)i * (size_t)n + first, (size_t)size * sizeof *z);
  TRY(mixture_fit_items(&scratch, samples, first + size, n - size, components, &training));
  TRY(fit->components == 0 ? em_fit(memory, &training.data, components, plan, key, run, fit, NULL)
                           : em_continue(&training.data, plan, key, run, fit, NULL));
  TRY(mixture_prepare(fit));
  mixture_log_density(fit, size, z, density);
  for (int s = 0; s < size; s++) density[s] += log_factor;
  return STATUS_OK;
}

/* Chooses plan->shared_items by hill climbing, from the largest value that is not above eight times the
 * samples per component: each fit continues from the one before. held_out and `out`, the first fold's fit,
 * are those of the choice. */
static Status choose_shrinkage(Arena *memory, const MixtureFrame *samples, int components, EmPlan *plan,
                               RngKey key, uint32_t run, Mixture *out, double *held_out) {
  enum { COUNT = 5 };
  static const double SHARED[COUNT] = {2048, 256, 32, 4, 0};
  const int held = mixture_held_out(samples->n), size = mixture_fold(samples->n);
  SCRATCH_ARENA(scratch);
  Mixture *fits;
  double *density, highest = -INFINITY;
  EmPlan trial = *plan;
  ALLOCATE(&scratch, fits, held / size);
  ALLOCATE(&scratch, density, held);
  TRY(mixture_create(memory, samples->k, components, out));
  for (int k = 0; k < COUNT; k++) {
    double mean = 0;
    trial.shared_items = SHARED[k];
    if (SHARED[k] > 8.0 * samples->n / components) continue;
    for (int first = 0; first < held; first += size)
      TRY(mixture_fit_fold(&scratch, samples, first, size, components, &trial, key, run, &fits[first / size],
                           density + first));
    for (int i = 0; i < held; i++) mean += density[i] / held;
    if (mean < highest) break;
    highest = mean;
    plan->shared_items = trial.shared_items;
    memcpy(held_out, density, (size_t)held * sizeof *density);
    mixture_copy_parameters(&fits[0], out);
  }
  return STATUS_OK;
}

Status mixture_try(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out, double *held_out, double *shared) {
  EmPlan plan = em_plan_candidate(components, starts);
  SCRATCH_ARENA(scratch);
  MixtureFrame samples;
  EmSamples all;
  int *order;
  *out = (Mixture){0}, *shared = 0;
  if (n < 2) return mixture_fit(memory, d, n, theta, components, starts, key, run, out);
  ALLOCATE(&scratch, order, n);
  rng_permutation(&(Rng){.key = rng_subkey(key, RNG_MIXTURE_FOLD), .run = run}, n, order);
  TRY(mixture_frame_create(&scratch, d, n, theta, order, &samples));
  if (samples.k == 0) { /* all candidates are the same: the density is a constant */
    memset(held_out, 0, (size_t)mixture_held_out(n) * sizeof *held_out);
    TRY(mixture_fit_nothing(&scratch, components, out));
  } else {
    TRY(choose_shrinkage(memory, &samples, components, &plan, key, run, out, held_out));
    TRY(mixture_fit_items(&scratch, &samples, 0, n, components, &all));
    TRY(em_continue(&all.data, &plan, key, run, out, NULL));
    *shared = plan.shared_items;
  }
  return mixture_frame_apply(memory, &samples, out);
}

Status mixture_try_more(Arena *memory, int d, int n, const double *theta, int starts, RngKey key,
                        uint32_t run, Mixture *out, double *held_out, double *shared, int *most) {
  SCRATCH_ARENA(scratch);
  const int held = mixture_held_out(n);
  int components = mixture_candidate(d, 0);
  double *density, items;
  ALLOCATE(&scratch, density, held);
  TRY(mixture_try(memory, d, n, theta, components, starts, key, run, out, held_out, shared));
  for (*most = components; mixture_may_grow(d, n, 2 * components); components *= 2) {
    Mixture fit;
    MixtureChoice choice;
    *most = 2 * components;
    TRY(mixture_try(memory, d, n, theta, *most, starts, key, run, &fit, density, &items));
    mixture_choice_make(held, 2, (int[]){components, *most}, (const double *[]){held_out, density}, &choice);
    if (choice.chosen == 0) break;
    *out = fit, *shared = items;
    memcpy(held_out, density, (size_t)held * sizeof *density);
  }
  return STATUS_OK;
}

/* Large settings of the posterior study: y = A theta* + noise in thousands of dimensions.
 *
 * A run has one history, the whole of y, and all draws of all policies share its evidence. Q = A' A / sigma^2
 * and its eigenvectors are the only matrices, spread over ranks or on the first (core/dense.h); b and the
 * means of the prior are rotated into the eigenbasis once, there every rank takes its share of the draws
 * (sampler/diagonal.h), and the draws are rotated back in one product. Vectors are the same on all ranks. */
#include "study/posterior_internal.h"

#include "core/clock.h"
#include "core/linalg.h"
#include "core/memory.h"
#include "metric/draws.h"
#include "study/keys.h"
#include "study/studies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what can be asked for */

static Status check_policy(const Config *setting, const ConfigPolicy *policy, const Problem *problem) {
  PolicyMethod method;
  Belief belief;
  ASSERT(policy_find(policy->name, &method));
  if (!method.sampler || !method.sampler->diagonal)
    return status_set(STATUS_INPUT, "it has no form for large settings; exact, mala and tilted have one");
  TRY(policy_check(&method, policy->options, problem));
  TRY(belief_create(setting, policy, problem, 0, &belief));
  if (belief.kind != BELIEF_EXACT && belief.kind != BELIEF_STANDARD)
    return status_set(STATUS_INPUT, "large settings need isotropic priors; give "
                                    "it 'prior: exact' or 'prior: standard'");
  if (config_real(policy->options, "temper") != 1)
    return status_set(STATUS_INPUT, "key 'temper': %g; large settings have no tempered evidence",
                      config_real(policy->options, "temper"));
  const DiagonalOps *ops = method.sampler->diagonal;
  return ops->check ? ops->check(policy->options) : STATUS_OK;
}

static Status check_keys(const Study *study, const Config *setting, const Problem *problem) {
  static const char there[] = " sd_ratio mode_weight moments distance rank ";
  if (study->ops->points(setting) != 1 || posterior_size(setting, 0) != problem->arms)
    return status_set(STATUS_INPUT, "key 'problem.sample_sizes': large settings take the whole of y; 'arms'");
  const char *word;
  for (int i = 0; (word = study_metric_name(i)); i++) {
    char whole[64];
    snprintf(whole, sizeof whole, " %s ", word);
    if (study_measures(study, word) && !strstr(there, whole))
      return status_set(STATUS_INPUT,
                        "key 'metrics': %s is not there in large settings; they have sd_ratio, mode_weight, "
                        "moments, distance and rank",
                        word);
  }
  if (!likelihood_is_conjugate(&problem->likelihood))
    return status_set(STATUS_INPUT, "likelihood: %s, but large settings need gaussian",
                      problem->likelihood.ops->name);
  if (problem->resample_arms)
    return status_set(STATUS_INPUT, "key 'problem.resample_arms': large settings have one matrix for a run");
  if (config_bool(setting, "prior.standardise"))
    return status_set(STATUS_INPUT, "key 'prior.standardise': large settings need false: scales of their own "
                                    "would make isotropic priors differ from direction to direction");
  return STATUS_OK;
}

Status posterior_check_large(const Study *study, const Config *setting, const Problem *problem) {
  Status status = check_keys(study, setting, problem);
  if (status != STATUS_OK) return status_prefix(status, "%d dimensions make a large setting: ", problem->d);
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    status = check_policy(setting, policy, problem);
    if (status != STATUS_OK)
      return status_prefix(status, "%d dimensions make a large setting: policy '%s': ", problem->d,
                           policy->label);
  }
  return STATUS_OK;
}

/* Two orthogonal factors, three products and the eigenvectors, shared by the policies; steps of the draws. */
double posterior_cost_large(const Study *study, const Task *task) {
  const Config *setting = study->file->settings[task->setting];
  const double d = study_dimension(setting), steps = 300;
  return task->runs *
         (20 * d * d * d / study->file->policy_count + posterior_draws(setting) * steps * 40 * d);
}

/* ---- one run */

typedef struct {
  Arena memory; /* of the arrays */
  const Study *study;
  const StudyLarge *large;
  const Config *setting;
  Problem problem;
  uint32_t run, replicate, round;
  int draws, reference_draws; /* M, R */
  DenseMatrix basis; /* U */
  double *q, *b; /* [d] */
  double *truth; /* [d]: theta* */
  Isotropic exact, standard; /* of x = U' theta: the true distribution; N(0, I) */
  double *x, *theta, *reference, *floor; /* [d, M], [d, R] at most, [d, R], [d, R]: x is scratch */
  double *direction; /* [d] */
} Large;

static Status allocate(Arena *memory, Large *self) {
  const size_t d = (size_t)self->problem.d, m = d * (size_t)self->draws,
               r = d * (size_t)self->reference_draws;
  ALLOCATE(memory, self->q, d);
  ALLOCATE(memory, self->b, d);
  ALLOCATE(memory, self->truth, d);
  ALLOCATE(memory, self->direction, d);
  ALLOCATE(memory, self->x, m > r ? m : r);
  ALLOCATE(memory, self->theta, m);
  ALLOCATE(memory, self->reference, r);
  ALLOCATE(memory, self->floor, r);
  TRY(isotropic_create(memory, (int)d, 1, &self->standard));
  self->standard.weight[0] = self->standard.variance[0] = 1;
  return isotropic_create(memory, (int)d, self->problem.ops->isotropic(&self->problem)->components,
                          &self->exact);
}

static Status create(const Study *study, const StudyLarge *large, const Task *task, Large *self) {
  *self = (Large){.study = study, .large = large, .setting = study->file->settings[task->setting]};
  self->replicate = task->replicate;
  self->draws = posterior_draws(self->setting);
  self->reference_draws = posterior_reference_draws(self->setting);
  Status status = problem_create(self->setting, &self->problem);
  if (status == STATUS_OK) status = allocate(&self->memory, self);
  self->round = (uint32_t)self->problem.arms;
  return dense_agree(large->dense, status);
}

static void destroy(Large *self) {
  arena_free(&self->memory);
  dense_destroy(&self->basis);
  problem_destroy(&self->problem);
}

/* y[m] from its means, with the noise that the ordinary world has in these rounds. */
static void add_noise(const Large *self, double *y) {
  const Likelihood *likelihood = &self->problem.likelihood;
  for (int k = 0; k < self->problem.arms; k++) {
    Rng rng = {.key = rng_key(self->study->seed, RNG_REWARD), .run = self->run, .round = (uint32_t)k + 1};
    double uniform, normal;
    rng_uniform(&rng, 1, &uniform);
    rng_normal(&rng, 1, &normal);
    y[k] = likelihood->ops->sample(likelihood, y[k], uniform, normal);
  }
}

/* basis <- lower triangle of Q = A' A / sigma^2; b <- A' y / sigma^2. */
static Status gather_evidence(Large *self, const DenseMatrix *a, double *y) {
  const Dense *dense = self->large->dense;
  const double sigma = self->problem.likelihood.noise, precision = 1 / (sigma * sigma);
  self->problem.ops->theta(&self->problem, self->replicate, self->run, 1, self->truth);
  TRY(dense_apply(dense, false, a, 1, self->truth, y));
  add_noise(self, y);
  TRY(dense_apply(dense, true, a, 1, y, self->b));
  for (int i = 0; i < self->problem.d; i++) self->b[i] *= precision;
  TRY(dense_create(dense, self->problem.d, self->problem.d, &self->basis));
  dense_gram(dense, precision, a, &self->basis);
  return STATUS_OK;
}

static Status draw_problem(Large *self) {
  double *y, start = clock_wall();
  DenseMatrix a;
  const Dense *dense = self->large->dense;
  TRY(dense_agree(dense, memory_new((void **)&y, (size_t)self->problem.arms, sizeof *y)));
  Status status = self->problem.ops->matrix(&self->problem, self->run, dense, &a);
  self->large->stage("the matrix", clock_wall() - start);
  start = clock_wall();
  if (status == STATUS_OK) status = gather_evidence(self, &a, y);
  dense_destroy(&a);
  free(y);
  self->large->stage("its evidence", clock_wall() - start);
  return status;
}

/* b and the means of the prior, side by side [d, 1 + C], into the eigenbasis. */
static Status rotate_vectors(Large *self) {
  const Isotropic *prior = self->problem.ops->isotropic(&self->problem);
  const size_t d = (size_t)self->problem.d, count = (size_t)prior->components, width = count + 1;
  const Dense *dense = self->large->dense;
  double *from;
  TRY(dense_agree(dense, memory_new((void **)&from, 2 * d * width, sizeof *from)));
  double *to = from + d * width;
  for (size_t i = 0; i < d; i++) {
    from[i * width] = self->b[i];
    for (size_t c = 0; c < count; c++) from[i * width + 1 + c] = prior->mean[c * d + i];
  }
  Status status = dense_apply(dense, true, &self->basis, (int)width, from, to);
  for (size_t i = 0; i < d; i++) {
    self->b[i] = to[i * width];
    for (size_t c = 0; c < count; c++) self->exact.mean[c * d + i] = to[i * width + 1 + c];
  }
  memcpy(self->exact.weight, prior->weight, sizeof prior->weight);
  memcpy(self->exact.variance, prior->variance, sizeof prior->variance);
  free(from);
  return status;
}

static Status begin_run(Large *self, uint32_t run) {
  self->run = run;
  dense_destroy(&self->basis);
  TRY(draw_problem(self));
  const double start = clock_wall();
  TRY(dense_eigen(self->large->dense, &self->basis, self->q));
  for (int i = 0; i < self->problem.d; i++) self->q[i] = fmax(self->q[i], 0); /* rounding */
  self->large->stage("its eigenvectors", clock_wall() - start);
  return rotate_vectors(self);
}

/* ---- draws */

/* This rank's share of x[d, n], the rest zero. */
static Status draw_share(const Large *self, const DiagonalOps *ops, const Diagonal *posterior, RngLanes rng,
                         double *x, int64_t *fallbacks) {
  const Dense *dense = self->large->dense;
  const size_t d = (size_t)self->problem.d, n = rng.lanes, rank = (size_t)dense->rank,
               ranks = (size_t)dense->ranks;
  const size_t first = n * rank / ranks, count = n * (rank + 1) / ranks - first;
  double *share;
  memset(x, 0, d * n * sizeof *x);
  if (count == 0) return STATUS_OK;
  NEW(share, d * count);
  rng.first_lane += (uint32_t)first;
  rng.lanes = (uint32_t)count;
  Status status = ops->draw(posterior, rng, share, fallbacks);
  for (size_t i = 0; i < d; i++) memcpy(x + i * n + first, share + i * count, count * sizeof *x);
  free(share);
  return status;
}

/* theta[d, n] = U x, x by a sampler from the streams of `purpose`. */
static Status draw(Large *self, const DiagonalOps *ops, const Config *options, const Isotropic *prior,
                   RngPurpose purpose, uint32_t round, int n, double *theta, int64_t *fallbacks) {
  const Dense *dense = self->large->dense;
  const RngLanes rng = {.key = rng_key(self->study->seed, purpose),
                        .run = self->run,
                        .draws = (uint32_t)n,
                        .round = round,
                        .lanes = (uint32_t)n};
  const PriorFit fit = study_prior_fit(self->setting, "prior.", self->study->seed, 0);
  SCRATCH_ARENA(scratch);
  Chain chain;
  int64_t mine = 0;
  Status status = isotropic_chain(&scratch, prior, fit.stages, fit.alpha, fit.keep_signal, &chain);
  const Diagonal posterior = {
      .q = self->q, .b = self->b, .prior = prior, .chain = &chain, .options = options};
  if (status == STATUS_OK) status = draw_share(self, ops, &posterior, rng, self->x, &mine);
  TRY(dense_agree(dense, status));
  dense->sum((size_t)self->problem.d * (size_t)n, self->x);
  double counted = (double)mine;
  dense->sum(1, &counted);
  *fallbacks += (int64_t)counted;
  return dense_apply(dense, false, &self->basis, n, self->x, theta);
}

static Status draw_reference(Large *self) {
  const double start = clock_wall();
  int64_t ignored = 0;
  TRY(draw(self, &diagonal_exact, NULL, &self->exact, RNG_EXACT, self->round, self->reference_draws,
           self->reference, &ignored));
  TRY(draw(self, &diagonal_exact, NULL, &self->exact, RNG_FLOOR, self->round, self->reference_draws,
           self->floor, &ignored));
  self->large->stage("exact draws", clock_wall() - start);
  return STATUS_OK;
}

/* ---- metrics, in the coordinates of theta */

/* Sample moments without a matrix: |X' Y|^2, of centred points, is n m <cov(x), cov(y)>. */
typedef struct {
  double mean_error, sd_ratio, covariance_error;
} MomentErrors;

static Status find_moments(int d, int n, const double *x, int m, const double *y, MomentErrors *out) {
  double *mean_x, *mean_y, trace_x = 0, trace_y = 0, xx, xy, yy;
  NEW(mean_x, 2 * (size_t)d);
  mean_y = mean_x + d;
  linalg_mean(d, n, x, mean_x);
  linalg_mean(d, m, y, mean_y);
  for (int i = 0; i < d; i++) {
    for (int k = 0; k < n; k++) trace_x += pow(x[(size_t)i * (size_t)n + (size_t)k] - mean_x[i], 2) / n;
    for (int k = 0; k < m; k++) trace_y += pow(y[(size_t)i * (size_t)m + (size_t)k] - mean_y[i], 2) / m;
  }
  Status status = linalg_product_square(d, n, x, mean_x, n, x, mean_x, &xx);
  if (status == STATUS_OK) status = linalg_product_square(d, n, x, mean_x, m, y, mean_y, &xy);
  if (status == STATUS_OK) status = linalg_product_square(d, m, y, mean_y, m, y, mean_y, &yy);
  if (status == STATUS_OK) {
    xx /= (double)n * n, xy /= (double)n * m, yy /= (double)m * m;
    *out = (MomentErrors){.mean_error = metric_mean_error(d, mean_x, mean_y),
                          .sd_ratio = sqrt(trace_x / trace_y),
                          .covariance_error = sqrt(fmax(xx - 2 * xy + yy, 0) / yy)};
  }
  free(mean_x);
  return status;
}

/* fraction[C] of x[d, n] in each component. */
static Status mode_fractions(const Isotropic *modes, int n, const double *x, double *fraction) {
  const size_t d = (size_t)modes->d;
  double *part;
  NEW(part, d * CHUNK_LANES);
  memset(fraction, 0, (size_t)modes->components * sizeof *fraction);
  for (int first = 0; first < n; first += CHUNK_LANES) {
    const int count = n - first < CHUNK_LANES ? n - first : CHUNK_LANES;
    int component[CHUNK_LANES];
    for (size_t i = 0; i < d; i++)
      memcpy(part + i * (size_t)count, x + i * (size_t)n + (size_t)first, (size_t)count * sizeof *part);
    isotropic_nearest(modes, count, part, component);
    for (int k = 0; k < count; k++) fraction[component[k]] += 1.0 / n;
  }
  free(part);
  return STATUS_OK;
}

/* Of x beside y: total variation between their mode weights, and the largest weight of y. */
static Status compare_modes(const Isotropic *modes, int n, const double *x, int m, const double *y,
                            double *error, double *largest) {
  double of_x[ISOTROPIC_COMPONENTS], of_y[ISOTROPIC_COMPONENTS];
  TRY(mode_fractions(modes, n, x, of_x));
  TRY(mode_fractions(modes, m, y, of_y));
  *error = *largest = 0;
  for (int c = 0; c < modes->components; c++) {
    *error += fabs(of_x[c] - of_y[c]) / 2;
    *largest = fmax(*largest, of_y[c]);
  }
  return STATUS_OK;
}

static double rank_of_truth(const Large *self, int n, const double *x) {
  Rng rng = {.key = rng_key(self->study->seed, RNG_DIRECTION), .run = self->run, .round = self->round};
  rng_normal(&rng, self->problem.d, self->direction);
  return metric_rank(self->problem.d, n, x, self->truth, self->direction);
}

/* The curves of one policy for run b of its block; floors compare the second set of exact draws. */
static Status measure(const Large *self, int b, TaskResult *result) {
  const Study *study = self->study;
  const int d = self->problem.d, r = self->reference_draws;
  const Isotropic *modes = self->problem.ops->isotropic(&self->problem);
  for (int floor = 0; floor < 2; floor++) {
    const int n = floor ? r : self->draws;
    const double *x = floor ? self->floor : self->theta, *y = self->reference;
    double values[CURVES];
    MomentErrors moments = {0};
    if (study_measures(study, "moments") || study_measures(study, "sd_ratio"))
      TRY(find_moments(d, n, x, r, y, &moments));
    TRY(compare_modes(modes, n, x, r, y, &values[CURVE_mode_weight_error + floor],
                      &values[CURVE_largest_mode]));
    values[CURVE_sd_ratio + floor] = moments.sd_ratio;
    values[CURVE_mean_error + floor] = moments.mean_error;
    values[CURVE_covariance_error + floor] = moments.covariance_error;
    values[CURVE_distance + floor] = metric_distance(d, n, x, self->truth);
    if (!floor) values[CURVE_rank] = rank_of_truth(self, n, x), values[CURVE_ess] = NAN;
    for (int c = 0; c < study->curve_count; c++)
      if (study->curves[c]->shared == floor)
        result->curves[(c * result->runs + b) * result->points] =
            values[study->curves[c] - study_posterior.curves];
  }
  return STATUS_OK;
}

/* ---- tasks */

/* CPU seconds of all ranks. */
static double cpu_of_all(const Large *self) {
  double seconds = clock_cpu();
  self->large->dense->sum(1, &seconds);
  return seconds;
}

static Status run_policy(Large *self, const Task *task, int b, TaskResult *result) {
  const ConfigPolicy *policy = &self->study->file->policies[task->policy];
  const double start = clock_wall(), before = cpu_of_all(self);
  PolicyMethod method;
  Belief belief;
  ASSERT(policy_find(policy->name, &method));
  TRY(belief_create(self->setting, policy, &self->problem, task->replicate, &belief));
  const Isotropic *prior = belief.kind == BELIEF_EXACT ? &self->exact : &self->standard;
  TRY(draw(self, method.sampler->diagonal, policy->options, prior, RNG_AGENT, self->round, self->draws,
           self->theta, &result->fallbacks[b]));
  result->seconds[b] = cpu_of_all(self) - before;
  self->large->stage(policy->label, clock_wall() - start);
  return dense_agree(self->large->dense, measure(self, b, result));
}

Status posterior_run_large(const Study *study, const StudyLarge *large, int count, const Task *const *tasks,
                           TaskResult *results) {
  Large self;
  Status status = create(study, large, tasks[0], &self);
  for (int b = 0; b < tasks[0]->runs && status == STATUS_OK; b++) {
    const double before = cpu_of_all(&self);
    status = begin_run(&self, tasks[0]->first_run + (uint32_t)b);
    const double shared = cpu_of_all(&self) - before;
    if (status == STATUS_OK) status = draw_reference(&self);
    for (int i = 0; i < count && status == STATUS_OK; i++) {
      if (!large->tick.tick(large->tick.context, (double)b / tasks[0]->runs))
        status = status_set(STATUS_STOPPED, "stopped after %d runs", b);
      else
        status = run_policy(&self, tasks[i], b, &results[i]);
      results[i].seconds[b] += shared;
    }
  }
  destroy(&self);
  return status;
}

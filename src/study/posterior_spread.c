/* Settings of the posterior study whose matrices are spread over ranks: y = A theta* + noise in thousands of
 * dimensions.
 *
 * A run has one history, the whole of y, and its matrices are Q = A' A / sigma^2 and the eigenvectors of Q
 * (core/linalg/dense.h). b, theta* and the means of the prior are rotated into the eigenbasis once. There the
 * evidence is diagonal, samplers need no matrices (SamplerOps.vectors), and every rank makes its share of the
 * draws. What is measured is the same in every basis. Draws are matrices on the same grid; exact draws and
 * floors are made once for all policies. Vectors are the same on all ranks. Covariances are d x d and are not
 * formed: the inner product of those of two centred sets, X of n draws and Y of m, is |X' Y|^2 / (n m). */
#include "core/clock.h"
#include "sampler/methods.h"
#include "study/posterior_internal.h"
#include "study/studies.h"
#include "study/study_problem.h"

/* A set of draws, and what the metrics need from it. */
typedef struct {
  Arena memory;
  DenseMatrix x; /* [d, n], minus their mean once that is known */
  double *mean; /* [d] */
  double trace, square; /* of the covariance: its trace; the sum of its squared elements, if asked for */
  double fraction[ISOTROPIC_COMPONENTS]; /* of the draws in each mode */
  /* Mean distance to theta*; ranks of theta* along the direction, by its norm and by its likelihood. */
  double distance, rank, rank_norm, rank_log_likelihood;
} DenseDraws;

static void study_spread_draws_destroy(DenseDraws *draws) {
  dense_matrix_destroy(&draws->x);
  arena_free(&draws->memory);
  *draws = (DenseDraws){0};
}

/* ---- one run */

typedef struct {
  Arena memory; /* of the arrays */
  const Study *study;
  const StudySpread *spread;
  const Config *setting;
  Problem problem;
  uint32_t run, replicate, round;
  int draws, reference_draws; /* M, R */
  DenseMatrix basis; /* U */
  double *q, *b; /* [d] */
  double reward_squares; /* sum of (y / sigma)^2 */
  Isotropic exact, standard; /* of x = U' theta: the true distribution; N(0, I) */
  double *truth, *direction; /* [d]: of x: theta*, and a random direction */
  int most_columns; /* that a rank has in a round, of draws or reference draws */
  double *lanes; /* [2, d, most_columns], scratch */
  int needs; /* what the curves need */
  DenseDraws reference; /* if needed */
  double floor[CURVES]; /* the shared curves of this run */
} SpreadRun;

static Status study_spread_create(const Study *study, const StudySpread *spread, const Task *task,
                                  SpreadRun *self) {
  *self = (SpreadRun){.study = study, .spread = spread, .setting = study->file->settings[task->setting]};
  self->replicate = task->replicate;
  self->draws = study_posterior_draws(self->setting);
  self->reference_draws = study_posterior_reference_draws(self->setting);
  const int of_draws = dense_most_columns(spread->dense, self->draws),
            of_reference = dense_most_columns(spread->dense, self->reference_draws);
  self->most_columns = of_draws > of_reference ? of_draws : of_reference;
  self->needs = study_posterior_needs(study, false);
  TRY(study_problem_create(self->setting, &self->problem));
  self->round = (uint32_t)self->problem.arms;
  const size_t d = (size_t)self->problem.d;
  ALLOCATE_ARRAYS(&self->memory, d, &self->q, &self->b, &self->truth, &self->direction);
  ALLOCATE(&self->memory, self->lanes, 2 * d * (size_t)self->most_columns);
  TRY(denoiser_isotropic_create(&self->memory, (int)d, 1, &self->standard));
  self->standard.weight[0] = self->standard.variance[0] = 1;
  return denoiser_isotropic_create(&self->memory, (int)d, self->problem.theta.isotropic.components,
                                   &self->exact);
}

static void study_spread_destroy(SpreadRun *self) {
  arena_free(&self->memory);
  dense_matrix_destroy(&self->basis);
  study_spread_draws_destroy(&self->reference);
  problem_destroy(&self->problem);
}

/* Draws A and y = A theta* + noise, and computes basis <- lower triangle of Q = A' A / sigma^2; b <- A' y /
 * sigma^2. The noise is the same as in these rounds of the ordinary world. */
static Status study_spread_draw_problem(SpreadRun *self) {
  SCRATCH_ARENA(scratch);
  SCOPED(DenseMatrix, a, dense_matrix_destroy);
  double *y, start = clock_wall();
  const Dense *dense = self->spread->dense;
  const Problem *problem = &self->problem;
  const Likelihood *likelihood = &problem->likelihood;
  const double precision = 1 / (likelihood->noise * likelihood->noise);
  TRY(dense_agree(dense, arena_new(&scratch, (void **)&y, (size_t)problem->arms, sizeof *y)));
  TRY(problem->ops->matrix(problem, self->run, dense, &a));
  self->spread->stage("the matrix", clock_wall() - start);
  start = clock_wall();
  problem_theta(problem, self->replicate, self->run, 1, self->truth);
  TRY(dense_apply(dense, false, &a, 1, self->truth, y));
  for (int k = 0; k < problem->arms; k++) {
    Rng rng = {.key = rng_key(self->study->seed, RNG_REWARD), .run = self->run, .round = (uint32_t)k + 1};
    double uniform, normal;
    rng_uniform(&rng, 1, &uniform);
    rng_normal(&rng, 1, &normal);
    y[k] = likelihood->ops->sample(likelihood, y[k], uniform, normal);
  }
  TRY(dense_apply(dense, true, &a, 1, y, self->b));
  for (int i = 0; i < problem->d; i++) self->b[i] *= precision;
  self->reward_squares = 0;
  for (int k = 0; k < problem->arms; k++) self->reward_squares += precision * y[k] * y[k];
  TRY(dense_matrix_create(dense, problem->d, problem->d, &self->basis));
  dense_gram(dense, precision, &a, &self->basis);
  self->spread->stage("its evidence", clock_wall() - start);
  return STATUS_OK;
}

/* Rotates b, theta*, the direction and the means of the prior, side by side [d, 3 + C], into the eigenbasis.
 */
static Status study_spread_rotate_vectors(SpreadRun *self) {
  enum { OWN = 3 };
  const Isotropic *prior = &self->problem.theta.isotropic;
  const size_t d = (size_t)self->problem.d, count = (size_t)prior->components, width = OWN + count;
  const Dense *dense = self->spread->dense;
  double *const own[OWN] = {self->b, self->truth, self->direction};
  SCRATCH_ARENA(scratch);
  double *from;
  TRY(dense_agree(dense, arena_new(&scratch, (void **)&from, 2 * d * width, sizeof *from)));
  double *to = from + d * width;
  for (size_t i = 0; i < d; i++) {
    for (size_t v = 0; v < OWN; v++) from[i * width + v] = own[v][i];
    for (size_t c = 0; c < count; c++) from[i * width + OWN + c] = prior->mean[c * d + i];
  }
  Status status = dense_apply(dense, true, &self->basis, (int)width, from, to);
  for (size_t i = 0; i < d; i++) {
    for (size_t v = 0; v < OWN; v++) own[v][i] = to[i * width + v];
    for (size_t c = 0; c < count; c++) self->exact.mean[c * d + i] = to[i * width + OWN + c];
  }
  memcpy(self->exact.weight, prior->weight, sizeof prior->weight);
  memcpy(self->exact.variance, prior->variance, sizeof prior->variance);
  return status;
}

/* ---- draws */

/* What draws: a sampler with its options, under a prior of x, from the streams of a purpose. */
typedef struct {
  const SamplerOps *method;
  const Config *options;
  const Isotropic *prior;
  RngPurpose purpose;
} SpreadSampler;

/* Creates the sampler, and the history of x that it reads. */
static Status study_spread_create_sampler(Arena *memory, const SpreadRun *self, SpreadSampler from,
                                          Prior *prior, History *history, Sampler *out) {
  const PriorFit fit = fit_of_keys(self->setting, self->study->seed, 0);
  const DiagonalEvidence evidence = {.d = self->problem.d,
                                     .observations = self->problem.arms,
                                     .q = self->q,
                                     .b = self->b,
                                     .reward_squares = self->reward_squares};
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = &self->problem.likelihood,
                              .runs = 1,
                              .draws = self->most_columns,
                              .seed = self->study->seed,
                              .first_run = self->run,
                              .for_themselves = true,
                              .diagonal = true,
                              .options = from.options};
  Chain chain;
  double *shift;
  TRY(denoiser_chain_create(memory, &chain, self->problem.d, &fit.schedule, LAST_STAGE_REPAIRED));
  ALLOCATE(memory, shift, self->problem.d);
  TRY(prior_isotropic_like(memory, from.prior, &chain, shift, false, prior));
  TRY(history_create_diagonal(memory, &evidence, &self->problem.likelihood, history));
  if (from.options) history->temper = config_real(from.options, "temper");
  return sampler_create_plain(memory, from.method, &setup, out);
}

/* Draws x[d, n] with a sampler, every rank some columns in each round. The caller must call
 * study_spread_draws_destroy, also after a failure. */
static Status study_spread_draw(const SpreadRun *self, SpreadSampler sampler, int n, int64_t *fallbacks,
                                DenseDraws *out) {
  const Dense *dense = self->spread->dense;
  const RngLanes rng = rng_lanes(rng_key(self->study->seed, sampler.purpose), self->run, 1, n, self->round);
  double *work = self->lanes + (size_t)self->problem.d * (size_t)self->most_columns;
  int64_t mine = 0;
  SCRATCH_ARENA(scratch);
  Prior prior;
  History history;
  Sampler drawer;
  *out = (DenseDraws){0};
  TRY(dense_agree(dense, study_spread_create_sampler(&scratch, self, sampler, &prior, &history, &drawer)));
  TRY(dense_matrix_create(dense, self->problem.d, n, &out->x));
  for (int round = 0; round < dense_rounds(dense, n); round++) {
    const DenseColumns columns = dense_columns(dense, n, round, dense->rank);
    RngLanes here = rng;
    here.first_lane += (uint32_t)columns.first;
    here.lanes = (uint32_t)columns.count;
    if (columns.count > 0) sampler_sample_plain(&drawer, &history, here, columns.count, self->lanes, &mine);
    dense_put_columns(dense, round, self->lanes, work, &out->x);
  }
  double counted = (double)mine;
  dense->sum(1, &counted);
  *fallbacks += (int64_t)counted;
  return STATUS_OK;
}

/* ---- metrics */

/* For each draw: its component, its distance to theta*, and whether it is below theta* along the direction,
 * by its norm and by its log likelihood. */
enum { OF_COMPONENT, OF_DISTANCE, OF_RANK, OF_NORM, OF_LOG_LIKELIHOOD, OF_DRAW };

/* Computes values[OF_DRAW, n] for this rank's columns x[d, count]. */
static void study_spread_measure_columns(const SpreadRun *self, DenseColumns columns, int n, const double *x,
                                         double *values) {
  const size_t d = (size_t)self->problem.d, count = (size_t)columns.count, all = (size_t)n;
  int component[DENSE_COLUMNS];
  double square[DENSE_COLUMNS] = {0}, above[DENSE_COLUMNS] = {0}, longer[DENSE_COLUMNS] = {0},
         likelier[DENSE_COLUMNS] = {0};
  if (count == 0) return;
  denoiser_isotropic_nearest(&self->exact, columns.count, x, component);
  for (size_t i = 0; i < d; i++)
    for (size_t k = 0; k < count; k++) {
      const double step = x[i * count + k] - self->truth[i], both = x[i * count + k] + self->truth[i];
      square[k] += step * step;
      above[k] += self->direction[i] * step;
      longer[k] += step * both; /* |x|^2 - |truth|^2 */
      likelier[k] += step * (self->b[i] - 0.5 * self->q[i] * both);
    }
  values += columns.first;
  for (size_t k = 0; k < count; k++) {
    values[OF_COMPONENT * all + k] = component[k];
    values[OF_DISTANCE * all + k] = sqrt(square[k]);
    values[OF_RANK * all + k] = above[k] < 0;
    values[OF_NORM * all + k] = longer[k] < 0;
    values[OF_LOG_LIKELIHOOD * all + k] = likelier[k] < 0;
  }
}

/* Computes |X' Y|^2 / (n m) of centred draws. */
static Status study_spread_covariance_product(const SpreadRun *self, const DenseMatrix *x,
                                              const DenseMatrix *y, double *out) {
  const Dense *dense = self->spread->dense;
  SCOPED(DenseMatrix, product, dense_matrix_destroy);
  TRY(dense_matrix_create(dense, x->columns, y->columns, &product));
  dense_multiply(dense, 1, true, x, false, y, &product);
  *out = dense_square(dense, &product) / ((double)x->columns * y->columns);
  return STATUS_OK;
}

/* Measures the draws. Every rank measures its columns; sums are taken in the order of draws, so that they do
 * not depend on which rank measured what. */
static Status study_spread_measure_draws(const SpreadRun *self, DenseDraws *out) {
  const Dense *dense = self->spread->dense;
  const int d = out->x.rows, n = out->x.columns;
  double *values, *x = self->lanes, *work = x + (size_t)d * (size_t)self->most_columns;
  int count[ISOTROPIC_COMPONENTS] = {0};
  TRY(dense_agree(
      dense, arena_new(&out->memory, (void **)&values, OF_DRAW * (size_t)n + (size_t)d, sizeof *values)));
  out->mean = values + OF_DRAW * n;
  for (int round = 0; round < dense_rounds(dense, n); round++) {
    dense_get_columns(dense, round, &out->x, work, x);
    study_spread_measure_columns(self, dense_columns(dense, n, round, dense->rank), n, x, values);
  }
  dense->sum(OF_DRAW * (size_t)n, values);
  for (int k = 0; k < n; k++) {
    count[(int)values[OF_COMPONENT * n + k]]++;
    out->distance += values[OF_DISTANCE * n + k];
    out->rank += values[OF_RANK * n + k];
    out->rank_norm += values[OF_NORM * n + k];
    out->rank_log_likelihood += values[OF_LOG_LIKELIHOOD * n + k];
  }
  out->distance /= n;
  for (int c = 0; c < self->problem.theta.isotropic.components; c++) out->fraction[c] = (double)count[c] / n;
  dense_centre(dense, &out->x, out->mean);
  out->trace = dense_square(dense, &out->x) / n;
  if (!study_measures(self->study, "moments")) return STATUS_OK;
  return study_spread_covariance_product(self, &out->x, &out->x, &out->square);
}

/* Makes and measures R exact draws. The caller must call study_spread_draws_destroy, also after a failure. */
static Status study_spread_draw_exact(const SpreadRun *self, RngPurpose purpose, DenseDraws *out) {
  const SpreadSampler exact = {.method = &sampler_exact, .prior = &self->exact, .purpose = purpose};
  int64_t ignored = 0;
  TRY(study_spread_draw(self, exact, self->reference_draws, &ignored, out));
  return study_spread_measure_draws(self, out);
}

/* Computes values[CURVES] of x in comparison with the exact draws; for a floor, x is the second set of exact
 * draws. The error of the covariance is relative, in Frobenius norms. */
static Status study_spread_compare(const SpreadRun *self, bool floor, const DenseDraws *x, double *values) {
  const DenseDraws *y = &self->reference;
  const int modes = self->problem.theta.isotropic.components;
  double both;
  values[CURVE_distance + floor] = x->distance;
  if (!floor) {
    values[CURVE_rank] = x->rank;
    values[CURVE_rank_norm] = x->rank_norm;
    values[CURVE_rank_log_likelihood] = x->rank_log_likelihood;
  }
  if (!(self->needs & POSTERIOR_NEEDS_REFERENCE)) return STATUS_OK;
  values[CURVE_sd_ratio + floor] = sqrt(x->trace / y->trace);
  values[CURVE_mode_weight_error + floor] = metric_total_variation(modes, x->fraction, y->fraction);
  values[CURVE_mean_error + floor] = metric_mean_error(self->problem.d, x->mean, y->mean);
  values[CURVE_largest_mode] = metric_largest(modes, y->fraction);
  if (!study_measures(self->study, "moments")) return STATUS_OK;
  TRY(study_spread_covariance_product(self, &x->x, &y->x, &both));
  values[CURVE_covariance_error + floor] = sqrt(fmax(x->square - 2 * both + y->square, 0) / y->square);
  return STATUS_OK;
}

/* ---- tasks */

/* Returns the CPU seconds of all ranks. */
static double study_cpu_of_ranks(const SpreadRun *self) {
  double seconds = clock_cpu();
  self->spread->dense->sum(1, &seconds);
  return seconds;
}

/* Draws with one policy for run b of its block, and measures and stores its curves. */
static Status study_spread_run_policy(SpreadRun *self, const Task *task, int b, TaskResult *result) {
  const ConfigPolicy *policy = &self->study->file->policies[task->policy];
  const double start = clock_wall(), before = study_cpu_of_ranks(self);
  double values[CURVES];
  for (int c = 0; c < CURVES; c++) values[c] = NAN;
  const PolicyMethod method = policy_named(policy->name);
  Belief belief;
  SCOPED(DenseDraws, draws, study_spread_draws_destroy);
  TRY(study_belief_create(self->setting, policy, &self->problem, task->replicate, &belief));
  const SpreadSampler sampler = {.method = method.sampler,
                                 .options = policy->options,
                                 .prior = belief.kind == BELIEF_EXACT ? &self->exact : &self->standard,
                                 .purpose = RNG_AGENT};
  Status status = study_spread_draw(self, sampler, self->draws, &result->columns.fallbacks[b], &draws);
  result->columns.seconds[b] = study_cpu_of_ranks(self) - before;
  self->spread->stage(policy->label, clock_wall() - start);
  TRY(status);
  TRY(study_spread_measure_draws(self, &draws));
  TRY(study_spread_compare(self, false, &draws, values));
  for (int c = 0; c < self->study->curve_count; c++) {
    const StudyCurve *curve = self->study->curves[c];
    *study_result_values(result, c, b) =
        (curve->shared ? self->floor : values)[curve - study_posterior.curves];
  }
  return STATUS_OK;
}

Status study_posterior_run_spread(const Study *study, const StudySpread *spread, int count, const Task *tasks,
                                  TaskResult *results) {
  SCOPED(SpreadRun, self, study_spread_destroy);
  TRY(dense_agree(spread->dense, study_spread_create(study, spread, tasks, &self)));
  for (int b = 0; b < tasks->runs; b++) {
    self.run = tasks->first_run + (uint32_t)b;
    Rng direction = {.key = rng_key(study->seed, RNG_DIRECTION), .run = self.run, .round = self.round};
    rng_normal(&direction, self.problem.d, self.direction);
    const double before = study_cpu_of_ranks(&self);
    dense_matrix_destroy(&self.basis);
    study_spread_draws_destroy(&self.reference);
    TRY(study_spread_draw_problem(&self));
    double start = clock_wall();
    TRY(dense_eigen(spread->dense, &self.basis, self.q));
    for (int i = 0; i < self.problem.d; i++) self.q[i] = fmax(self.q[i], 0); /* rounding */
    spread->stage("its eigenvectors", clock_wall() - start);
    TRY(study_spread_rotate_vectors(&self));
    dense_matrix_destroy(&self.basis); /* nothing is rotated back */
    const double shared = study_cpu_of_ranks(&self) - before;
    start = clock_wall();
    if (self.needs & POSTERIOR_NEEDS_REFERENCE)
      TRY(study_spread_draw_exact(&self, RNG_EXACT, &self.reference));
    if (self.needs & POSTERIOR_NEEDS_FLOOR) {
      SCOPED(DenseDraws, others, study_spread_draws_destroy);
      TRY(study_spread_draw_exact(&self, RNG_FLOOR, &others));
      TRY(study_spread_compare(&self, true, &others, self.floor));
    }
    spread->stage("exact draws", clock_wall() - start);
    for (int i = 0; i < count; i++) {
      if (!core_tick_goes_on(spread->tick, (double)b / tasks->runs))
        return status_set(STATUS_STOPPED, "stopped after %d runs", b);
      TRY(study_spread_run_policy(&self, &tasks[i], b, &results[i]));
      results[i].columns.seconds[b] += shared;
    }
  }
  return STATUS_OK;
}

/* ---- what can be spread over ranks */

static Status study_spread_check_policy(const Config *setting, const ConfigPolicy *policy,
                                        const Problem *problem) {
  const PolicyMethod method = policy_named(policy->name);
  Belief belief;
  if (!method.sampler || !method.sampler->vectors)
    return status_set(STATUS_INPUT, "it makes matrices for each draw, on one rank");
  TRY(policy_check(&method, policy->options, problem));
  TRY(study_belief_create(setting, policy, problem, 0, &belief));
  if (belief.kind != BELIEF_EXACT && belief.kind != BELIEF_STANDARD)
    return status_set(STATUS_INPUT, "only isotropic priors can be rotated; use 'prior: exact' or 'prior: "
                                    "standard'");
  if (belief.guard.weight > 0)
    return status_set(STATUS_INPUT, "key 'guard': %g; the wide Gaussian has matrices, on one rank",
                      belief.guard.weight);
  const Chain chain = {.d = problem->d, .schedule = {.stages = belief.fit.schedule.stages}};
  const Prior prior = {.d = problem->d, .isotropic = &problem->theta.isotropic, .chain = &chain};
  const SamplerSetup setup = {.prior = &prior,
                              .likelihood = &problem->likelihood,
                              .draws = DENSE_COLUMNS,
                              .options = policy->options};
  if (method.sampler->vectors(&setup))
    return sampler_check(method.sampler, policy->options, &problem->likelihood);
  return status_set(STATUS_INPUT, "with these options it makes matrices for each draw, on one rank");
}

static Status study_spread_check_keys(const Study *study, const Config *setting, const Problem *problem) {
  static const char there[] = " sd_ratio mode_weight moments distance rank rank_norm rank_log_likelihood ";
  if (study->ops->points(setting) != 1 || study_posterior_size(setting, problem, 0) != problem->arms)
    return status_set(STATUS_INPUT,
                      "key 'problem.sample_sizes': the matrix of all of y is decomposed; it must "
                      "be arms");
  const char *word;
  for (int i = 0; (word = study_metric_name(i)); i++) {
    char whole[64];
    snprintf(whole, sizeof whole, " %s ", word);
    if (study_measures(study, word) && !strstr(there, whole))
      return status_set(STATUS_INPUT, "key 'metrics': %s needs all draws on one rank; there are%s", word,
                        there);
  }
  if (!likelihood_is_conjugate(&problem->likelihood))
    return status_set(STATUS_INPUT, "likelihood: %s, but only gaussian has a matrix to decompose",
                      problem->likelihood.ops->name);
  if (problem->resample_arms)
    return status_set(STATUS_INPUT,
                      "key 'problem.resample_arms': there is one matrix per run; it must be false");
  if (config_bool(setting, "prior.standardise"))
    return status_set(STATUS_INPUT, "key 'prior.standardise': it must be false, since the scale of each "
                                    "coordinate would change with the basis");
  return STATUS_OK;
}

/* Returns the peak: either that of the decomposition (the matrix, its eigenvectors, and two matrices of work
 * space) or, later, that of exact draws, draws being made, and a product of two sets of draws. */
double study_posterior_spread_bytes(const Config *setting, const Problem *problem) {
  const double d = problem->d, most = fmax(d, problem->arms), draws = study_posterior_draws(setting),
               reference = study_posterior_reference_draws(setting), larger = fmax(draws, reference);
  return fmax(4 * dense_bytes(most, most),
              dense_bytes(d, reference + 2 * larger) + dense_bytes(larger, larger));
}

Status study_posterior_check_spread(const Study *study, const Config *setting, const Problem *problem) {
  static const char where[] =
      "from %d dimensions on (linear_algebra.distributed_from) matrices are spread over "
      "ranks: ";
  Status status = study_spread_check_keys(study, setting, problem);
  if (status != STATUS_OK) return status_prefix(status, where, problem->d);
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    status = study_spread_check_policy(setting, policy, problem);
    if (status == STATUS_OK) continue;
    status = status_prefix(status, "policy '%s': ", policy->label);
    return status_prefix(status, where, problem->d);
  }
  return STATUS_OK;
}

/* The posterior study: how far every sampler's draws are from the exact posterior, with no bandit at all
 * (DiffTS paper, Appendix C.4 and Figure 7). A run is a history: theta* from the prior, arms chosen uniformly
 * at random (or one after the other, where the problem says so), their rewards. At each of the sample sizes M
 * draws of the sampler are compared with R draws from the exact posterior, and so are R others of those: the
 * floor, which a perfect sampler reaches.
 *
 * Every policy meets the same theta*, arms, rewards and exact draws. A block of B runs draws at once; metrics
 * are taken run by run. */
#include "core/arena.h"
#include "core/clock.h"
#include "core/linalg.h"
#include "sampler/methods.h"
#include "sampler/tilted/tilt_end.h"
#include "study/keys.h"
#include "study/posterior_internal.h"
#include "study/studies.h"

#include <math.h>
#include <string.h>

enum { SEGMENTS = 64 /* between draws, of log_concavity */ };

typedef struct {
  const Study *study;
  const Task *task;
  const Config *setting;
  Problem problem;
  World world;
  History history;
  Sampler sampler, exact; /* exact: the same history, the true prior */
  Prior truth; /* distribution of theta* */
  int draws, reference_draws; /* M, R */
  int *arm; /* [B] */
  double *phi, *reward, *regret; /* [d, B], [B], [B] */
  double *theta, *reference, *floor; /* [d, B M], [d, B R], [d, B R] */
  Cloud x, y, z; /* one run's: draws, exact draws, the second set of exact draws */
  int64_t *ignored; /* [B], fallbacks of the reference */
  Emd *emd;
  Wasserstein *wasserstein;
  TiltEnd end;
  double *evidence; /* [d, d + 1] of one run */
  double *work; /* a theta*, and what a Comparison has to work with */
} Block;

static Status cloud_create(Arena *memory, int d, int n, Cloud *out) {
  out->n = n;
  ALLOCATE(memory, out->theta, (size_t)d * (size_t)n);
  ALLOCATE(memory, out->mean, d);
  ALLOCATE(memory, out->covariance, (size_t)d * (size_t)d);
  return STATUS_OK;
}

static Status allocate(Arena *memory, Block *block) {
  const size_t d = (size_t)block->problem.d, runs = (size_t)block->task->runs, m = d * (size_t)block->draws,
               r = d * (size_t)block->reference_draws;
  ALLOCATE(memory, block->arm, runs);
  ALLOCATE(memory, block->phi, d * runs);
  ALLOCATE(memory, block->reward, runs);
  ALLOCATE(memory, block->regret, runs);
  ALLOCATE(memory, block->theta, runs * m);
  ALLOCATE(memory, block->reference, runs * r);
  ALLOCATE(memory, block->floor, runs * r);
  ALLOCATE(memory, block->ignored, runs);
  TRY(cloud_create(memory, block->problem.d, block->draws, &block->x));
  TRY(cloud_create(memory, block->problem.d, block->reference_draws, &block->y));
  TRY(cloud_create(memory, block->problem.d, block->reference_draws, &block->z));
  const int most = block->draws > block->reference_draws ? block->draws : block->reference_draws;
  const int modes = block->truth.mixture ? block->truth.mixture->components : 0;
  const size_t points = 2 * (size_t)most + 2 * (size_t)modes;
  ALLOCATE(memory, block->work, d + (points > d ? points : d));
  TRY(wasserstein_create(block->problem.d, most, &block->wasserstein));
  if (study_measures(block->study, "log_concavity")) {
    ALLOCATE(memory, block->evidence, d * (d + 1));
    TRY(tilt_end_create(memory, block->problem.d, &block->end));
  }
  return study_measures(block->study, "emd") ? emd_create(most, &block->emd) : STATUS_OK;
}

/* M and R. */
int posterior_draws(const Config *setting) { return (int)config_int(setting, "draws"); }
int posterior_reference_draws(const Config *setting) {
  return config_is(setting, "reference_draws", "draws") ? posterior_draws(setting)
                                                        : (int)config_int(setting, "reference_draws");
}

/* Sample sizes of a setting: how many, and each. */
static int points(const Config *setting) {
  const int64_t *sizes;
  const int count = config_ints(setting, "problem.sample_sizes", &sizes);
  return count > 0 ? count : 1; /* arms */
}

int64_t posterior_size(const Config *setting, int point) {
  const int64_t *sizes;
  const int count = config_ints(setting, "problem.sample_sizes", &sizes);
  return count > 0 ? sizes[point] : problem_arms(setting);
}

static int last_size(const Config *setting) { return (int)posterior_size(setting, points(setting) - 1); }

static Status block_create(Arena *memory, const Study *study, const Task *task, const Prior *prior,
                           Block *block) {
  const Config *setting = study->file->settings[task->setting];
  const ConfigPolicy *policy = &study->file->policies[task->policy];
  block->study = study, block->task = task, block->setting = setting;
  block->draws = posterior_draws(setting);
  block->reference_draws = posterior_reference_draws(setting);
  TRY(problem_create(setting, &block->problem));
  TRY(world_create(&block->problem, task->replicate, task->first_run, task->runs, &block->world));
  TRY(history_create(memory, block->problem.d, task->runs, &block->problem.likelihood, &block->history));
  TRY(history_reserve(&block->history, last_size(setting)));
  PriorFit chain = study_prior_fit(setting, "prior.", study->seed, task->replicate);
  TRY(problem_exact_prior(memory, &block->problem, &chain, &block->truth));
  SamplerSetup setup = {.prior = prior,
                        .likelihood = &block->problem.likelihood,
                        .runs = task->runs,
                        .draws = block->draws,
                        .seed = study->seed,
                        .first_run = task->first_run,
                        .options = policy->options};
  TRY(sampler_create(memory, sampler_find(policy->name), &setup, &block->sampler));
  setup.prior = &block->truth, setup.draws = block->reference_draws, setup.options = NULL;
  TRY(sampler_create(memory, &sampler_exact, &setup, &block->exact));
  return allocate(memory, block);
}

static void block_destroy(Block *block) {
  world_destroy(&block->world);
  problem_destroy(&block->problem);
  emd_destroy(block->emd);
  wasserstein_destroy(block->wasserstein);
}

/* One more observation of every run: an arm at random, or the next one. */
static void grow(Block *block, uint32_t round, int64_t *fallbacks) {
  const Task *task = block->task;
  world_advance(&block->world, round);
  for (int b = 0; b < task->runs; b++) {
    Rng rng = {.key = rng_key(block->study->seed, RNG_HISTORY),
               .run = task->first_run + (uint32_t)b,
               .round = round};
    block->arm[b] = block->problem.arms_in_order ? (int)((round - 1) % (uint32_t)block->problem.arms)
                                                 : (int)rng_index(&rng, (uint64_t)block->problem.arms);
  }
  world_play(&block->world, block->arm, block->phi, block->reward, block->regret);
  history_record(&block->history, block->arm, block->phi, block->reward);
  sampler_observe(&block->sampler, &block->history, fallbacks);
}

/* Draws of all runs, theta[d, B draws]. */
static void draw(Block *block, Sampler *sampler, RngPurpose purpose, uint32_t round, int draws, double *theta,
                 int64_t *fallbacks) {
  RngLanes rng = {.key = rng_key(block->study->seed, purpose),
                  .run = block->task->first_run,
                  .draws = (uint32_t)draws,
                  .round = round,
                  .lanes = (uint32_t)(draws * block->task->runs)};
  sampler_sample(sampler, &block->history, rng, draws, theta, fallbacks);
}

/* Run b's part of theta[d, B n]. */
static void pick_run(const Block *block, int b, const double *theta, Cloud *cloud) {
  const int d = block->problem.d;
  const size_t n = (size_t)cloud->n, stride = (size_t)block->task->runs * n;
  for (int i = 0; i < d; i++)
    memcpy(cloud->theta + (size_t)i * n, theta + (size_t)i * stride + (size_t)b * n, n * sizeof *theta);
  linalg_moments(d, cloud->n, cloud->theta, cloud->mean, cloud->covariance);
}

/* theta*[d] of run b. */
static const double *truth_of(const Block *block, int b, double *truth) {
  for (int i = 0; i < block->problem.d; i++) truth[i] = block->world.theta[i * block->task->runs + b];
  return truth;
}

/* Of the start of tilted transport, at the end of its flow; NAN without evidence. */
static Status measure_concavity(Block *block, int which, int b, Rng rng, double *out) {
  const Mixture *mixture = block->truth.mixture;
  double *precision = block->evidence, *vector = precision + block->problem.d * block->problem.d;
  history_evidence(&(HistoryView){&block->history, 1, b, 1, NULL, NULL}, precision, vector);
  TRY(tilt_end_set(&block->end, precision, vector));
  const double alpha = tilt_end_alpha(&block->end);
  *out = NAN;
  if (!(alpha > 0 && alpha < 1)) return STATUS_OK;
  if (which != CURVE_log_concavity) {
    const double share = which == CURVE_log_concavity_sharp ? 0.25 : 1;
    if (mixture) *out = tilt_end_bound(&block->end, tilt_end_susceptibility(&block->end, mixture, share));
    return STATUS_OK;
  }
  const PriorFit chain = {.stages = 1, .alpha = alpha};
  SCRATCH_ARENA(scratch);
  Prior end;
  TRY(problem_exact_prior(&scratch, &block->problem, &chain, &end));
  return tilt_end_least(&block->end, end.chain, SEGMENTS, block->y.n, block->y.theta, rng, out);
}

#define MEASURE(name, word, text) [CURVE_##name] = measure_##name,
#define MEASURE_AND_FLOOR(name, word, text) MEASURE(name, word, text)[CURVE_##name##_floor] = measure_##name,
/* What measures each curve; NULL: the study itself. */
static Measure *const measures[CURVES] = {METRIC_LIST(MEASURE_AND_FLOOR, MEASURE)};

/* One number for run b at this sample size. A floor compares the second set of exact draws with the first. */
static Status measure(Block *block, int which, int b, uint32_t round, double *out) {
  const int d = block->problem.d;
  const Comparison comparison = {.d = d,
                                 .x = study_posterior.curves[which].unpaired ? &block->z : &block->x,
                                 .y = &block->y,
                                 .truth = truth_of(block, b, block->work),
                                 .modes = block->truth.mixture,
                                 .directions = {.key = rng_key(block->study->seed, RNG_DIRECTION),
                                                .run = block->task->first_run + (uint32_t)b,
                                                .round = round},
                                 .work = block->work + d,
                                 .emd = block->emd,
                                 .wasserstein = block->wasserstein};
  if (measures[which]) return measures[which](&comparison, out);
  if (which != CURVE_ess) return measure_concavity(block, which, b, comparison.directions, out);
  *out = block->sampler.ess[b];
  return STATUS_OK;
}

/* Draw at this sample size, and measure every run. */
static Status compare(Block *block, uint32_t round, int point, TaskResult *result) {
  const Study *study = block->study;
  const int runs = block->task->runs;
  draw(block, &block->exact, RNG_EXACT, round, block->reference_draws, block->reference, block->ignored);
  draw(block, &block->exact, RNG_FLOOR, round, block->reference_draws, block->floor, block->ignored);
  for (int b = 0; b < runs; b++) {
    pick_run(block, b, block->theta, &block->x);
    pick_run(block, b, block->reference, &block->y);
    pick_run(block, b, block->floor, &block->z);
    for (int c = 0; c < study->curve_count; c++) {
      int which = (int)(study->curves[c] - study_posterior.curves);
      size_t at = ((size_t)c * (size_t)runs + (size_t)b) * (size_t)result->points + (size_t)point;
      TRY(measure(block, which, b, round, &result->curves[at]));
    }
  }
  return STATUS_OK;
}

/* Grow the histories and stop at each sample size. `spent` is the CPU time of the sampler alone. */
static Status simulate(Block *block, StudyTick tick, TaskResult *result, double *spent) {
  const Config *setting = block->setting;
  const int64_t last = last_size(setting);
  for (int64_t k = 1, point = 0; k <= last; k++) {
    const bool at_size = k == posterior_size(setting, (int)point);
    double start = clock_cpu();
    grow(block, (uint32_t)k, result->fallbacks);
    if (at_size)
      draw(block, &block->sampler, RNG_AGENT, (uint32_t)k, block->draws, block->theta, result->fallbacks);
    *spent += clock_cpu() - start;
    if (at_size) TRY(compare(block, (uint32_t)k, (int)point++, result));
    /* Drawing is the work. */
    if (tick.tick && !tick.tick(tick.context, (double)point / points(setting)))
      return status_set(STATUS_STOPPED, "stopped after %lld observations", (long long)k);
  }
  return STATUS_OK;
}

static Status run(const Study *study, const Task *task, const Prior *prior, StudyTick tick,
                  TaskResult *result) {
  SCRATCH_ARENA(memory);
  Block block = {0};
  double spent = 0;
  Status status = block_create(&memory, study, task, prior, &block);
  if (status == STATUS_OK) status = simulate(&block, tick, result, &spent);
  for (int b = 0; b < result->runs; b++) result->seconds[b] = spent / result->runs;
  block_destroy(&block);
  return status;
}

static double axis_value(const Config *setting, int point) { return (double)posterior_size(setting, point); }

/* The exact posterior must be within reach, and the sizes must rise. */
static Status check_setting(const Study *study, const Config *setting, const Problem *problem) {
  for (int i = 1; i < points(setting); i++)
    if (posterior_size(setting, i) <= posterior_size(setting, i - 1))
      return status_set(STATUS_INPUT, "key 'problem.sample_sizes': %lld after %lld; they must rise",
                        (long long)posterior_size(setting, i), (long long)posterior_size(setting, i - 1));
  if (problem->per_arm || problem->quadratic)
    return status_set(STATUS_INPUT,
                      "study posterior is about one theta* with rewards that depend on phi' theta*; "
                      "problem.unknown must be shared and problem.reward linear");
  PriorFit chain = study_prior_fit(setting, "prior.", study->seed, 0);
  SCRATCH_ARENA(scratch);
  Prior truth;
  char sentence[512];
  TRY(problem_exact_prior(&scratch, problem, &chain, &truth));
  bool misfit = sampler_misfit(&sampler_exact, &truth, &problem->likelihood, sizeof sentence, sentence);
  bool modes = truth.mixture != NULL, noised = truth.chain != NULL;
  if (misfit) return status_set(STATUS_INPUT, "study posterior needs the exact posterior: %s", sentence);
  if (study_measures(study, "mode_weight") && !modes)
    return status_set(STATUS_INPUT,
                      "key 'metrics': mode_weight needs theta* from a "
                      "mixture of Gaussians; problem.theta = %s is not one",
                      config_text(setting, "problem.theta"));
  if (study_measures(study, "log_concavity") && !noised)
    return status_set(STATUS_INPUT,
                      "key 'metrics': log_concavity needs theta* from a mixture of Gaussians or ising; "
                      "problem.theta = %s is neither",
                      config_text(setting, "problem.theta"));
  return STATUS_OK;
}

static Status check_policy(const PolicyMethod *method, const Config *options) {
  (void)options;
  if (method->sampler) return STATUS_OK;
  return status_set(STATUS_INPUT, "it does not sample theta, and study posterior compares draws");
}

/* A draw of M at each size, and two transport problems for each run, of about a twentieth of the cube of
 * their points in operations. */
static double cost(const Study *study, const Task *task) {
  const Config *setting = study->file->settings[task->setting];
  if (problem_is_large(setting)) return posterior_cost_large(study, task);
  const SamplerOps *sampler = sampler_find(study->file->policies[task->policy].name);
  double m = posterior_draws(setting), r = posterior_reference_draws(setting), sizes = points(setting);
  double matching = study_measures(study, "emd") ? (pow(m + r, 3) + pow(2 * r, 3)) / 20 : 0;
  const PolicyWork all = study_work(study, task);
  SamplerWork work = all.sampler;
  work.rounds = last_size(setting), work.rows = 0;
  work.draws = m, work.drawn = sizes / work.rounds;
  for (int i = 0; i < (int)sizes; i++) work.rows += (double)posterior_size(setting, i) / sizes;
  return task->runs * (work.rounds * (sampler->cost(&work) + study_world_cost(&all)) + sizes * matching);
}

#define CURVE(name, word, text) {#name, text, "1", word, false},
#define CURVE_AND_FLOOR(name, word, text)                                                                    \
  CURVE(name, word, text){#name "_floor", text ", of a second set of exact draws", "1", word, true},

static const StudyCurve curves[] = {
    METRIC_LIST(CURVE_AND_FLOOR, CURVE) /* then the study's own */
    {"log_concavity", "smallest eigenvalue of the Hessian of -log nu_T* between draws from it", "1",
     "log_concavity", true},
    {"log_concavity_bound", "its bound by Theorem 2 for a mixture of this diameter, as printed", "1",
     "log_concavity", true},
    {"log_concavity_sharp", "the same bound with a quarter of the diameter's square, which two points reach",
     "1", "log_concavity", true},
    {"ess", "effective sample size behind the draws", "1", NULL, false},
    {NULL, NULL, NULL, NULL, false}};

const StudyOps study_posterior = {.name = "posterior",
                                  .summary = "draws of every sampler beside exact posterior draws, no bandit",
                                  .reference = "DiffTS, Appendix C.4",
                                  .figure = "figure_diffts_7.py",
                                  .axis = "sample_size",
                                  .axis_long_name = "number of observations",
                                  .curves = curves,
                                  .points = points,
                                  .axis_value = axis_value,
                                  .check_setting = check_setting,
                                  .check_policy = check_policy,
                                  .cost = cost,
                                  .check_large = posterior_check_large,
                                  .run_large = posterior_run_large,
                                  .run = run};

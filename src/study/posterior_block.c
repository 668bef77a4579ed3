/* A task of the posterior study: a block of B runs, whose draws are made together. The histories of the block
 * grow; at each sample size M draws of the policy and R of the exact posterior are made, and the metrics are
 * computed run by run. */
#include "core/clock.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "problem/problem_cases.h"
#include "problem/world.h"
#include "sampler/check/draws_check.h"
#include "sampler/methods.h"
#include "sampler/oracle_counter.h"
#include "sampler/tilted/tilt_end.h"
#include "study/posterior_internal.h"
#include "study/studies.h"
#include "study/study_problem.h"

#define BESIDE(name, word, text)                                                                             \
  [CURVE_##name] = {measure_##name, POSTERIOR_NEEDS_REFERENCE},                                              \
  [CURVE_##name##_floor] = {measure_##name, POSTERIOR_NEEDS_REFERENCE | POSTERIOR_NEEDS_FLOOR},
#define EXACT(name, word, text) [CURVE_##name] = {measure_##name, POSTERIOR_NEEDS_REFERENCE},
#define ALONE(name, word, text) [CURVE_##name] = {measure_##name, 0},
/* The function that measures each curve, NULL: study_compare_draws does it; and what it needs. */
static const struct {
  Measure *measure;
  int needs;
} kinds[CURVES] = {
    METRIC_LIST(BESIDE, EXACT, ALONE)[CURVE_log_concavity] = {NULL, POSTERIOR_NEEDS_REFERENCE}};

int study_posterior_needs(const Study *study, bool has_shared) {
  int all = 0;
  for (int c = 0; c < study->curve_count; c++)
    if (!(has_shared && study->curves[c]->shared))
      all |= kinds[study->curves[c] - study_posterior.curves].needs;
  return all;
}

enum { SEGMENTS = 64 /* segments between draws, for log_concavity */ };

/* Draws of the sampler; exact ones, and further exact ones. */
enum { OF_SAMPLER, OF_REFERENCE, OF_FLOOR, SETS };
static const RngPurpose purposes[SETS] = {RNG_AGENT, RNG_EXACT, RNG_FLOOR};

/* n draws of every run from the streams of their purpose. */
typedef struct {
  double *theta; /* [d, B n]; NULL: they are not needed */
  Cloud run; /* those of one run */
} Draws;

typedef struct {
  const TaskRun *run;
  int first, runs; /* the runs of the task that are in the block */
  World world;
  History history;
  Sampler sampler, exact; /* exact: the same history, the true prior */
  Policy policy; /* used instead of `sampler` if the policy draws without one */
  History own; /* the observations of that policy, or of a sampler that forgets */
  const History *seen; /* what the policy reads: `own` or `history` */
  DrawsCheck *check; /* of the draws of `sampler`; NULL: it is not known where they should be */
  Prior truth; /* distribution of theta*; set, like `exact`, if exact draws are needed */
  int references; /* draws that a file has of each case, used in place of exact ones; 0: none */
  OracleCounter counter; /* of the policy's prior */
  int64_t calls; /* of it, for the last draws */
  int needs; /* what the curves that the result does not have yet need */
  bool moments; /* the metrics need those of the clouds */
  int *arm; /* [B] */
  double *phi, *reward, *regret; /* [d, B], [B], [B] */
  Draws sets[SETS];
  int64_t *ignored; /* [B], fallbacks of the exact sampler */
  Comparison comparison; /* of one run */
  HistoryDensity density; /* of that run */
  double *star; /* [d], its theta* */
  TiltEnd end;
  double *evidence; /* [d, d + 1] of one run */
} Block;

/* Creates the policy's sampler, or the policy itself if it has none. */
static Status study_create_policy_sampler(Arena *memory, Block *block) {
  const PolicyMethod *method = &block->run->method;
  PolicySetup setup = study_policy_setup(block->run);
  setup.first_run += (uint32_t)block->first;
  setup.runs = block->runs;
  setup.draws = study_posterior_draws(block->run->setting);
  setup.observations = study_posterior_last_size(block->run->setting, block->run->problem);
  if (method->sampler) {
    SamplerSetup sampler = policy_sampler_setup(&setup);
    bool forgets;
    oracle_counter_begin(sampler.prior, &block->counter);
    sampler.prior = &block->counter.prior;
    sampler.draws = setup.draws;
    sampler.for_themselves = true;
    sampler.observations = setup.observations;
    TRY(sampler_create(memory, method->sampler, &sampler, &block->sampler));
    TRY(sampler_history(memory, &sampler, 1, &forgets, &block->own));
    block->seen = forgets ? &block->own : &block->history;
    return draws_check_create(memory, &block->sampler, block->seen, &block->check);
  }
  block->seen = &block->own;
  TRY(policy_history(memory, method, &setup, &block->own));
  TRY(history_reserve(&block->own, setup.observations));
  return policy_create(memory, method, &setup, &block->policy);
}

/* Finds the mixture of theta* without matrices, for the weights of its modes; NULL: it is not isotropic. */
static Status study_posterior_find_isotropic(Arena *memory, const Block *block, const Isotropic **out) {
  const Isotropic *own = &block->run->problem->theta.isotropic;
  const Prior *truth = &block->truth;
  Isotropic *modes;
  *out = own->d > 0 ? own : NULL;
  if (*out || !truth->isotropic) return STATUS_OK;
  ALLOCATE(memory, modes, 1);
  TRY(denoiser_isotropic_copy(memory, truth->isotropic, modes));
  denoiser_isotropic_transform(truth->chain->shift, truth->chain->scale[0], modes);
  *out = modes;
  return STATUS_OK;
}

static Status study_posterior_block_create(Arena *memory, Block *block) {
  const TaskRun *run = block->run;
  const Study *study = run->study;
  const Task *task = run->task;
  const Problem *problem = run->problem;
  const int m = study_posterior_draws(run->setting), r = study_posterior_reference_draws(run->setting),
            most = m > r ? m : r;
  block->needs = study_posterior_needs(study, run->result->has_shared);
  block->moments = study_measures(study, "moments") || study_measures(study, "sd_ratio");
  const uint32_t first_run = task->first_run + (uint32_t)block->first;
  TRY(world_create(problem, task->replicate, first_run, block->runs, &block->world));
  TRY(history_create(memory, problem->d, block->runs, &problem->likelihood, &block->history));
  TRY(history_reserve(&block->history, study_posterior_last_size(run->setting, problem)));
  TRY(study_create_policy_sampler(memory, block));
  block->references = problem->cases > 0 ? problem_cases_file(problem)->references : 0;
  if (block->needs) { /* the sampler of the true posterior */
    const PriorFit chain = fit_of_keys(run->setting, study->seed, task->replicate);
    const SamplerSetup setup = {.prior = &block->truth,
                                .likelihood = &problem->likelihood,
                                .runs = block->runs,
                                .draws = r,
                                .seed = study->seed,
                                .first_run = first_run,
                                .for_themselves = true};
    TRY(problem_exact_prior(memory, problem, &chain, &block->truth));
    if (block->references == 0) TRY(sampler_create(memory, &sampler_exact, &setup, &block->exact));
  }
  const size_t d = (size_t)problem->d, runs = (size_t)block->runs;
  const Isotropic *isotropic;
  TRY(study_posterior_find_isotropic(memory, block, &isotropic));
  const int modes = isotropic              ? isotropic->components
                    : block->truth.mixture ? block->truth.mixture->components
                                           : 0;
  ALLOCATE(memory, block->arm, runs);
  ALLOCATE_ARRAYS(memory, runs, &block->reward, &block->regret);
  ALLOCATE(memory, block->ignored, runs);
  ALLOCATE(memory, block->phi, d * runs);
  static const int needed[SETS] = {0, POSTERIOR_NEEDS_REFERENCE, POSTERIOR_NEEDS_FLOOR};
  for (int s = 0; s < SETS; s++) {
    Draws *draws = &block->sets[s];
    draws->run.n = s == OF_SAMPLER ? m : r;
    const size_t n = (size_t)draws->run.n;
    if (needed[s] && !(block->needs & needed[s])) continue;
    ALLOCATE(memory, draws->theta, d * n * runs);
    ALLOCATE(memory, draws->run.theta, d * n);
    if (!block->moments) continue;
    ALLOCATE(memory, draws->run.mean, d);
    if (!metric_without_covariance(problem->d, draws->run.n)) ALLOCATE(memory, draws->run.covariance, d * d);
  }
  ALLOCATE(memory, block->star, d);
  block->comparison = (Comparison){.d = problem->d,
                                   .y = &block->sets[OF_REFERENCE].run,
                                   .truth = block->star,
                                   .history = &block->history,
                                   .density = &block->density,
                                   .modes = isotropic ? NULL : block->truth.mixture,
                                   .isotropic = isotropic,
                                   .projections = (int)config_int(run->setting, "projections")};
  ALLOCATE(memory, block->comparison.work, metric_work(problem->d, most, modes));
  TRY(history_density_create(memory, problem->d, 1, block->history.likelihood, &block->density));
  TRY(wasserstein_create(memory, problem->d, most, &block->comparison.wasserstein));
  if (study_measures(study, "log_concavity")) {
    ALLOCATE(memory, block->evidence, d * (d + 1));
    TRY(tilt_end_create(memory, problem->d, &block->end));
  }
  return study_measures(study, "emd") ? emd_create(memory, most, &block->comparison.emd) : STATUS_OK;
}

static void study_posterior_block_destroy(Block *block) {
  policy_destroy(&block->policy);
  world_destroy(&block->world);
}

static void study_draw_with_sampler(const Block *block, int set, Sampler *sampler, const History *history,
                                    int64_t *fallbacks) {
  const Draws *draws = &block->sets[set];
  const World *world = &block->world;
  const RngLanes rng = rng_lanes(rng_key(block->run->study->seed, purposes[set]), world->first_run,
                                 world->runs, draws->run.n, world->round);
  sampler_sample(sampler, history, rng, draws->run.n, draws->theta, fallbacks);
}

/* Reads the exact draws of a case from its file: the first R and, for the floor, the next R, if there are
 * more; else NaN. */
static Status study_read_references(Block *block) {
  const Problem *problem = block->run->problem;
  for (int s = OF_REFERENCE; s < SETS; s++) {
    const Draws *draws = &block->sets[s];
    const int n = draws->run.n, first = s == OF_REFERENCE ? 0 : n;
    if (draws->theta && first + n <= block->references)
      TRY(io_cases_read_reference(problem_cases_file(problem), problem_cases_number(problem), first, n,
                                  draws->theta));
    else if (draws->theta)
      draws->theta[0] = NAN;
  }
  return STATUS_OK;
}

/* Makes the draws of the policy's sampler, and counts what it asks the prior. */
static Status study_draw_with_policy_sampler(Block *block) {
  const int64_t before = block->counter.calls;
  study_draw_with_sampler(block, OF_SAMPLER, &block->sampler, block->seen,
                          block->run->result->columns.fallbacks + block->first);
  block->calls = block->counter.calls - before;
  return prior_check(block->run->prior);
}

/* Returns the part of the log evidence that histories leave out: the largest log likelihood of each
 * observation, which with Gaussian rewards is the same for all. */
static double study_evidence_constant(const Block *block, int b) {
  const History *history = &block->history;
  const Likelihood *likelihood = history->likelihood;
  const int count = history_observations(history, b);
  double sum = 0;
  if (likelihood->ops->quadratic) return block->sampler.temper * count * likelihood_best(likelihood, 0);
  for (int l = 0; l < count; l++)
    sum += likelihood_best(likelihood,
                           history_observation(history, b, l, (size_t)history->runs, block->phi + b));
  return block->sampler.temper * sum;
}

/* Makes the exact draws at this sample size. */
static Status study_draw_exactly(Block *block) {
  if (block->references > 0) return study_read_references(block);
  for (int s = OF_REFERENCE; s < SETS; s++)
    if (block->sets[s].theta)
      study_draw_with_sampler(block, s, &block->exact, &block->history, block->ignored);
  return STATUS_OK;
}

/* Measures the log-concavity of the density that tilted transport starts from, at the end of its flow, or one
 * of the bounds; NAN without evidence. */
static Status study_measure_concavity(Block *block, int which, int b, Rng rng, double *out) {
  const Mixture *mixture = block->truth.mixture;
  double *precision = block->evidence, *vector = precision + block->run->problem->d * block->run->problem->d;
  const HistoryView view = history_view(&block->history, 1, b, 1);
  history_evidence(&view, precision, vector);
  TRY(tilt_end_set(&block->end, precision, vector));
  const double alpha = tilt_end_alpha(&block->end);
  *out = NAN;
  if (!(alpha > 0 && alpha < 1)) return STATUS_OK;
  if (which != CURVE_log_concavity) {
    const double share = which == CURVE_log_concavity_sharp ? 0.25 : 1;
    if (mixture) *out = tilt_end_bound(&block->end, tilt_end_susceptibility(&block->end, mixture, share));
    return STATUS_OK;
  }
  const PriorFit chain = {.schedule = {.stages = 1, .alpha = alpha}};
  SCRATCH_ARENA(scratch);
  Prior end;
  TRY(problem_exact_prior(&scratch, block->run->problem, &chain, &end));
  return tilt_end_least(&block->end, end.chain, SEGMENTS, block->sets[OF_REFERENCE].run.n,
                        block->sets[OF_REFERENCE].run.theta, rng, out);
}

/* Returns what the sampler noted about its draws of run b. */
static double study_noted(const Block *block, int which, int b) {
  const DrawNotes *notes = &block->sampler.notes[b];
  const double draws = (double)block->world.runs * block->sets[OF_SAMPLER].run.n;
  switch (which) {
  case CURVE_ess: return notes->ess;
  case CURVE_distinct: return notes->distinct;
  case CURVE_oracle_calls: return isnan(notes->calls) ? (double)block->calls / draws : notes->calls;
  case CURVE_log_evidence: return notes->log_evidence + study_evidence_constant(block, b);
  default: return notes->log_evidence_error;
  }
}

/* Makes the exact draws at this sample size, and measures every run. */
static Status study_compare_draws(Block *block, int point) {
  const Study *study = block->run->study;
  const TaskResult *result = block->run->result;
  const World *world = &block->world;
  const int runs = world->runs, d = block->run->problem->d;
  const Draws *sets = block->sets;
  Comparison *comparison = &block->comparison;
  if (block->check)
    draws_check_add(block->check, block->seen, sets[OF_SAMPLER].run.n, sets[OF_SAMPLER].theta);
  TRY(study_draw_exactly(block));
  for (int b = 0; b < runs; b++) {
    comparison->run = b;
    comparison->directions = (Rng){.key = rng_key(study->seed, RNG_DIRECTION),
                                   .run = world->first_run + (uint32_t)b,
                                   .round = world->round};
    lanes_copy(d, 1, world->theta + b, runs, block->star, 1);
    for (int s = 0; s < SETS; s++) {
      const Cloud *own = &sets[s].run;
      if (!sets[s].theta) continue;
      lanes_copy(d, own->n, sets[s].theta + (size_t)b * (size_t)own->n, runs * own->n, own->theta, own->n);
      if (block->moments && own->covariance)
        linalg_moments(d, own->n, own->theta, own->mean, own->covariance);
      if (block->moments && !own->covariance) linalg_mean(d, own->n, own->theta, own->mean);
    }
    for (int c = 0; c < study->curve_count; c++) {
      const int which = (int)(study->curves[c] - study_posterior.curves);
      const bool shared = study->curves[c]->shared;
      double *out = study_result_values(result, c, block->first + b) + point;
      if (result->has_shared && shared) continue;
      /* A floor compares the second set of exact draws with the first. */
      comparison->x = &sets[shared ? OF_FLOOR : OF_SAMPLER].run;
      if (shared && comparison->x->theta && isnan(comparison->x->theta[0]))
        *out = NAN; /* the file has too few reference draws for a second set */
      else if (kinds[which].measure)
        TRY(kinds[which].measure(comparison, out));
      else if (which >= CURVE_ess)
        *out = block->policy.ops ? NAN : study_noted(block, which, b);
      else
        TRY(study_measure_concavity(block, which, b, comparison->directions, out));
    }
  }
  return STATUS_OK;
}

/* Grows the histories of a block, and draws and measures at each sample size; adds the seconds of the sampler
 * alone. */
static Status study_posterior_run_block(const TaskRun *run, int first, int runs, double *seconds) {
  SCRATCH_ARENA(memory);
  SCOPED(Block, block, study_posterior_block_destroy);
  World *world = &block.world;
  Columns *columns = &run->result->columns;
  const int last = study_posterior_last_size(run->setting, run->problem), arms = run->problem->arms;
  const int points = study_posterior_points(run->setting);
  const RngKey key = rng_key(run->study->seed, RNG_HISTORY);
  Timer timer = {0};
  block.run = run;
  block.first = first;
  block.runs = runs;
  TRY(study_posterior_block_create(&memory, &block));
  for (int k = 1, point = 0; k <= last; k++) {
    const bool at_size =
        k == (point < points - 1 ? study_posterior_size(run->setting, run->problem, point) : last);
    timer_start(&timer);
    world_advance(world, (uint32_t)k);
    for (int b = 0; b < runs; b++) { /* a random arm, or the next one in order */
      Rng rng = {.key = key, .run = world->first_run + (uint32_t)b, .round = world->round};
      block.arm[b] = run->problem->arms_in_order ? (k - 1) % arms : (int)rng_index(&rng, (uint64_t)arms);
    }
    world_play(world, block.arm, block.phi, block.reward, block.regret);
    history_record(&block.history, block.arm, block.phi, block.reward);
    if (block.seen == &block.own) history_record(&block.own, block.arm, block.phi, block.reward);
    if (!block.policy.ops) sampler_observe(&block.sampler, block.seen, columns->fallbacks + first);
    if (at_size && block.policy.ops)
      TRY(block.policy.ops->draw(&block.policy, block.seen, block.sets[OF_SAMPLER].theta));
    else if (at_size)
      TRY(study_draw_with_policy_sampler(&block));
    timer_stop(&timer);
    if (at_size) TRY(study_compare_draws(&block, point++));
    /* Progress is counted in sample sizes, since drawing is most of the work. */
    const double done = (first + (double)runs * point / points) / run->task->runs;
    if (!core_tick_goes_on(run->tick, done))
      return status_set(STATUS_STOPPED, "stopped after %d observations", k);
  }
  if (block.check)
    draws_check_means(block.check, runs, columns->draws_offset + first, columns->draws_spread + first);
  *seconds += timer.seconds + block.policy.elsewhere;
  return STATUS_OK;
}

int study_posterior_together(int d, int runs) {
  static const double MOST_NUMBERS = 1 << 24;
  const double together = floor(MOST_NUMBERS / ((double)d * d));
  return together >= runs ? runs : together > 1 ? (int)together : 1;
}

/* Takes a few runs side by side; results do not depend on how many. */
Status study_posterior_run(const TaskRun *run) {
  const int all = run->task->runs, most = study_posterior_together(run->problem->d, all);
  double seconds = 0;
  for (int first = 0; first < all; first += most)
    TRY(study_posterior_run_block(run, first, all - first < most ? all - first : most, &seconds));
  study_result_set_seconds(seconds + prior_seconds_elsewhere(run->prior), run->result);
  return STATUS_OK;
}

/* The stream study: bandits that come one after the other, and priors that are learned along the way.
 *
 * A run is a stream of `stream.tasks` bandits of problem.rounds rounds; bandit j of stream s is run s * tasks
 * + j of the same world in a bandit study. A policy whose prior would otherwise be fitted starts with the
 * Gaussian of `stream.start`, and after every stream.every bandits its prior is learned from what it has seen
 * itself (model/prior/prior_online.h). Any other policy keeps its prior, so that its bandits are independent
 * and advance together. From bandit stream.switch_at on, theta* is drawn from stream.switch_to. For
 * comparison, the same policy plays the same bandits with the known prior of each world. */
#include "core/linalg/linalg.h"
#include "model/prior/prior_online.h"
#include "study/simulation.h"
#include "study/studies.h"
#include "study/study_problem.h"

enum { TOGETHER = 64 /* bandits that advance together, at most */, COMPONENTS = 16, WORLDS = 2 };

typedef struct {
  const TaskRun *run;
  Problem second; /* after the switch, if there is one */
  const Problem *problem[WORLDS]; /* before and after it */
  const Prior *known[WORLDS]; /* NULL: the sampler does not use it, or it is not known */
  int tasks, switch_at, every;
  uint32_t stream; /* the one that is played */
  int64_t *fallbacks; /* in it */
  double seconds; /* CPU seconds of the policy in it, and of what is learned for it */
  double done, total; /* number of bandits played, and of all in the task */
} Streams;

static int study_stream_world_of_bandit(const Streams *self, int bandit) {
  return self->switch_at > 0 && bandit >= self->switch_at;
}

static Status study_stream_add_regret(const Probe *probe, int k) {
  double *regret = probe->state; /* [B], of the bandits so far */
  (void)k;
  for (int b = 0; b < probe->simulation->world.runs; b++) regret[b] += probe->simulation->regret[b];
  return STATUS_OK;
}

static const ProbeOps regret_probe = {.measure = {[AFTER_CHOICE] = study_stream_add_regret}, .quick = true};

/* What is learned from bandits while they are played. */
typedef struct {
  Online *online;
  int base; /* the bandits are its tasks from here on */
  double *x; /* [d] */
} Learner;

/* Shows the rewards of a round to what learns; its time counts as the policy's. */
static Status study_stream_show_learner(const Probe *probe, int k) {
  const Learner *learner = probe->state;
  const Simulation *now = probe->simulation;
  const int count = now->world.runs;
  (void)k;
  for (int b = 0; b < count; b++) {
    for (int i = 0; i < learner->online->logs.d; i++) learner->x[i] = now->phi[i * count + b];
    TRY(logs_add(&learner->online->logs, learner->base + b, learner->x, now->reward[b]));
  }
  return STATUS_OK;
}

static const ProbeOps learner_probe = {.measure = {[AFTER_LEARNING] = study_stream_show_learner},
                                       .quick = true};

/* Tells the task's tick how many of its bandits are done. */
static bool study_stream_tick(void *context, double share_of_bandit) {
  const Streams *self = context;
  (void)share_of_bandit;
  return core_tick_goes_on(self->run->tick, self->done / self->total);
}

/* Plays bandits first .. first + count - 1, in one world, as the runs of a task: regret[count]. What is
 * learned from, which may be NULL, is shown what the policy sees. */
static Status study_stream_play_stretch(Streams *self, int first, int count, const Prior *prior,
                                        Online *online, double *regret) {
  SCRATCH_ARENA(memory);
  SCOPED(Simulation, simulation, simulation_destroy);
  const Task bandits = {.policy = self->run->task->policy,
                        .replicate = self->run->task->replicate,
                        .first_run = self->stream * (uint32_t)self->tasks + (uint32_t)first,
                        .runs = count};
  TaskResult result = {.runs = count};
  TaskRun run = *self->run;
  Learner learner = {.online = online};
  run.task = &bandits;
  run.prior = prior;
  run.problem = self->problem[study_stream_world_of_bandit(self, first)];
  run.tick = (Tick){study_stream_tick, self};
  run.result = &result;
  TRY(columns_create(&memory, (size_t)count, &result.columns));
  TRY(simulation_create(&memory, &run, RULE_CHOOSES, &simulation));
  memset(regret, 0, (size_t)count * sizeof *regret);
  TRY(simulation_add_probe(&memory, &regret_probe, -1, regret, &simulation));
  if (online) {
    learner.base = online->logs.tasks;
    ALLOCATE(&memory, learner.x, run.problem->d);
    TRY(simulation_add_probe(&memory, &learner_probe, -1, &learner, &simulation));
  }
  TRY(simulation_run(&simulation));
  self->done += count;
  self->seconds += simulation_seconds(&simulation);
  for (int b = 0; b < count; b++) *self->fallbacks += result.columns.fallbacks[b];
  return STATUS_OK;
}

/* Returns the number of bandits from `first` on that belong to one world and come before the next update,
 * which follows every `every` bandits (0: never); at most TOGETHER. */
static int study_stream_stretch_length(const Streams *self, int first, int every) {
  int count = self->tasks - first < TOGETHER ? self->tasks - first : TOGETHER;
  if (every > 0 && every - first % every < count) count = every - first % every;
  if (first < self->switch_at && self->switch_at - first < count) count = self->switch_at - first;
  return count;
}

/* Plays a stream under the prior of each world: regret[tasks], NaN if the prior is NULL. */
static Status study_stream_play_fixed(Streams *self, const Prior *const prior[WORLDS], double *regret) {
  for (int j = 0, count; j < self->tasks; j += count) {
    const Prior *own = prior[study_stream_world_of_bandit(self, j)];
    count = study_stream_stretch_length(self, j, 0);
    if (own)
      TRY(study_stream_play_stretch(self, j, count, own, NULL, regret + j));
    else
      for (int b = j; b < j + count; b++) regret[b] = NAN;
  }
  return STATUS_OK;
}

/* Learns by ridge regression from the Gaussian of the start, as if all bandits so far had the same theta. */
static Status study_stream_learn_pooled(const Online *learner) {
  SCRATCH_ARENA(memory);
  const int d = learner->logs.d;
  const double variance = learner->logs.likelihood->noise * learner->logs.likelihood->noise;
  const Mixture *start = &learner->start;
  Mixture now = learner->now;
  double *precision;
  ALLOCATE(&memory, precision, d * d);
  memcpy(precision, mixture_precision(start, 0), (size_t)(d * d) * sizeof *precision);
  memcpy(now.mean, mixture_information(start, 0), (size_t)d * sizeof *now.mean);
  for (int t = 0; t < learner->logs.tasks; t++) {
    const double *entry = logs_task(&learner->logs, t);
    for (int i = 0; i < d; i++)
      for (int j = 0; j <= i; j++) precision[i * d + j] += *entry++ / variance;
    for (int i = 0; i < d; i++) now.mean[i] += *entry++ / variance;
  }
  linalg_factor_cholesky(d, 1, precision, NULL);
  linalg_factor_solve(d, 1, precision, now.mean);
  linalg_inverse(d, precision, now.covariance);
  return mixture_prepare(&now);
}

/* Plays a stream whose prior is learned along the way, starting with N(0, I) or N(0, 4 I). */
static Status study_stream_play_learning(Streams *self, double *regret) {
  SCRATCH_ARENA(memory);
  Online learner;
  Mixture start, one;
  const Config *setting = self->run->setting;
  const int d = self->run->problem->d, most = config_is(setting, "stream.learn", "mixture") ? COMPONENTS : 1;
  const bool never = config_is(setting, "stream.learn", "none"),
             pooled = config_is(setting, "stream.learn", "pooled"),
             single = self->run->method.sampler->needs & NEEDS_GAUSSIAN;
  TRY(mixture_create(&memory, d, 1, &start));
  start.weight[0] = 1;
  for (int i = 0; i < d; i++)
    start.covariance[i * (d + 1)] = config_is(setting, "stream.start", "wide") ? 4 : 1;
  TRY(prior_online_create(&memory, &start, most, &self->run->belief.likelihood,
                          rng_key(self->run->study->seed, RNG_MIXTURE_START), self->stream, &learner));
  learner.in_order = true;
  for (int j = 0, count; j < self->tasks; j += count) {
    SCRATCH_ARENA(scratch);
    const Mixture *learned = &learner.now;
    Prior prior;
    count = study_stream_stretch_length(self, j, self->every);
    if (single) { /* a single Gaussian, with the moments of the mixture */
      TRY(mixture_create(&scratch, d, 1, &one));
      one.weight[0] = 1;
      mixture_moments(learned, one.mean, one.covariance);
      TRY(mixture_prepare(&one));
      learned = &one;
    }
    TRY(prior_from_mixture(&scratch, learned, &self->run->belief.fit, &prior));
    prior.guard = self->run->belief.guard;
    TRY(study_stream_play_stretch(self, j, count, &prior, never ? NULL : &learner, regret + j));
    if (never || (j + count) % self->every != 0) continue;
    Timer timer = {0};
    timer_start(&timer);
    TRY(pooled ? study_stream_learn_pooled(&learner) : prior_online_learn(&learner));
    timer_stop(&timer);
    self->seconds += timer.seconds;
  }
  return STATUS_OK;
}

/* Creates the problem after the switch, different only in theta*; the caller must call problem_destroy. */
static Status study_stream_create_second(const Config *setting, Problem *out) {
  TRY(study_problem_create(setting, out));
  problem_theta_destroy(&out->theta);
  return problem_theta_create(problem_theta_find(config_text(setting, "stream.switch_to")), out->d, NULL,
                              config_real(setting, "prior.test_fraction"), out->seed, &out->theta);
}

static Status study_streams_create(Arena *memory, Streams *self) {
  const TaskRun *run = self->run;
  const SamplerOps *sampler = run->method.sampler;
  self->tasks = (int)config_int(run->setting, "stream.tasks");
  self->switch_at = (int)config_int(run->setting, "stream.switch_at");
  self->every = (int)config_int(run->setting, "stream.every");
  self->total = 2.0 * self->tasks * run->task->runs;
  self->problem[0] = run->problem;
  self->problem[1] = &self->second;
  if (self->switch_at > 0) TRY(study_stream_create_second(run->setting, &self->second));
  for (int w = 0; w <= (self->switch_at > 0); w++) {
    /* the known prior of the world, if there is one and the sampler can run with it */
    char sentence[512];
    Prior *known;
    if (!sampler || !run->method.default_prior || likelihood_has_network(&run->belief.likelihood) ||
        !problem_has_exact_prior(self->problem[w]))
      continue;
    ALLOCATE(memory, known, 1);
    TRY(problem_exact_prior(memory, self->problem[w], &run->belief.fit, known));
    if (!sampler_misfit(sampler, known, &run->belief.likelihood, sizeof sentence, sentence))
      self->known[w] = known;
  }
  return STATUS_OK;
}

static void study_streams_destroy(Streams *self) { problem_destroy(&self->second); }

static Status study_stream_run(const TaskRun *run) {
  SCRATCH_ARENA(memory);
  SCOPED(Streams, self, study_streams_destroy);
  const Task *task = run->task;
  TaskResult *result = run->result;
  self.run = run;
  TRY(study_streams_create(&memory, &self));
  const Prior *const fixed[WORLDS] = {run->prior, run->prior};
  const bool learns = run->belief.learns;
  for (int b = 0; b < task->runs; b++) {
    double *own = study_result_values(result, 0, b), *known = study_result_values(result, 1, b);
    self.stream = task->first_run + (uint32_t)b;
    self.fallbacks = &result->columns.fallbacks[b];
    self.seconds = 0;
    TRY(learns ? study_stream_play_learning(&self, own) : study_stream_play_fixed(&self, fixed, own));
    result->columns.seconds[b] = self.seconds;
    TRY(study_stream_play_fixed(&self, self.known, known));
  }
  return STATUS_OK;
}

static Status study_stream_check_setting(const Study *study, const Config *setting, const Problem *problem) {
  const double tasks = (double)config_int(setting, "stream.tasks");
  if (config_is(setting, "stream.learn", "pooled") && !config_is(setting, "likelihood", "gaussian"))
    return status_set(STATUS_INPUT,
                      "stream.learn: pooled is ridge regression, which needs likelihood: gaussian");
  if (problem->ops->rewards || problem->per_arm)
    return status_set(STATUS_INPUT, "a stream needs one theta* for all arms, which determines the rewards");
  if (config_is(setting, "prior.guard", "auto") || config_real(setting, "prior.guard") > 0)
    return status_set(STATUS_INPUT,
                      "prior.guard: in a stream the initial Gaussian stays mixed with what is learned, with "
                      "a learned weight; to guard one policy, use its option guard");
  if ((double)study->runs.most * tasks > UINT32_MAX)
    return status_set(STATUS_INPUT, "runs and stream.tasks: at most %u bandits in total", UINT32_MAX);
  if (config_int(setting, "stream.switch_at") == 0) return STATUS_OK;
  if (strcmp(problem->ops->name, "synthetic") != 0)
    return status_set(STATUS_INPUT, "stream.switch_at needs problem.family: synthetic; this is %s",
                      problem->ops->name);
  SCOPED(Problem, second, problem_destroy);
  const Status status = study_stream_create_second(setting, &second);
  return status == STATUS_OK ? status : status_prefix(status, "stream.switch_to: ");
}

static Status study_stream_check_policy(const PolicyMethod *method, const Config *options) {
  (void)method;
  if (!config_has(options, "posterior") || !config_is(options, "posterior", "per_arm")) return STATUS_OK;
  return status_set(STATUS_INPUT, "posterior: per_arm, but a stream has one theta* for all arms");
}

static int study_stream_points(const Config *setting) { return (int)config_int(setting, "stream.tasks"); }

static double study_stream_draws(const Config *setting) {
  return (double)study_stream_points(setting) * (double)config_int(setting, "problem.rounds");
}

static const StudyCurve curves[] = {
    {.name = "task_regret", .long_name = "expected regret of each bandit at its end", .tails = true},
    {.name = "task_regret_known",
     .long_name = "expected regret of each bandit at its end, by the same policy with the known prior"},
    {.name = NULL}};

const StudyOps study_stream = {.name = "stream",
                               .summary = "bandits one after the other, with priors learned along the way",
                               .reference = "Kveton et al. 2021 (MetaTS)",
                               .figure = "figure_stream.py",
                               .keys = "problem.rounds stream",
                               .axis = "bandit_task",
                               .axis_long_name = "bandit of the stream",
                               .curves = curves,
                               .points = study_stream_points,
                               .points_key = "stream.tasks",
                               .draws = study_stream_draws,
                               .check_setting = study_stream_check_setting,
                               .check_policy = study_stream_check_policy,
                               .run = study_stream_run};

/* thompson train: fit a prior on a study's distribution of theta*, on the user's own samples, or on logs of
 * past tasks (--logs). Works under mpiexec. */
#include "app/app.h"
#include "core/numeral.h"
#include "model/logs/logs_identified.h"
#include "model/prior/logs_fit.h"
#include "model/prior/training_samples.h"
#include "parallel/priors/auto.h"
#include "parallel/priors/fits.h"
#include "parallel/priors/logs_learn.h"
#include "study/study_problem.h"

#include <math.h>

static struct {
  const char *study, *theta, *logs, *output, *noise;
  const LikelihoodOps *likelihood;
  const PriorOps *family;
  AppTexts options;
  uint64_t seed;
  bool has_seed;
  int sizes, size[CANDIDATE_SIZES]; /* --observations */
  double sigma; /* --noise; 0: estimate */
} arguments = {.output = "prior.nc", .seed = 1, .size = {5, 50, 500}};

static void take_likelihood(struct argp_state *state, const char *text) {
  arguments.likelihood = likelihood_find(text);
  if (!arguments.likelihood) app_unknown_name(state, "--likelihood", text, "a likelihood", likelihood_name);
}

static void take_family(struct argp_state *state, const char *text) {
  arguments.family = study_candidates_family(text);
  if (!arguments.family) app_unknown_name(state, "--family", text, "a family of priors", prior_name);
}

static void take_seed(struct argp_state *state, const char *text) {
  arguments.seed = app_seed(state, text);
  arguments.has_seed = true;
}

static void take_observations(struct argp_state *state, const char *text) {
  enum { MOST = 100000 };
  char *copy = strdup(text), *rest = copy;
  arguments.sizes = 0;
  for (const char *part; (part = strsep(&rest, ","));) {
    if (arguments.sizes == CANDIDATE_SIZES)
      argp_error(state, "--observations %s: give at most %d numbers", text, CANDIDATE_SIZES);
    const int size = (int)app_integer(state, "--observations", part, 1, MOST);
    if (arguments.sizes > 0 && size <= arguments.size[arguments.sizes - 1])
      argp_error(state, "--observations %s: the numbers must increase", text);
    arguments.size[arguments.sizes++] = size;
  }
  free(copy);
}

static const AppOption options[] = {
    {"theta", 0, "FILE", "samples of theta: NetCDF theta(sample, dim), or CSV without header",
     .text = &arguments.theta},
    {"logs", 0, "FILE",
     "logs of past tasks: CSV with header task,x1,...,xd,y, or NetCDF task(observation), x(observation, "
     "dim), y(observation)",
     .text = &arguments.logs},
    {"likelihood", 0, "NAME",
     "likelihood of the rewards in logs, or in the tasks of --theta with --family auto: gaussian (default), "
     "logistic, poisson",
     .take = take_likelihood},
    {"noise", 0, "S|estimate",
     "standard deviation of Gaussian rewards in logs (default: estimate, learned with the prior), or in the "
     "tasks of --theta with --family auto (default: 1)",
     .text = &arguments.noise},
    {"observations", 0, "N[,N..]",
     "observations of a task of --theta with --family auto before draws are scored: up to three increasing "
     "numbers (default: 5,50,500)",
     .take = take_observations},
    {"family", 0, "NAME",
     "family of the prior, see `thompson list priors`, or auto: the family and sampler whose posterior draws "
     "are best on held-out tasks (default: mixture; diffusion if an --option is for networks, or a policy of "
     "the study learns one)",
     .take = take_family},
    {"output", 'o', "FILE", "prior file (default: prior.nc)", .output = &arguments.output},
    {"seed", 0, "N", "seed of the fit (default: the study's, or 1)", .take = take_seed},
    {"option", 0, "KEY=VALUE", "a key of prior.*, without the prefix: stages=50",
     .texts = &arguments.options},
    {0}};

/* Refuses options about tasks where they have no effect. Takes --noise into sigma; 0: it is learned. */
/* Returns whether an option, "KEY=VALUE", is one of a fit without networks. */
static bool train_option_suits_mixtures(const char *text) {
  static const char *const keys[] = {"components=", "mixture_starts=", "contamination=", "guard_width="};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strncmp(text, keys[i], strlen(keys[i])) == 0) return true;
  return false;
}

/* Returns the family of a fit to the user's own data if none is named. */
static const PriorOps *train_default_family(void) {
  for (int i = 0; i < arguments.options.count; i++)
    if (!train_option_suits_mixtures(arguments.options.texts[i])) return prior_find("diffusion");
  return prior_find("mixture");
}

static void train_check(struct argp_state *state) {
  if (!arguments.family && !arguments.study) arguments.family = train_default_family();
  const LikelihoodOps *likelihood = arguments.likelihood;
  const char *noise = arguments.noise;
  const bool simulated = arguments.theta && arguments.family == &prior_auto;
  if (!arguments.study + !arguments.theta + !arguments.logs != 2)
    argp_error(state, "give either a study file, --theta FILE or --logs FILE");
  if (!arguments.logs && !simulated && (likelihood || noise))
    argp_error(state, "--likelihood and --noise need --logs, or --theta with --family auto");
  if (!simulated && arguments.sizes > 0) argp_error(state, "--observations needs --theta with --family auto");
  if (!noise) return;
  if (likelihood && !likelihood->quadratic)
    argp_error(state, "--noise is for Gaussian rewards; --likelihood %s has no noise", likelihood->name);
  if (strcmp(noise, "estimate") != 0)
    arguments.sigma = app_real(state, "--noise", noise, 1e-40, 1e40);
  else if (arguments.theta)
    argp_error(state, "--noise estimate needs --logs; --family auto simulates tasks and needs a number");
}

/* What is learned, and from what. */
typedef struct {
  Belief belief; /* its fit and likelihood */
  FitSource source;
  Logs logs; /* of --logs; the source */
  const char *partial; /* of --logs: the file from which a killed fit continues */
  LogsLearned learned;
  AutoChoice choice; /* of --family auto */
  Prior prior; /* on rank 0 */
} Training;

/* Finds the family of a study's prior if none is named: diffusion if a policy learns one in the first
 * setting, else a mixture. */
static Status train_find_family(const Study *study, const Problem *problem, const PriorOps **out) {
  const StudyFile *file = study->file;
  *out = prior_find("mixture");
  for (int p = 0; p < file->policy_count; p++) {
    Belief belief;
    TRY(study_belief_create(file->settings[0], &file->policies[p], problem, 0, &belief));
    if (belief.kind == BELIEF_FITTED && belief.family == prior_find("diffusion")) *out = belief.family;
  }
  return STATUS_OK;
}

/* Takes the data to learn from, and the options of the fit, from the first setting of a study. */
static Status app_train_from_study(Arena *memory, Training *out) {
  SCRATCH_ARENA(scratch);
  SCOPED(char *, text, memory_free_text);
  SCOPED(Study, study, study_destroy);
  SCOPED(Problem, problem, problem_destroy);
  AppTexts sets = {.count = arguments.options.count};
  FitSource logs;
  Belief first;
  Prior base;
  for (int i = 0; i < sets.count; i++)
    TRY(arena_print(&scratch, &sets.texts[i], "prior.%s", arguments.options.texts[i]));
  TRY(config_study_text(arguments.study, &text));
  TRY(app_study_of_file(arguments.study, text, &sets, &study));
  const Config *setting = study.file->settings[0];
  TRY(study_problem_create(setting, &problem));
  if (!arguments.family) TRY(train_find_family(&study, &problem, &arguments.family));
  arguments.sizes = study_candidates_sizes(setting, &problem, arguments.size);
  out->belief = (Belief){.likelihood = problem.likelihood,
                         .fit = fit_of_keys(setting, arguments.has_seed ? arguments.seed : study.seed, 0)};
  TRY(study_belief_fit_prior(setting, arguments.family, &problem, &out->belief));
  /* The prior that must be fitted before, if there is one, is fitted here. */
  TRY(study_belief_prerequisite(setting, &problem, &out->belief, &first));
  if (first.kind == BELIEF_NONE)
    return study_fit_data_create(memory, &out->belief, &problem, NULL, &out->source);
  TRY(study_fit_data_create(&scratch, &first, &problem, NULL, &logs));
  TRY(fit_source_whole(&scratch, &logs, first.family, &first.fit, &base));
  return study_fit_data_create(memory, &out->belief, &problem, &base, &out->source);
}

/* Takes the samples from the user's file, and the options of the fit from --option. */
static Status app_train_from_file(Arena *memory, Training *out) {
  Samples *samples;
  TRY(fit_of_options("--option", arguments.options.count, arguments.options.texts, arguments.seed,
                     &out->belief.fit));
  ALLOCATE(memory, samples, 1);
  TRY(io_dataset_read_samples(memory, arguments.theta, samples));
  TRY(training_samples_contaminate(&out->belief.fit, samples));
  out->source = (FitSource){.samples = samples};
  prior_settle(arguments.family, &out->belief.fit, samples->d);
  if (arguments.sizes == 0) arguments.sizes = CANDIDATE_SIZES; /* the defaults */
  return STATUS_OK;
}

/* Takes the samples, which all ranks read, and learns from them. Collective. */
static Status train_on_samples(Arena *memory, Training *out) {
  TRY(parallel_agree((arguments.study ? app_train_from_study : app_train_from_file)(memory, out)));
  AutoJob job = {.fit = &out->belief.fit,
                 .source = out->source,
                 .likelihood = &out->belief.likelihood,
                 .sizes = arguments.sizes,
                 .mode = PROGRESS_AUTO};
  memcpy(job.size, arguments.size, sizeof job.size);
  const Status status = arguments.family == &prior_auto
                            ? auto_fit(memory, &job, &out->choice, &out->prior)
                            : fits_run_one(memory, arguments.family, &out->belief.fit, &out->source,
                                           PROGRESS_AUTO, (Tick){0}, &out->prior);
  if (status != STATUS_INPUT) return status;
  return status_prefix(status, "%s: ", arguments.theta ? arguments.theta : arguments.study);
}

/* ---- --logs */

static Progress reading;

static void show_reading(double done, double total) {
  const double mega = 1e6;
  progress_update(&reading, (long)(done / mega), (long)(total / mega), total > 0 ? done / total : 0);
}

/* Takes the options of the fit. Unless `components` is given, the number that predicts best is chosen. */
static Status take_fit_options(int d, PriorFit *fit) {
  const AppTexts *texts = &arguments.options;
  bool given = false;
  TRY(fit_of_options("--option", texts->count, texts->texts, arguments.seed, fit));
  for (int i = 0; i < texts->count; i++)
    given = given || strncmp(texts->texts[i], "components=", strlen("components=")) == 0;
  if (!given) fit->components = 0;
  prior_settle(arguments.family, fit, d);
  return STATUS_OK;
}

/* Chooses a family by the sample of tasks that a fit would begin with. Collective. */
static Status train_choose_family(Training *out, const PriorOps **family) {
  SCRATCH_ARENA(scratch);
  PriorFit *fit = &out->belief.fit;
  Logs sample;
  TRY(logs_learn_sample(&scratch, &out->logs, fit->seed, &sample));
  const AutoJob job = {.fit = fit, .source = {.logs = &sample}, .mode = PROGRESS_AUTO};
  TRY(auto_choose(&job, &out->choice));
  *family = prior_find(candidates[out->choice.chosen].family);
  *fit = study_candidates_fit(fit, out->choice.chosen, sample.d);
  return STATUS_OK;
}

/* Reads the logs on rank 0, and learns from them on all. Collective. */
static Status train_on_logs(Arena *memory, Training *out) {
  const bool first = parallel_rank() == 0;
  const PriorOps *family = arguments.family;
  const Likelihood *likelihood = &out->belief.likelihood;
  Logs *logs = &out->logs;
  out->source = (FitSource){.logs = logs};
  TRY(arena_print(memory, &out->partial, "%s.partial", arguments.output));
  reading = progress_begin(PROGRESS_AUTO, "reading logs, MB");
  Status status =
      first ? logs_read(memory, arguments.logs, likelihood, arguments.sigma == 0, show_reading, logs)
            : STATUS_OK;
  TRY(parallel_agree(status));
  parallel_broadcast(&logs->d, sizeof logs->d);
  logs->likelihood = likelihood;
  TRY(parallel_agree(take_fit_options(logs->d, &out->belief.fit)));
  if (family == &prior_auto) status = train_choose_family(out, &family);
  if (status == STATUS_OK)
    status =
        logs_learn_prior(memory, family, &out->belief.fit, logs, out->partial, &out->prior, &out->learned);
  if (status == STATUS_INPUT) status = status_prefix(status, "%s: ", arguments.logs);
  if (status == STATUS_OK && first && family != arguments.family) auto_finish(&out->choice, &out->prior);
  return status;
}

/* ---- the verb */

/* Warns where logs hardly tell, or do not tell, how much theta varies. */
static Status train_warn_of_logs(const Logs *logs, const Prior *prior) {
  enum { ENOUGH = 30 /* degrees of freedom: the noise is off by at most an eighth */ };
  SCRATCH_ARENA(scratch);
  double freedom = ENOUGH;
  const char *few = NULL;
  bool *seen_twice;
  if (logs->likelihood->ops->binary) {
    ALLOCATE(&scratch, seen_twice, logs->d);
    TRY(logs_seen_twice(logs, seen_twice));
    for (int i = 0; i < logs->d; i++)
      if (!seen_twice[i])
        fprintf(stderr,
                "note: no task has two clicks that depend on x%d, so the spread of this coordinate is not "
                "learned from the logs, and the number in the prior means nothing\n",
                i + 1);
  }
  if (!arguments.likelihood && arguments.sigma == 0 && logs->clicks == logs->observations)
    fprintf(
        stderr,
        "note: all rewards in the logs are 0 or 1, and the prior is learned as if they were Gaussian; for "
        "clicks the likelihood is logistic\n");
  if (arguments.sigma == 0 && !logs_has_rows(logs)) TRY(logs_noise_freedom(logs, ENOUGH, &freedom));
  if (freedom < ENOUGH)
    fprintf(
        stderr,
        "note: the noise is learned from at most %.2g degrees of freedom (fewer if theta varies much), so it "
        "may be off by %.0f%% or more, and the spread of theta with it; give it by --noise if it is known\n",
        freedom, 100 / sqrt(2 * freedom));
  if (prior_stand_in(prior)) TRY(logs_describe_few(&scratch, logs, prior_stand_in(prior), &few));
  if (few) fprintf(stderr, "note: %s\n", few);
  return STATUS_OK;
}

/* Saves the prior, says what was learned, and warns if it follows single tasks or failed its own check. */
static Status train_save_and_report(const Training *training) {
  enum { ENOUGH = 10 /* tasks per component */ };
  const bool automatic = arguments.family == &prior_auto;
  const Prior *prior = &training->prior;
  const Logs *logs = training->source.logs;
  const LogsLearned *learned = &training->learned;
  const int tasks = logs ? logs->tasks : training->source.samples->n;
  TRY(automatic ? auto_save(&training->choice, prior, arguments.output)
                : prior_save(prior, arguments.output));
  if (arguments.logs) TRY(logs_learn_done(training->partial));
  printf("%s: %s prior in %d dimensions from ", arguments.output, prior->ops->name, prior->d);
  if (arguments.logs)
    printf("%s of %s%s", numeral_count(logs->observations, "observation").text,
           numeral_count(tasks, "task").text, learned->resumed ? " (continued from the partial file)" : "");
  else
    printf("%d %s", tasks, logs ? "past tasks" : "samples");
  printf(", %.3g CPU seconds", prior->seconds_fit);
  if (arguments.logs && !logs_has_rows(logs))
    printf("; noise %.6g (%s)", prior->noise, arguments.sigma == 0 ? "learned" : "given");
  if (learned->iterations > 0) printf("; %d iterations over all tasks", learned->iterations);
  if (learned->networks_from > 0)
    printf("; networks from draws of %s", numeral_count(learned->networks_from, "task").text);
  printf(prior->ops->report ? "; " : "\n");
  if (prior->ops->report) prior->ops->report(prior, stdout);
  const int components = prior->mixture ? prior->mixture->components : 1;
  if (tasks < ENOUGH * components)
    fprintf(
        stderr,
        "note: %s for a prior of %s: with fewer than %d for each it follows single tasks, and a posterior "
        "under it may be far too certain\n",
        numeral_count(tasks, "past task").text, numeral_count(components, "component").text, ENOUGH);
  if (arguments.logs) TRY(train_warn_of_logs(logs, prior));
  if (!arguments.logs && prior_doubt(prior)) fprintf(stderr, "note: %s\n", prior_doubt(prior));
  if (automatic) auto_report(&training->choice, stdout);
  return STATUS_OK;
}

static Status train_prior(void) {
  static const OwnershipKind kind = {"a prior", .has = "prior", .lacks = "saved"};
  SCRATCH_ARENA(memory);
  Training training = {
      .belief.likelihood = {.ops = arguments.likelihood ? arguments.likelihood : likelihood_find("gaussian"),
                            .noise = arguments.sigma > 0 ? arguments.sigma : 1}};
  TRY(app_try_output(arguments.output, &kind));
  TRY(parallel_agree((arguments.logs ? train_on_logs : train_on_samples)(&memory, &training)));
  return parallel_agree(parallel_rank() == 0 ? train_save_and_report(&training) : STATUS_OK);
}

const AppVerb app_train = {
    .options = options,
    .argument = &arguments.study,
    .what = "study file",
    .optional = true,
    .check = train_check,
    .usage = "[STUDY.yaml]",
    .help =
        "Fit a prior on a study's distribution of theta*, on your own samples of theta, or on logs of past "
        "tasks.\vWith --logs theta need not be known: a Gaussian or a mixture is fitted by expectation "
        "maximisation to what each task's observations say about its theta, with a number of components "
        "chosen on other tasks (--option components=N sets it), and networks to draws under that mixture. "
        "Memory grows with tasks and not with observations, except for likelihoods other than gaussian. A "
        "killed fit to more than 16384 tasks continues from OUTPUT.partial when the same command is given "
        "again; only what comes first, a fit to so many of them, starts over.",
    .collective = train_prior};

/* thompson train: fit a prior on a study's distribution of theta*, on the user's own samples, or on logs of
 * past tasks (--logs). Works under mpiexec. */
#include "app/app.h"
#include "model/prior/fit_keys.h"
#include "model/prior/training_samples.h"
#include "parallel/auto.h"
#include "parallel/parallel_fits.h"
#include "parallel/parallel_logs.h"
#include "study/study_fit_data.h"

#include <string.h>
#include <unistd.h>

typedef struct {
  const char *study, *theta, *logs, *output, *noise;
  const LikelihoodOps *likelihood;
  const PriorOps *family;
  AppTexts options;
  uint64_t seed;
  bool has_seed;
  int sizes, size[CANDIDATE_SIZES]; /* --observations */
  double sigma; /* --noise; 0: estimate */
} Arguments;

enum {
  KEY_THETA = 256,
  KEY_LOGS,
  KEY_LIKELIHOOD,
  KEY_NOISE,
  KEY_OBSERVATIONS,
  KEY_FAMILY,
  KEY_SEED,
  KEY_OPTION
};

static const struct argp_option options[] = {
    {"theta", KEY_THETA, "FILE", 0, "samples of theta: NetCDF theta(sample, dim), or CSV without header", 0},
    {"logs", KEY_LOGS, "FILE", 0,
     "logs of past tasks: CSV with header task,x1,...,xd,y, or NetCDF task(observation), x(observation, "
     "dim), y(observation)",
     0},
    {"likelihood", KEY_LIKELIHOOD, "NAME", 0,
     "likelihood of the rewards in logs, or in the tasks of --theta with --family auto: gaussian (default), "
     "logistic, poisson",
     0},
    {"noise", KEY_NOISE, "S|estimate", 0,
     "standard deviation of Gaussian rewards in logs (default: estimate, learned with the prior), or in the "
     "tasks of --theta with --family auto (default: 1)",
     0},
    {"observations", KEY_OBSERVATIONS, "N[,N..]", 0,
     "observations of a task of --theta with --family auto before draws are scored: up to three increasing "
     "numbers (default: 5,50,500)",
     0},
    {"family", KEY_FAMILY, "NAME", 0,
     "family of the prior, see `thompson list priors`, or auto: the family and sampler whose posterior draws "
     "are best on held-out tasks (default: diffusion)",
     0},
    {"output", 'o', "FILE", 0, "prior file (default: prior.nc)", 0},
    {"seed", KEY_SEED, "N", 0, "seed of the fit (default: the study's, or 1)", 0},
    {"option", KEY_OPTION, "KEY=VALUE", 0, "a key of prior.*, without the prefix: stages=50", 0},
    {0}};

/* Takes --noise into sigma, which stays 0 if the noise is to be learned; refuses it for rewards without
 * noise. */
static void app_train_check_noise(struct argp_state *state, Arguments *arguments) {
  const char *noise = arguments->noise;
  if (noise && arguments->likelihood && !arguments->likelihood->quadratic)
    argp_error(state, "--noise is for Gaussian rewards; --likelihood %s has no noise",
               arguments->likelihood->name);
  if (noise && strcmp(noise, "estimate") != 0)
    arguments->sigma = app_real(state, "--noise", noise, 1e-40, 1e40);
  else if (noise && arguments->theta)
    argp_error(state, "--noise estimate needs --logs; --family auto simulates tasks and needs a number");
}

static void app_train_parse_observations(struct argp_state *state, Arguments *arguments, const char *text) {
  enum { MOST = 100000 };
  char part[32];
  arguments->sizes = 0;
  for (const char *at = text;; at++) {
    const size_t length = strcspn(at, ",");
    if (arguments->sizes == CANDIDATE_SIZES || length >= sizeof part)
      argp_error(state, "--observations %s: give at most %d numbers", text, CANDIDATE_SIZES);
    snprintf(part, sizeof part, "%.*s", (int)length, at);
    const int size = (int)app_integer(state, "--observations", part, 1, MOST);
    if (arguments->sizes > 0 && size <= arguments->size[arguments->sizes - 1])
      argp_error(state, "--observations %s: the numbers must increase", text);
    arguments->size[arguments->sizes++] = size;
    at += length;
    if (*at == '\0') return;
  }
}

/* Refuses options about tasks where they would have no effect. */
static void app_train_check_tasks(struct argp_state *state, const Arguments *arguments) {
  const bool simulated = arguments->theta && arguments->family == &prior_auto;
  if (!arguments->logs && !simulated && (arguments->likelihood || arguments->noise))
    argp_error(state, "--likelihood and --noise need --logs, or --theta with --family auto");
  if (!simulated && arguments->sizes > 0)
    argp_error(state, "--observations needs --theta with --family auto");
}

static error_t train_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_THETA: arguments->theta = text; return 0;
  case KEY_LOGS: arguments->logs = text; return 0;
  case KEY_LIKELIHOOD:
    arguments->likelihood = likelihood_find(text);
    if (!arguments->likelihood)
      app_unknown_name(state, "--likelihood", text, "a likelihood", likelihood_name);
    return 0;
  case KEY_NOISE: arguments->noise = text; return 0;
  case KEY_OBSERVATIONS: app_train_parse_observations(state, arguments, text); return 0;
  case KEY_FAMILY:
    arguments->family = study_candidates_family(text);
    if (!arguments->family) app_unknown_name(state, "--family", text, "a family of priors", prior_name);
    return 0;
  case 'o': app_take_output(state, &arguments->output, text); return 0;
  case KEY_SEED:
    arguments->seed = (uint64_t)app_integer(state, "--seed", text, 0, 1LL << 53);
    arguments->has_seed = true;
    return 0;
  case KEY_OPTION: app_texts_add(state, &arguments->options, text); return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->study, text, "study file"); return 0;
  case ARGP_KEY_END:
    if (!arguments->study + !arguments->theta + !arguments->logs != 2)
      argp_error(state, "give either a study file, --theta FILE or --logs FILE");
    app_train_check_tasks(state, arguments);
    app_train_check_noise(state, arguments);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Turns --option KEY=VALUE into --set prior.KEY=VALUE for a study. */
static Status app_train_study_sets(Arena *memory, const Arguments *arguments, AppTexts *sets) {
  sets->count = arguments->options.count;
  for (int i = 0; i < sets->count; i++)
    TRY(arena_print(memory, &sets->texts[i], "prior.%s", arguments->options.texts[i]));
  return STATUS_OK;
}

/* Takes the data to learn from, and the options of the fit, from the first setting of a study. */
static Status app_train_from_study(Arena *memory, Arguments *arguments, Belief *belief, FitSource *source) {
  SCRATCH_ARENA(scratch);
  SCOPED(char *, text, memory_free_text);
  SCOPED(Study, study, study_destroy);
  SCOPED(Problem, problem, problem_destroy);
  AppTexts sets;
  TRY(app_train_study_sets(&scratch, arguments, &sets));
  TRY(config_study_text(arguments->study, &text));
  TRY(app_study_of_file(arguments->study, text, &sets, &study));
  const Config *setting = study.file->settings[0];
  TRY(problem_create(setting, &problem));
  arguments->sizes = study_candidates_sizes(setting, arguments->size);
  *belief =
      (Belief){.likelihood = problem.likelihood,
               .fit = fit_of_keys(setting, "prior.", arguments->has_seed ? arguments->seed : study.seed, 0)};
  TRY(study_belief_fit_prior(setting, arguments->family, &problem, belief));
  return study_fit_data_create_alone(memory, setting, belief, &problem, source);
}

static Likelihood app_train_likelihood(const Arguments *arguments) {
  return (Likelihood){.ops = arguments->likelihood ? arguments->likelihood : likelihood_find("gaussian"),
                      .noise = arguments->sigma > 0 ? arguments->sigma : 1};
}

/* Takes the samples from the user's file, and the options of the fit from --option. */
static Status app_train_from_file(Arena *memory, Arguments *arguments, Belief *belief, FitSource *source) {
  Samples *samples;
  TRY(fit_of_options("--option", arguments->options.count, arguments->options.texts, arguments->seed,
                     &belief->fit));
  ALLOCATE(memory, samples, 1);
  TRY(io_dataset_read_samples(memory, arguments->theta, samples));
  TRY(training_samples_contaminate(&belief->fit, samples));
  *source = (FitSource){.samples = samples};
  prior_settle(arguments->family, &belief->fit, samples->d);
  if (arguments->sizes == 0) arguments->sizes = CANDIDATE_SIZES; /* the defaults */
  belief->likelihood = app_train_likelihood(arguments);
  return STATUS_OK;
}

/* ---- --logs */

/* Takes the options of the fit. Unless `components` is given, the number that predicts best is chosen. */
static Status take_options(const Arguments *arguments, int d, PriorFit *fit) {
  bool given = false;
  TRY(fit_of_options("--option", arguments->options.count, arguments->options.texts, arguments->seed, fit));
  for (int i = 0; i < arguments->options.count; i++)
    given = given || strncmp(arguments->options.texts[i], "components=", strlen("components=")) == 0;
  if (!given) fit->components = 0;
  prior_settle(arguments->family, fit, d);
  return STATUS_OK;
}

static Progress reading;

static void show_reading(double done, double total) {
  const double mega = 1e6;
  progress_update(&reading, (long)(done / mega), (long)(total / mega), total > 0 ? done / total : 0);
}

/* Reads the logs on rank 0 and sends their dimension to all. Collective. */
static Status app_train_read_logs(Arena *memory, const Parallel *parallel, const Arguments *arguments,
                                  const Likelihood *likelihood, Logs *logs) {
  Status status = STATUS_OK;
  reading = progress_begin(PROGRESS_AUTO, parallel->rank == 0, "reading logs, MB");
  if (parallel->rank == 0)
    status = logs_read(memory, arguments->logs, likelihood, arguments->sigma == 0, show_reading, logs);
  TRY(parallel_agree(parallel, status));
  parallel_broadcast(&logs->d, sizeof logs->d);
  logs->likelihood = likelihood;
  return STATUS_OK;
}

/* Warns on stderr if the prior has fewer than ten tasks per component: it then follows single tasks. */
static void train_warn_of_few(const Prior *prior, int tasks) {
  enum { ENOUGH = 10 };
  const int components = prior->mixture ? prior->mixture->components : 1;
  if (tasks < ENOUGH * components)
    fprintf(stderr,
            "note: %d past task%s for a prior of %d component%s: with fewer than %d for each it follows "
            "single tasks, and a posterior under it may be far too certain\n",
            tasks, tasks == 1 ? "" : "s", components, components == 1 ? "" : "s", ENOUGH);
}

static void app_train_report_logs(const Arguments *arguments, const Logs *logs, const Prior *prior,
                                  const LogsLearned *learned) {
  printf("%s: %s prior in %d dimensions from %lld observations of %d tasks%s, %.3g CPU seconds",
         arguments->output, prior->ops->name, prior->d, (long long)logs->observations, logs->tasks,
         learned->resumed ? " (continued from the partial file)" : "", prior->seconds_fit);
  if (!logs_has_rows(logs))
    printf("; noise %.6g (%s)", prior->noise, arguments->sigma == 0 ? "learned" : "given");
  if (learned->iterations > 0) printf("; %d iterations over all tasks", learned->iterations);
  if (learned->networks_from > 0) printf("; networks from draws of %d tasks", learned->networks_from);
  printf(prior->ops->report ? "; " : "\n");
  if (prior->ops->report) prior->ops->report(prior, stdout);
  train_warn_of_few(prior, logs->tasks);
}

/* Chooses a family by the sample of tasks that a fit would begin with. Collective. */
static Status app_train_choose_by_logs(const Parallel *parallel, const Logs *logs, const PriorFit *fit,
                                       AutoChoice *choice) {
  SCRATCH_ARENA(scratch);
  Logs sample;
  TRY(parallel_logs_sample(&scratch, parallel, logs, fit->seed, &sample));
  const AutoJob job = {.fit = fit, .source = {.logs = &sample}, .mode = PROGRESS_NONE};
  return auto_choose(parallel, &job, choice);
}

static Status app_train_finish_logs(const Arguments *arguments, const char *partial, const Logs *logs,
                                    const AutoChoice *choice, const Prior *prior,
                                    const LogsLearned *learned) {
  const bool automatic = arguments->family == &prior_auto;
  TRY(automatic ? auto_save(choice, prior, arguments->output) : prior_save(prior, arguments->output));
  TRY(parallel_logs_done(partial));
  app_train_report_logs(arguments, logs, prior, learned);
  if (automatic) auto_report(choice, stdout);
  return STATUS_OK;
}

static Status app_train_on_logs(const Parallel *parallel, const Arguments *arguments) {
  const Likelihood likelihood = app_train_likelihood(arguments);
  SCRATCH_ARENA(memory);
  Logs logs = {0};
  Prior prior;
  PriorFit fit;
  LogsLearned learned;
  AutoChoice choice;
  const PriorOps *family = arguments->family;
  const char *partial;
  TRY(arena_print(&memory, &partial, "%s.partial", arguments->output));
  TRY(app_train_read_logs(&memory, parallel, arguments, &likelihood, &logs));
  TRY(parallel_agree(parallel, take_options(arguments, logs.d, &fit)));
  Status status = STATUS_OK;
  if (family == &prior_auto) {
    status = app_train_choose_by_logs(parallel, &logs, &fit, &choice);
    if (status == STATUS_OK) family = prior_find(candidates[choice.chosen].family);
    if (status == STATUS_OK) fit = study_candidates_fit(&fit, choice.chosen, logs.d);
  }
  if (status == STATUS_OK)
    status = parallel_logs_learn(&memory, parallel, family, &fit, &logs, partial, &prior, &learned);
  if (status == STATUS_INPUT) status = status_prefix(status, "%s: ", arguments->logs);
  TRY(status);
  if (parallel->rank == 0 && family != arguments->family) auto_finish(&choice, &prior);
  if (parallel->rank == 0)
    status = app_train_finish_logs(arguments, partial, &logs, &choice, &prior, &learned);
  return parallel_agree(parallel, status);
}

/* ---- the verb */

static void train_report(const Arguments *arguments, const Prior *prior, const FitSource *source) {
  const int count = source->logs ? source->logs->tasks : source->samples->n;
  printf("%s: %s prior in %d dimensions from %d %s, %.3g CPU seconds", arguments->output, prior->ops->name,
         prior->d, count, source->logs ? "past tasks" : "samples", prior->seconds_fit);
  if (prior->ops->report) {
    printf("; ");
    prior->ops->report(prior, stdout);
  } else {
    printf("\n");
  }
  train_warn_of_few(prior, count);
  if (prior_doubt(prior)) fprintf(stderr, "note: %s\n", prior_doubt(prior));
}

static Status train_prior(const Parallel *parallel, Arguments *arguments) {
  const bool automatic = arguments->family == &prior_auto;
  Belief belief = {0};
  SCRATCH_ARENA(memory);
  FitSource source;
  Prior prior;
  AutoChoice choice;
  TRY(app_try_output(parallel, arguments->output));
  if (arguments->logs) return app_train_on_logs(parallel, arguments);
  Status status =
      (arguments->study ? app_train_from_study : app_train_from_file)(&memory, arguments, &belief, &source);
  status = parallel_agree(parallel, status);
  if (status == STATUS_OK) {
    AutoJob job = {.fit = &belief.fit,
                   .source = source,
                   .likelihood = &belief.likelihood,
                   .sizes = arguments->sizes,
                   .mode = PROGRESS_AUTO};
    memcpy(job.size, arguments->size, sizeof job.size);
    status = automatic ? auto_fit(&memory, parallel, &job, &choice, &prior)
                       : parallel_fits_run_one(&memory, parallel, arguments->family, &belief.fit, &source,
                                               PROGRESS_AUTO, NULL, &prior);
    if (status == STATUS_INPUT)
      status = status_prefix(status, "%s: ", arguments->theta ? arguments->theta : arguments->study);
  }
  if (status == STATUS_OK && parallel->rank == 0) {
    status =
        automatic ? auto_save(&choice, &prior, arguments->output) : prior_save(&prior, arguments->output);
    if (status == STATUS_OK) train_report(arguments, &prior, &source);
    if (status == STATUS_OK && automatic) auto_report(&choice, stdout);
  }
  return parallel_agree(parallel, status);
}

Status app_train(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = train_parse,
      .args_doc = "[STUDY.yaml]",
      .doc =
          "Fit a prior on a study's distribution of theta*, on your own samples of theta, or on logs of past "
          "tasks.\vWith --logs theta need not be known: a Gaussian or a mixture is fitted by expectation "
          "maximisation to what each task's observations say about its theta, with a number of components "
          "chosen on other tasks (--option components=N sets it), and networks to draws under that mixture. "
          "Memory grows with tasks and not with observations, except for likelihoods other than gaussian. A "
          "killed fit continues from OUTPUT.partial when the same command is given again."};
  Arguments arguments = {
      .output = "prior.nc", .seed = 1, .family = prior_find("diffusion"), .sizes = 0, .size = {5, 50, 500}};
  app_parse(&argp, argc, argv, &arguments);
  Parallel parallel = app_begin_parallel();
  Status status = train_prior(&parallel, &arguments);
  return app_end_parallel(status);
}

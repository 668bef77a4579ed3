/* thompson train: fit a prior on a study's distribution of theta*, or on the user's own samples.
 * Works under mpiexec. */
#include "app/app.h"
#include "io/dataset.h"
#include "model/fit_keys.h"
#include "parallel/prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *study, *theta, *output;
  const PriorOps *family;
  AppTexts options;
  uint64_t seed;
  bool has_seed;
} Arguments;

enum { KEY_THETA = 256, KEY_FAMILY, KEY_SEED, KEY_OPTION };

static const struct argp_option options[] = {
    {"theta", KEY_THETA, "FILE", 0, "samples of theta: NetCDF theta(sample, dim), or CSV without header", 0},
    {"family", KEY_FAMILY, "NAME", 0, "family of the prior, see `thompson list priors` (default: diffusion)",
     0},
    {"output", 'o', "FILE", 0, "prior file (default: prior.nc)", 0},
    {"seed", KEY_SEED, "N", 0, "seed of the fit (default: the study's, or 1)", 0},
    {"option", KEY_OPTION, "KEY=VALUE", 0, "a key of prior.*, without the prefix: stages=50", 0},
    {0}};

static void refuse_family(struct argp_state *state, const char *text) {
  char names[256];
  size_t used = 0;
  for (int i = 0; prior_name(i) && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", prior_name(i));
  argp_error(state, "--family %s: it is one of %s", text, names);
}

static error_t parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_THETA: arguments->theta = text; return 0;
  case KEY_FAMILY:
    arguments->family = prior_find(text);
    if (!arguments->family) refuse_family(state, text);
    return 0;
  case 'o': app_take_output(state, &arguments->output, text); return 0;
  case KEY_SEED:
    arguments->seed = (uint64_t)app_integer(state, "--seed", text, 0, 1LL << 53);
    arguments->has_seed = true;
    return 0;
  case KEY_OPTION: app_texts_add(state, &arguments->options, text); return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->study, text, "study file"); return 0;
  case ARGP_KEY_END:
    if (!arguments->study == !arguments->theta) argp_error(state, "give either a study file or --theta FILE");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* --option KEY=VALUE for a study is --set prior.KEY=VALUE. Returned texts are to be freed. */
static Status study_sets(const Arguments *arguments, AppTexts *sets) {
  *sets = (AppTexts){0};
  for (int i = 0; i < arguments->options.count; i++) {
    char *text;
    if (asprintf(&text, "prior.%s", arguments->options.texts[i]) < 0)
      return status_set(STATUS_INTERNAL, "out of memory");
    sets->texts[sets->count++] = text;
  }
  return STATUS_OK;
}

/* Samples and fit of the first setting of a study. */
static Status from_study(const Arguments *arguments, Samples *samples, PriorFit *fit) {
  char *text;
  Study study;
  Problem problem;
  AppTexts sets;
  TRY(config_study_text(arguments->study, &text));
  Status status = study_sets(arguments, &sets);
  if (status == STATUS_OK) status = app_study_of_file(arguments->study, text, &sets, &study);
  free(text);
  for (int i = 0; i < sets.count; i++) free((char *)(uintptr_t)sets.texts[i]);
  TRY(status);
  const Config *setting = study.file->settings[0];
  status = problem_create(setting, &problem);
  if (status == STATUS_OK) {
    *fit = fit_of_keys(setting, "prior.", arguments->has_seed ? arguments->seed : study.seed, 0);
    status = problem_training_samples(
        &problem, 0,
        config_is(setting, "prior.train_samples", "all") ? -1 : config_int(setting, "prior.train_samples"),
        samples);
    problem_destroy(&problem);
  }
  study_destroy(&study);
  return status;
}

/* All samples of the user's file. */
static Status from_file(const Arguments *arguments, Samples *samples, PriorFit *fit) {
  TRY(fit_of_options("--option", arguments->options.count, arguments->options.texts,
                     arguments->has_seed ? arguments->seed : 1, fit));
  return dataset_read_samples(arguments->theta, samples);
}

static void report(const Arguments *arguments, const Prior *prior, int samples) {
  printf("%s: %s prior in %d dimensions from %d samples, %.3g CPU seconds", arguments->output,
         prior->ops->name, prior->d, samples, prior->seconds_fit);
  if (prior->ops->report) {
    printf("; ");
    prior->ops->report(prior, stdout);
  } else {
    printf("\n");
  }
}

static Status train(const Parallel *parallel, const Arguments *arguments) {
  const PriorOps *family = arguments->family;
  Samples samples = {0};
  PriorFit fit;
  SCRATCH_ARENA(memory);
  Prior prior;
  TRY(app_try_output(parallel, arguments->output));
  Status status =
      arguments->study ? from_study(arguments, &samples, &fit) : from_file(arguments, &samples, &fit);
  status = parallel_agree(parallel, status);
  if (status == STATUS_OK) {
    prior_settle(family, &fit, samples.d);
    status = prepare_fit(&memory, parallel, family, &fit, &samples, PROGRESS_AUTO, &prior);
    if (status == STATUS_INPUT)
      status = status_prefix(status, "%s: ", arguments->theta ? arguments->theta : arguments->study);
  }
  if (status == STATUS_OK && parallel->rank == 0) {
    status = prior_save(&prior, arguments->output);
    if (status == STATUS_OK) report(arguments, &prior, samples.n);
  }
  samples_free(&samples);
  return parallel_agree(parallel, status);
}

Status app_train(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "[STUDY.yaml]",
      "Fit a prior on a study's distribution of theta*, or on your own samples of theta.",
      NULL,
      NULL,
      NULL};
  Arguments arguments = {.output = "prior.nc", .family = prior_find("diffusion")};
  app_parse(&argp, argc, argv, &arguments);
  Parallel parallel = app_begin_parallel(&argc, &argv);
  Status status = train(&parallel, &arguments);
  return app_end_parallel(status);
}

/* thompson prepare: turn a public data set into an embedding file. Works under mpiexec. */
#include "app/prepare.h"

#include "app/app.h"

#include <string.h>

static const struct {
  const char *name, *inputs;
  const ConfigKey *keys;
  Status (*prepare)(const PrepareJob *job);
} sets[] = {
    {"movielens", "files of ratings", prepare_movielens_keys, prepare_movielens},
    {"mnist", "the four IDX files, in any order", prepare_mnist_keys, prepare_mnist},
};
enum { SETS = sizeof sets / sizeof *sets };

typedef struct {
  int set; /* -1: none yet */
  AppTexts inputs, options;
  const char *output;
  uint64_t seed;
} Arguments;

enum { KEY_SEED = 256, KEY_OPTION };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "required: embedding file to write", 0},
    {"seed", KEY_SEED, "N", 0, "seed (default: 1)", 0},
    {"option", KEY_OPTION, "KEY=VALUE", 0, "an option of the data set, see below", 0},
    {0}};

static void app_prepare_take_set(Arguments *arguments, const char *text, struct argp_state *state) {
  for (int s = 0; s < SETS; s++)
    if (strcmp(text, sets[s].name) == 0) arguments->set = s;
  if (arguments->set < 0) argp_error(state, "unknown data set '%s'; allowed: movielens, mnist", text);
}

static error_t prepare_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case 'o': app_take_output(state, &arguments->output, text); return 0;
  case KEY_SEED: arguments->seed = (uint64_t)app_integer(state, "--seed", text, 0, 1LL << 53); return 0;
  case KEY_OPTION: app_texts_add(state, &arguments->options, text); return 0;
  case ARGP_KEY_ARG:
    if (arguments->set < 0)
      app_prepare_take_set(arguments, text, state);
    else
      app_texts_add(state, &arguments->inputs, text);
    return 0;
  case ARGP_KEY_END:
    if (arguments->set < 0) argp_error(state, "no data set given; allowed: movielens, mnist");
    if (arguments->inputs.count == 0)
      argp_error(state, "%s: no input given; needed: %s", sets[arguments->set].name,
                 sets[arguments->set].inputs);
    if (!arguments->output) argp_error(state, "-o FILE is required");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Adds the options of each set, from their tables, at the end of the help (help_filter of argp). */
static char *help_with_options(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_EXTRA) return (char *)(uintptr_t)text;
  char *extra = NULL;
  size_t size;
  FILE *out = open_memstream(&extra, &size);
  if (!out) return NULL;
  for (int s = 0; s < SETS; s++) {
    fprintf(out, "%sOptions of %s (%s):\n\n", s ? "\n" : "", sets[s].name, sets[s].inputs);
    config_describe(out, sets[s].keys);
  }
  fclose(out);
  return extra;
}

static Status app_prepare_data_set(const Arguments *arguments) {
  SCRATCH_ARENA(scratch);
  Config *config;
  TRY(config_options(&scratch, "--option", sets[arguments->set].keys, arguments->options.count,
                     arguments->options.texts, &config));
  PrepareJob job = {.input_count = arguments->inputs.count,
                    .inputs = arguments->inputs.texts,
                    .output = arguments->output,
                    .seed = arguments->seed,
                    .options = config};
  return sets[arguments->set].prepare(&job);
}

Status app_prepare(int argc, char **argv) {
  static const struct argp argp = {.options = options,
                                   .parser = prepare_parse,
                                   .args_doc = "movielens|mnist INPUT...",
                                   .doc = "Learn embeddings from a public data set, for problem.family = "
                                          "embedding. data/README.md says how to get the data.",
                                   .help_filter = help_with_options};
  Arguments arguments = {.set = -1, .seed = 1};
  app_parse(&argp, argc, argv, &arguments);
  Parallel parallel = app_begin_parallel();
  Status status = app_try_output(&parallel, arguments.output);
  if (status == STATUS_OK && parallel.rank == 0) status = app_prepare_data_set(&arguments);
  status = parallel_agree(&parallel, status);
  return app_end_parallel(status);
}

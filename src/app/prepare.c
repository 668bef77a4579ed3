/* thompson prepare: turn a public data set into an embedding file. Works under mpiexec. */
#include "app/prepare.h"

#include "app/app.h"
#include "io/ownership.h"

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

static struct {
  int set; /* -1: none yet */
  AppTexts inputs, options;
  const char *output;
  uint64_t seed;
} arguments = {.set = -1, .seed = 1};

static const AppOption options[] = {
    {"output", 'o', "FILE", "required: embedding file to write", .output = &arguments.output},
    {"seed", 0, "N", "seed (default: 1)", .seed = &arguments.seed},
    {"option", 0, "KEY=VALUE", "an option of the data set, see below", .texts = &arguments.options},
    {0}};

/* Takes the name of the data set, then the inputs. */
static void prepare_take(struct argp_state *state, const char *text) {
  if (arguments.set >= 0) {
    app_texts_add(state, &arguments.inputs, text);
    return;
  }
  for (int s = 0; s < SETS; s++)
    if (strcmp(text, sets[s].name) == 0) arguments.set = s;
  if (arguments.set < 0) argp_error(state, "unknown data set '%s'; allowed: movielens, mnist", text);
}

static void prepare_check(struct argp_state *state) {
  if (arguments.set < 0) argp_error(state, "no data set given; allowed: movielens, mnist");
  if (arguments.inputs.count == 0)
    argp_error(state, "%s: no input given; needed: %s", sets[arguments.set].name, sets[arguments.set].inputs);
  if (!arguments.output) argp_error(state, "-o FILE is required");
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

static Status prepare_data_set(void) {
  SCRATCH_ARENA(scratch);
  Config *config;
  TRY(io_ownership_check_output(arguments.output));
  TRY(config_options(&scratch, "--option", sets[arguments.set].keys, arguments.options.count,
                     arguments.options.texts, &config));
  const PrepareJob job = {.input_count = arguments.inputs.count,
                          .inputs = arguments.inputs.texts,
                          .output = arguments.output,
                          .seed = arguments.seed,
                          .options = config};
  return sets[arguments.set].prepare(&job);
}

const AppVerb app_prepare = {
    .options = options,
    .take = prepare_take,
    .check = prepare_check,
    .usage = "movielens|mnist INPUT...",
    .help =
        "Learn embeddings from a public data set, for problem.family = embedding. data/README.md says how "
        "to get the data.",
    .help_filter = help_with_options,
    .on_first = prepare_data_set};

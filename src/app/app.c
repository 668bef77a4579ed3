#include "app/app.h"
#include "core/numeral.h"

#include "io/ownership.h"
#include "io/provenance.h"
#include "parallel/results/reduce.h"
#include "parallel/tasks/folder.h"
#include "study/keys.h"
#include "study/study_unused.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- the command line */

long long app_integer(struct argp_state *state, const char *option, const char *text, long long low,
                      long long high) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno || value < low || value > high)
    argp_error(state, "%s: '%s' is not an integer in [%lld, %lld]", option, text, low, high);
  return value;
}

double app_real(struct argp_state *state, const char *option, const char *text, double low, double high) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= low && value <= high))
    argp_error(state, "%s: '%s' is not a number in [%g, %g]", option, text, low, high);
  return value;
}

uint64_t app_seed(struct argp_state *state, const char *text) {
  return (uint64_t)app_integer(state, "--seed", text, 0, 1LL << 53);
}

void app_unknown_name(struct argp_state *state, const char *option, const char *value, const char *what,
                      const char *(*word)(int index)) {
  config_unknown_name(STATUS_USAGE, value, what, word);
  argp_error(state, "%s: %s", option, status_message());
}

void app_texts_add(struct argp_state *state, AppTexts *texts, const char *text) {
  int most = sizeof texts->texts / sizeof *texts->texts;
  if (texts->count == most) argp_error(state, "the same option is given more than %d times", most);
  texts->texts[texts->count++] = text;
}

void app_refuse_argument(struct argp_state *state, const char *text) {
  argp_error(state, "unexpected argument '%s': everything is given by options", text);
}

static void app_take_option(struct argp_state *state, const AppOption *option, const char *text) {
  static char study_seed[40];
  char shown[64];
  snprintf(shown, sizeof shown, "--%s", option->name);
  if (option->letter) snprintf(shown, sizeof shown, "-%c", option->letter);
  if (option->flag) *option->flag = true;
  if (option->output && !*text) argp_error(state, "%s: the name is empty", shown);
  if (option->output && store_path_check(text) != STATUS_OK)
    argp_error(state, "%s: %s", shown, status_message());
  if (option->output) *option->output = text;
  if (option->text) *option->text = text;
  if (option->texts) app_texts_add(state, option->texts, text);
  if (option->count) *option->count = (int)app_integer(state, shown, text, 1, (long long)option->high);
  if (option->real) *option->real = app_real(state, shown, text, option->low, option->high);
  if (option->seed) *option->seed = app_seed(state, text);
  if (option->seed_of) {
    snprintf(study_seed, sizeof study_seed, "seed=%llu", (unsigned long long)app_seed(state, text));
    app_texts_add(state, option->seed_of, study_seed);
  }
  if (option->take) option->take(state, text);
}

/* Returns what argp calls an option: its letter or, if it has none, a number that is no character. */
static int app_option_key(const AppVerb *verb, const AppOption *option) {
  return option->letter ? option->letter : 256 + (int)(option - verb->options);
}

static error_t app_take_argument(int key, char *text, struct argp_state *state) {
  const AppVerb *verb = state->input;
  if (key == ARGP_KEY_ARG && verb->take) {
    verb->take(state, text);
  } else if (key == ARGP_KEY_ARG && verb->argument) {
    if (*verb->argument) argp_error(state, "only one %s is allowed; '%s' is a second one", verb->what, text);
    *verb->argument = text;
  } else if (key == ARGP_KEY_END) {
    if (verb->argument && !*verb->argument && !verb->optional) argp_error(state, "no %s given", verb->what);
    if (verb->check) verb->check(state);
  } else {
    const AppOption *option = verb->options;
    while (option->name && key != app_option_key(verb, option)) option++;
    if (!option->name) return ARGP_ERR_UNKNOWN;
    app_take_option(state, option, text);
  }
  return 0;
}

void app_parse(const AppVerb *verb, int argc, char **argv) {
  static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", NULL};
  enum { MOST_OPTIONS = 24 };
  struct argp_option options[MOST_OPTIONS + 1] = {{0}};
  const char *rank = NULL; /* as the launcher says, before MPI is started; NULL: there is no launcher */
  for (int i = 0; variables[i] && !rank; i++) rank = getenv(variables[i]);
  const bool first = !rank || strcmp(rank, "0") == 0;
  /* Launchers end a job as soon as one rank fails: that must be the one that prints the message. */
  argp_err_exit_status = first ? STATUS_USAGE : EXIT_SUCCESS;
  for (const AppOption *o = verb->options; o->name; o++) {
    ASSERT(o - verb->options < MOST_OPTIONS);
    options[o - verb->options] = (struct argp_option){
        .name = o->name, .key = app_option_key(verb, o), .arg = o->value, .doc = o->help};
  }
  const struct argp argp = {.options = options,
                            .parser = app_take_argument,
                            .args_doc = verb->usage,
                            .doc = verb->help,
                            .help_filter = verb->help_filter};
  int out = -1, err = -1;
  if (!first) {
    int nowhere = open("/dev/null", O_WRONLY);
    out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(nowhere, STDOUT_FILENO), dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
  argp_parse(&argp, argc, argv, 0, NULL, (void *)(uintptr_t)verb);
  if (out >= 0) {
    dup2(out, STDOUT_FILENO), dup2(err, STDERR_FILENO);
    close(out), close(err);
  }
}

/* ---- output */

json_t *app_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

Status app_print_json(json_t *root, size_t digits) {
  if (!root) return status_set(STATUS_INTERNAL, "out of memory");
  json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
  printf("\n");
  json_decref(root);
  return STATUS_OK;
}

void app_begin_parallel(void) {
  char library[256];
  parallel_begin();
  parallel_library(sizeof library, library);
  provenance_set_mpi(parallel_size(), library);
}

Status app_try_output(const char *path, const OwnershipKind *kind) {
  return parallel_agree(parallel_rank() == 0 ? io_ownership_check_output(path, kind) : STATUS_OK);
}

bool app_failed;

void app_report(Status status) {
  if (status != STATUS_OK && parallel_rank() == 0 && !app_failed)
    fprintf(stderr, "thompson: %s\n", status_message());
  app_failed |= status != STATUS_OK;
}

Status app_end_parallel(Status status) {
  app_report(status);
  parallel_end(status);
  return status;
}

Status app_study_of_file(const char *path, const char *text, const AppTexts *sets, Study *out) {
  StudyFile *file;
  *out = (Study){0};
  TRY(config_study_parse(path, text, &study_schema, sets->count, sets->texts, &file));
  Status status = study_create(file, out);
  if (status == STATUS_OK) status = reduce_events_check(out);
  if (status == STATUS_OK) return STATUS_OK;
  study_destroy(out);
  return status_prefix(status, "%s: ", path);
}

Status app_study_of_folder(const char *directory, Study *out) {
  SCOPED(char *, text, memory_free_text);
  TRY(folder_read_study(directory, &text));
  char path[4096];
  snprintf(path, sizeof path, "%s/study.yaml", directory);
  return app_study_of_file(path, text, &(AppTexts){0}, out);
}

static void app_note(const char *sentence) { fprintf(stderr, "note: %s\n", sentence); }

Status app_note_unused(const Study *study) {
  if (parallel_rank() != 0) return STATUS_OK;
  if (study->ops->advise) study->ops->advise(study, app_note);
  return study_unused_note(study, app_note);
}

int app_groups(const Study *study, size_t size, char *text) {
  const Config *first = study->file->settings[0];
  int settings = 0;
  if (config_is(first, "ranks_per_setting", "auto"))
    snprintf(text, size, "groups of as few ranks as have the memory");
  else
    snprintf(text, size, "groups of %s", numeral_count(config_int(first, "ranks_per_setting"), "rank").text);
  for (int s = 0; s < study->file->setting_count; s++) settings += study->spread_bytes[s] > 0;
  return settings * study->runs.blocks;
}

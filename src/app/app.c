#include "app/app.h"

#include "io/ownership.h"
#include "io/provenance.h"
#include "parallel/results/reduce.h"
#include "parallel/statistics.h"
#include "parallel/tasks/folder.h"
#include "sampler/check/draws_check.h"
#include "study/estimates.h"
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

/* Notes if problem.noise is set although the rewards have no noise. */
static void app_note_unused_noise(const Study *study) {
  for (int s = 0; s < study->file->setting_count; s++) {
    const Config *setting = study->file->settings[s];
    const LikelihoodOps *ops = likelihood_find(config_text(setting, "likelihood"));
    if (ops->quadratic || config_is(setting, "problem.noise", "auto")) continue;
    fprintf(stderr, "note: problem.noise is %g, but rewards with the likelihood %s have no noise\n",
            config_real(setting, "problem.noise"), ops->name);
    return;
  }
}

Status app_note_unused(const Study *study) {
  if (parallel_rank() != 0) return STATUS_OK;
  app_note_unused_noise(study);
  return study_unused_note(study, app_note);
}

/* ---- the table */

/* Columns of the table, [settings, policies, places] each; the last two only widen the errors. */
enum { MEAN, SE, DIFF_MEAN, DIFF_SE, COUNT, SE_REPLICATE, DIFF_SE_REPLICATE, COLUMNS };

enum { TABLE_POINTS = 8 /* with more points only the last one is printed, not all of them side by side */ };

int app_label_width(const StudyFile *file) {
  size_t widest = strlen("policy");
  for (int p = 0; p < file->policy_count; p++)
    if (strlen(file->policies[p].label) > widest) widest = strlen(file->policies[p].label);
  return (int)widest;
}

/* Reads a variable[settings, policies, *length]; a *length of SIZE_MAX is filled in. */
static Status app_read_variable(Arena *memory, StoreFile *file, const Study *study, const char *name,
                                size_t *length, double **out) {
  size_t shape[3] = {(size_t)study->file->setting_count, (size_t)study->file->policy_count, *length};
  TRY(store_shape(file, name, 3, shape));
  *length = shape[2];
  ALLOCATE(memory, *out, shape[0] * shape[1] * shape[2]);
  return store_get_doubles(file, name, *out);
}

/* Prints a number in a column, or "-" if it is NaN: all runs failed, or one alone has no standard error. */
static void app_print_number(const char *sign, int width, int digits, double x) {
  if (isnan(x))
    printf("%*s", width, "-");
  else
    printf(*sign ? "%+*.*g" : "%*.*g", width, digits, x);
}

/* Prints a curve in one setting: mean and standard error at all points, if there are few, or at the last one,
 * with the paired difference from the first policy. */
static void print_setting(const Study *study, int setting, double *const columns[]) {
  const StudyOps *ops = study->ops;
  const StudyFile *file = study->file;
  const Config *config = file->settings[setting];
  const bool few = study->points <= TABLE_POINTS;
  const int points = ops->points(config), first = few ? 0 : points - 1, widest = app_label_width(file);
  printf("\n%s: %s ", file->setting_labels[setting], study->curves[0]->long_name);
  if (few) {
    printf("by %s\n  %-*s", ops->axis, widest, "policy");
    for (int i = 0; i < points; i++) printf("  %7g %8s", study_axis_value(study, setting, i), "se");
  } else {
    printf("at %s %g\n  %-*s %10s %8s   %12s %8s", ops->axis, study_axis_value(study, setting, first), widest,
           "policy", "mean", "se", "difference", "se");
  }
  printf(" %6s\n", "runs");
  for (int p = 0; p < file->policy_count; p++) {
    const size_t row = (size_t)(setting * file->policy_count + p) * (size_t)study->places,
                 at_first = row + (size_t)study_place(study, setting, first);
    printf("  %-*s", widest, file->policies[p].label);
    for (int i = first; i < points; i++) {
      const size_t at = row + (size_t)study_place(study, setting, i);
      app_print_number("", few ? 9 : 11, few ? 3 : 4, columns[MEAN][at]);
      app_print_number("", 9, 2, columns[SE][at]);
    }
    if (!few && p == 0) printf("%24s", "");
    if (!few && p > 0) {
      app_print_number("+", 15, 4, columns[DIFF_MEAN][at_first]);
      app_print_number("", 9, 2, columns[DIFF_SE][at_first]);
    }
    printf(" %6.0f\n", columns[COUNT][at_first]);
  }
}

/* Prints in which settings policies had fallbacks: how many, and in how many runs. */
static Status print_fallbacks(StoreFile *file, const Study *study) {
  SCRATCH_ARENA(scratch);
  const StudyFile *names = study->file;
  const int policies = names->policy_count;
  size_t runs = SIZE_MAX;
  double *fallbacks;
  bool first = true;
  TRY(app_read_variable(&scratch, file, study, "fallbacks", &runs, &fallbacks));
  for (int c = 0; c < names->setting_count * policies; c++, fallbacks += runs) {
    double count = 0;
    size_t hit = 0;
    for (size_t r = 0; r < runs; r++) {
      count += fallbacks[r];
      hit += fallbacks[r] > 0;
    }
    if (count == 0) continue;
    if (first)
      printf("\nnumerical fallbacks: a simpler method was used where a number went wrong, or a learned prior "
             "was asked for more than it was trained on (docs/guide.md#numerical-fallbacks)\n");
    first = false;
    printf("  %s, %s: %.0f in %zu of %zu runs (%.2g%%)\n", names->setting_labels[c / policies],
           names->policies[c % policies].label, count, hit, runs, 100.0 * (double)hit / (double)runs);
  }
  return STATUS_OK;
}

/* Returns whether a mean over runs is outside [least, most] by more than DRAWS_CHECK_ERRORS standard errors.
 */
static bool app_mean_is_outside(double mean, double se, double least, double most) {
  return mean - DRAWS_CHECK_ERRORS * se > most || mean + DRAWS_CHECK_ERRORS * se < least;
}

/* Limits x[n] to [least, most]; returns how many were beyond `beyond` in size. NaN stays. */
static int app_limit(size_t n, double least, double most, double beyond, double *x) {
  int far = 0;
  for (size_t i = 0; i < n; i++) {
    far += fabs(x[i]) > beyond;
    x[i] = x[i] > most ? most : x[i] < least ? least : x[i];
  }
  return far;
}

/* Prints in which settings the draws of policies are not where the posterior is, judged by the offset and
 * spread of every run (sampler/check/draws_check.h). */
static Status print_draws_check(StoreFile *file, const Study *study) {
  enum { FEWEST = 8 /* runs needed for a standard error */ };
  SCRATCH_ARENA(scratch);
  const StudyFile *names = study->file;
  const int policies = names->policy_count;
  size_t runs = SIZE_MAX;
  double *offset, *spread, mean[2], se[2], n;
  bool first = true;
  if (!store_has_variable(file, "draws_offset")) return STATUS_OK; /* results written by an earlier version */
  TRY(app_read_variable(&scratch, file, study, "draws_offset", &runs, &offset));
  TRY(app_read_variable(&scratch, file, study, "draws_spread", &runs, &spread));
  for (int c = 0; c < names->setting_count * policies; c++, offset += runs, spread += runs) {
    const ConfigPolicy *policy = &names->policies[c % policies];
    const SamplerOps *sampler = policy_named(policy->name).sampler;
    const double square = DRAWS_CHECK_BEYOND * DRAWS_CHECK_BEYOND;
    const int scattered = app_limit(runs, 0, DRAWS_CHECK_MOST * DRAWS_CHECK_MOST, square, spread),
              off = app_limit(runs, -DRAWS_CHECK_MOST, DRAWS_CHECK_MOST, DRAWS_CHECK_BEYOND, offset),
              far = scattered > off ? scattered : off;
    statistics_mean((int64_t)runs, 1, offset, NULL, &mean[0], &se[0], &n);
    statistics_mean((int64_t)runs, 1, spread, NULL, &mean[1], &se[1], &n);
    if (!sampler || n < FEWEST) continue;
    const double narrow = (sampler->narrow > 0 ? sampler->narrow : 1) / DRAWS_CHECK_FACTOR,
                 wide = (sampler->wide > 0 ? sampler->wide : 1) * DRAWS_CHECK_FACTOR;
    if (far == 0 && !app_mean_is_outside(mean[0], se[0], -DRAWS_CHECK_OFFSET, DRAWS_CHECK_OFFSET) &&
        !app_mean_is_outside(mean[1], se[1], narrow * narrow, wide * wide))
      continue;
    if (first)
      printf("\ndraws that are not where the posterior is, averaged over runs: their offset in the direction "
             "from the prior's mean to the posterior's, and their distance from the latter "
             "(docs/guide.md#draws-that-are-not-from-the-posterior)\n");
    first = false;
    printf("  %s, %s: %.2g +- %.1g standard deviations %s, spread %.3g times the posterior's",
           names->setting_labels[c / policies], policy->label, fabs(mean[0]), se[0],
           mean[0] < 0 ? "short of it" : "beyond it", sqrt(mean[1]));
    if (far > 0)
      printf("; more than %d standard deviations away in %d of %zu runs", DRAWS_CHECK_BEYOND, far, runs);
    printf("\n");
  }
  return STATUS_OK;
}

/* Prints why an estimate is not to be trusted; values[ESTIMATES_COUNT] are those of results.nc. */
static void print_doubt(Doubt doubt, const double *values) {
  const double weight = values[ESTIMATES_of_mean_weight], arm = values[ESTIMATES_of_doubtful_arm],
               arm_weight = values[ESTIMATES_of_doubtful_arm_weight];
  switch (doubt) {
  case DOUBT_FEW_EVENTS:
    printf("fewer than %d events: the log shows too little of what the policy does\n", ESTIMATES_FEW_EVENTS);
    return;
  case DOUBT_ARM_0_ABSENT:
    printf("arm 0 is never played; arms are counted from 0, or give their number as problem.arms\n");
    return;
  case DOUBT_ARM_WEIGHT_HIGH:
    printf(
        "the propensities of arm %.0f are too small: 1 / propensity of its events, over all events, has the "
        "mean %.4g, and at most 1 is possible\n",
        arm, arm_weight);
    return;
  default:
    printf("the mean weight is %.4g, and not 1 +- %.2g: propensities are too %s", weight,
           values[ESTIMATES_of_mean_weight_se], weight > 1 ? "small" : "large");
    if (weight < 1) printf(", or the log lacks arms that the policy takes");
    if (weight < 1 && arm_weight == 0)
      printf(": arm %.0f is never played", arm);
    else if (weight < 1 && arm_weight > 0)
      printf(": for arm %.0f the mean of 1 / propensity is %.4g", arm, arm_weight);
    printf("\n");
  }
}

/* Prints the values of a study of estimates, and marks the ones that are not to be trusted. */
static Status print_estimates(StoreFile *file, const Study *study) {
  static const char *const names[ESTIMATES_COUNT] = {
#define ESTIMATES_NAME(name, text) #name,
      ESTIMATES_LIST(ESTIMATES_NAME)
#undef ESTIMATES_NAME
  };
  const StudyFile *settings = study->file;
  const int widest = app_label_width(settings), curves = study->curve_count,
            rows = settings->policy_count * curves;
  SCRATCH_ARENA(scratch);
  double *columns[ESTIMATES_COUNT], *doubts;
  for (int i = 0; i < ESTIMATES_COUNT; i++) {
    ALLOCATE(&scratch, columns[i], settings->setting_count * rows);
    TRY(store_get_doubles(file, names[i], columns[i]));
  }
  ALLOCATE(&scratch, doubts, settings->setting_count * rows);
  TRY(store_get_doubles(file, "doubt", doubts));
  for (int s = 0; s < settings->setting_count; s++) {
    bool doubtful = false;
    printf("\n%s: value of a policy, its mean reward per event\n", settings->setting_labels[s]);
    printf("  %-*s %-9s %10s %8s %22s %9s\n", widest, "policy", "estimator", "value", "se", "95% interval",
           "events");
    for (int row = 0, at = s * rows; row < rows; row++, at++) {
      printf("  %-*s %-9s", widest, settings->policies[row / curves].label,
             study->curves[row % curves]->name);
      for (int i = 0; i < ESTIMATES_of_effective_sample_size; i++)
        app_print_number("", i == ESTIMATES_of_value_se ? 9 : 11, i == ESTIMATES_of_value_se ? 2 : 4,
                         columns[i][at]);
      app_print_number("", 10, 4, columns[ESTIMATES_of_effective_sample_size][at]);
      printf(doubts[at] > 0 ? " !\n" : "\n");
      doubtful |= doubts[at] > 0;
    }
    if (doubtful) printf("  !: do not trust the value and its interval\n");
    for (int row = 0, at = s * rows; row < rows; row++, at++) {
      const bool same = row % curves > 0 && doubts[at] == doubts[at - 1] &&
                        columns[ESTIMATES_of_mean_weight][at] == columns[ESTIMATES_of_mean_weight][at - 1];
      double values[ESTIMATES_COUNT];
      if (!(doubts[at] > 0) || same) continue;
      for (int i = 0; i < ESTIMATES_COUNT; i++) values[i] = columns[i][at];
      printf("  %s, %s: ", settings->policies[row / curves].label, study->curves[row % curves]->name);
      print_doubt((Doubt)doubts[at], values);
    }
  }
  printf(
      "\nevents: effective sample size; interval: bootstrap over events, Wilson's too if rewards of a kind "
      "are rare\n");
  return STATUS_OK;
}

static Status print_means(StoreFile *file, const Study *study) {
  static const char *const suffixes[COLUMNS] = {"_mean", "_se",           "_diff_mean",        "_diff_se",
                                                "_n",    "_se_replicate", "_diff_se_replicate"};
  SCRATCH_ARENA(scratch);
  double *columns[COLUMNS];
  size_t places = (size_t)study->places;
  const size_t cells = (size_t)study->file->setting_count * (size_t)study->file->policy_count;
  for (int i = 0; i < COLUMNS; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", study->curves[0]->name, suffixes[i]);
    TRY(app_read_variable(&scratch, file, study, name, &places, &columns[i]));
  }
  /* Each standard error over runs becomes the one over the means of replicates, where that is larger. */
  for (size_t i = 0; i < cells * places; i++) {
    columns[SE][i] = fmax(columns[SE][i], columns[SE_REPLICATE][i]);
    columns[DIFF_SE][i] = fmax(columns[DIFF_SE][i], columns[DIFF_SE_REPLICATE][i]);
  }
  for (int s = 0; s < study->file->setting_count; s++) print_setting(study, s, columns);
  if (study->points > TABLE_POINTS)
    printf("\ndifference: paired with the first policy, same theta*, arms and noise");
  printf("\nse: standard error over runs%s\n",
         study->runs.replicates > 1 ? ", or over the means of replicates where that is larger" : "");
  return STATUS_OK;
}

Status app_print_table(const Study *study, const char *directory) {
  SCOPED(StoreFile *, file, store_close);
  char path[4096];
  snprintf(path, sizeof path, "%s/results.nc", directory);
  TRY(store_open_own(path, &file));
  TRY(study->ops->estimates ? print_estimates(file, study) : print_means(file, study));
  TRY(print_fallbacks(file, study));
  return print_draws_check(file, study);
}

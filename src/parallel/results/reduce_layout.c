/* The layout of results.nc. */
#include "io/provenance.h"
#include "parallel/results/reduce_internal.h"
#include "study/study_problem.h"

#include <string.h>

bool reduce_layout_has_part(const StudyCurve *curve, int part) {
  if (curve->each) return part == PART_VALUES;
  if (part == PART_QUANTILES) return curve->tails;
  return part < PART_DIFF_MEAN || (part != PART_DIFF_COUNT && !curve->shared);
}

static bool reducer_has_tails(const Study *study) {
  for (int c = 0; c < study->published; c++)
    if (study->curves[c]->tails) return true;
  return false;
}

const char *reduce_layout_axis_name(const ConfigAxis *axis, char name[AXIS_NAME]) {
  snprintf(name, AXIS_NAME, "%s", axis->key);
  for (char *letter = name; *letter; letter++)
    if (*letter == '.') *letter = '_';
  return name;
}

/* Defines a variable over settings and further dimensions, and writes its attribute `coordinates`, in which
 * the CF conventions name the auxiliary coordinates: labels of the dimensions, and the swept keys. */
static Status reducer_define_variable(const Reducer *reducer, const char *variable, StoreType type, int rank,
                                      const int *dimensions, const char *words, const char *units) {
  const StudyFile *file = reducer->study->file;
  SCRATCH_ARENA(scratch);
  const char *names = "setting";
  char name[AXIS_NAME];
  for (int i = 1; i < rank; i++)
    if (dimensions[i] == reducer->policy)
      TRY(arena_print(&scratch, &names, "%s policy", names));
    else if (dimensions[i] == reducer->run)
      TRY(arena_print(&scratch, &names, "%s replicate", names));
    else if (dimensions[i] == reducer->axis && reducer->study->ops->estimates)
      TRY(arena_print(&scratch, &names, "%s estimator", names));
  for (int a = 0; a < file->axis_count; a++)
    TRY(arena_print(&scratch, &names, "%s %s", names, reduce_layout_axis_name(&file->axes[a], name)));
  TRY(store_variable(reducer->file, variable, type, rank, dimensions, words, units));
  return store_text_attribute(reducer->file, variable, "coordinates", names);
}

/* CF: a method over something that is not a dimension of the variable goes by its standard name, here that
 * of `run`; a standard error is not a CF method. */
static const struct {
  const char *suffix, *words, *method;
} parts[PARTS] = {
    {"", "", NULL},
    {"_mean", ", mean over completed runs", "realization: mean"},
    {"_se", ", standard error of the mean over completed runs", NULL},
    {"_n", ", number of completed runs in the mean", NULL},
    {"_se_replicate", ", standard error over the means of replicates", NULL},
    {"_diff_mean", ", mean of the paired difference to the first policy", "realization: mean"},
    {"_diff_se", ", standard error of the paired difference to the first policy", NULL},
    {0}, /* the number of pairs is not stored */
    {"_diff_se_replicate", ", standard error of the paired difference over the means of replicates", NULL},
    {"_quantile", ", quantile over completed runs", NULL}};

const char *reduce_layout_part_name(const StudyCurve *curve, int part, char name[PART_NAME]) {
  snprintf(name, PART_NAME, "%s%s", curve->name, parts[part].suffix);
  return name;
}

static Status reducer_define_curve(Reducer *reducer, int c) {
  const StudyCurve *curve = reducer->study->curves[c];
  for (int part = 0; part < PARTS; part++) {
    char name[PART_NAME], words[256];
    const bool values = part == PART_VALUES;
    const StoreType type = part == PART_COUNT ? STORE_INT : STORE_DOUBLE;
    int dimension[4] = {reducer->setting}, count = 1;
    if (!reduce_layout_has_part(curve, part)) continue;
    if (!curve->of_world) dimension[count++] = reducer->policy;
    if (values) dimension[count++] = reducer->run;
    if (part == PART_QUANTILES) dimension[count++] = reducer->quantile;
    dimension[count++] = reducer->axis;
    reduce_layout_part_name(curve, part, name);
    snprintf(words, sizeof words, "%s%s", curve->long_name, parts[part].words);
    TRY(reducer_define_variable(reducer, name, type, count, dimension, words, "1"));
    if (parts[part].method)
      TRY(store_text_attribute(reducer->file, name, "cell_methods", parts[part].method));
  }
  char of[64], names[256];
  if (curve->each) return STATUS_OK;
  snprintf(of, sizeof of, "%s_mean", curve->name);
  snprintf(names, sizeof names, "%s_se %s_n %s_se_replicate", curve->name, curve->name, curve->name);
  TRY(store_text_attribute(reducer->file, of, "ancillary_variables", names));
  if (curve->shared) return STATUS_OK;
  snprintf(of, sizeof of, "%s_diff_mean", curve->name);
  snprintf(names, sizeof names, "%s_diff_se %s_diff_se_replicate", curve->name, curve->name);
  return store_text_attribute(reducer->file, of, "ancillary_variables", names);
}

/* Defines the variables of cells that are not curves. */
static Status reducer_define_cells(Reducer *reducer) {
  const int dimensions[3] = {reducer->setting, reducer->policy, reducer->run};
  for (int c = 0; c < COLUMN_KINDS; c++) {
    const ColumnKind *kind = &column_kinds[c];
    TRY(reducer_define_variable(reducer, kind->name, kind->counts ? STORE_INT64 : STORE_DOUBLE, 3, dimensions,
                                kind->long_name, kind->units));
  }
  TRY(reducer_define_variable(reducer, "status", STORE_BYTE, 3, dimensions, "outcome of the run", NULL));
  TRY(reducer_define_variable(reducer, "seconds_train", STORE_DOUBLE, 2, dimensions,
                              "CPU seconds to fit the policy's priors, over all replicates", "s"));
  return store_flags(reducer->file, "status", 3, (signed char[]){RUN_NOT_RUN, RUN_OK, RUN_FAILED},
                     "not_run ok failed");
}

/* Writes what is known of policies and settings: their labels, the swept keys as variables over settings, the
 * noise of rewards, and whether a setting's matrices were spread over ranks, so that its values are
 * reproduced to 1e-10, not byte for byte. */
static Status reducer_put_labels(Reducer *reducer) {
  const StudyFile *file = reducer->study->file;
  SCRATCH_ARENA(scratch);
  const char **texts;
  signed char *flags;
  ALLOCATE(&scratch, texts, file->policy_count);
  ALLOCATE(&scratch, flags, file->setting_count);
  for (int p = 0; p < file->policy_count; p++) texts[p] = file->policies[p].label;
  TRY(store_texts(reducer->file, "policy", reducer->policy, file->policy_count, texts,
                  "label of the policy"));
  TRY(store_texts(reducer->file, "setting", reducer->setting, file->setting_count, file->setting_labels,
                  "label of the setting"));
  for (int a = 0; a < file->axis_count; a++) {
    const ConfigAxis *axis = &file->axes[a];
    char name[AXIS_NAME], words[160];
    reduce_layout_axis_name(axis, name);
    snprintf(words, sizeof words, "swept key %s", axis->key);
    TRY(axis->numeric
            ? store_write(reducer->file, name, STORE_DOUBLE, 1, &reducer->setting, words, "1", axis->numbers)
            : store_texts(reducer->file, name, reducer->setting, file->setting_count, axis->texts, words));
  }
  TRY(reducer_define_variable(reducer, "reward_noise", STORE_DOUBLE, 1, &reducer->setting,
                              "standard deviation of a reward around its mean, where all runs have the same",
                              "1"));
  TRY(store_put_part(reducer->file, "reward_noise", (size_t[]){0}, (size_t[]){(size_t)file->setting_count},
                     reducer->study->noise));
  for (int s = 0; s < file->setting_count; s++) flags[s] = study_problem_is_distributed(file->settings[s]);
  TRY(reducer_define_variable(reducer, "distributed", STORE_BYTE, 1, &reducer->setting,
                              "whether the setting's matrices were spread over ranks", NULL));
  TRY(store_put_part(reducer->file, "distributed", (size_t[]){0}, (size_t[]){(size_t)file->setting_count},
                     flags));
  return store_flags(reducer->file, "distributed", 2, (signed char[]){0, 1}, "one_rank several_ranks");
}

/* Writes the coordinates: run, the replicate that it used, quantile, and the study's axis. */
static Status reducer_put_coordinates(Reducer *reducer) {
  const Study *study = reducer->study;
  SCRATCH_ARENA(scratch);
  int64_t *runs;
  int *replicates;
  ALLOCATE(&scratch, runs, reducer->runs);
  ALLOCATE(&scratch, replicates, reducer->runs);
  for (int64_t r = 0; r < reducer->runs; r++) {
    runs[r] = r;
    replicates[r] = (int)study_runs_replicate(&study->runs, r);
  }
  TRY(store_write(reducer->file, "run", STORE_INT64, 1, &reducer->run, "number of the run, from 0", "1",
                  runs));
  TRY(store_text_attribute(reducer->file, "run", "standard_name", "realization"));
  TRY(store_write(reducer->file, "replicate", STORE_INT, 1, &reducer->run, "which learned prior the run used",
                  "1", replicates));
  if (study->ops->estimates) return STATUS_OK;
  if (reducer_has_tails(study))
    TRY(store_write(reducer->file, "quantile", STORE_DOUBLE, 1, &reducer->quantile,
                    "share of runs whose value is at most this", "1", study_quantiles));
  return store_write(reducer->file, study->ops->axis, STORE_DOUBLE, 1, &reducer->axis,
                     study->ops->axis_long_name, "1", study->axis);
}

const char *const reduce_estimates[ESTIMATES_COUNT][2] = {
#define ESTIMATES_NAME(name, text) {#name, text},
    ESTIMATES_LIST(ESTIMATES_NAME)
#undef ESTIMATES_NAME
};

/* Defines the variables of a study of estimates, and names the estimators. */
static Status reducer_define_estimates(Reducer *reducer) {
  const Study *study = reducer->study;
  const int dimensions[3] = {reducer->setting, reducer->policy, reducer->axis};
  SCRATCH_ARENA(scratch);
  const char **words;
  ALLOCATE(&scratch, words, study->curve_count);
  for (int c = 0; c < study->curve_count; c++) words[c] = study->curves[c]->name;
  TRY(store_texts(reducer->file, study->ops->axis, reducer->axis, study->curve_count, words,
                  study->ops->axis_long_name));
  for (int i = 0; i < ESTIMATES_COUNT; i++)
    TRY(reducer_define_variable(reducer, reduce_estimates[i][0], STORE_DOUBLE, 3, dimensions,
                                reduce_estimates[i][1], "1"));
  TRY(reducer_define_variable(reducer, "doubt", STORE_BYTE, 3, dimensions,
                              "why the value is not to be trusted", NULL));
  TRY(store_flags(reducer->file, "doubt", DOUBTS, (signed char[]){0, 1, 2, 3, 4, 5}, ESTIMATES_DOUBTS));
  return store_text_attribute(reducer->file, reduce_estimates[0][0], "ancillary_variables",
                              "value_se value_low value_high effective_sample_size doubt");
}

Status reduce_layout_define(Reducer *reducer) {
  const Study *study = reducer->study;
  const char *title = config_text(study->file->settings[0], "title"), *references;
  SCRATCH_ARENA(scratch);
  TRY(store_create(reducer->path, &reducer->file));
  StoreFile *file = reducer->file;
  TRY(store_dimension(file, "setting", (size_t)study->file->setting_count, &reducer->setting));
  TRY(store_dimension(file, "policy", (size_t)study->file->policy_count, &reducer->policy));
  TRY(store_dimension(file, "run", (size_t)reducer->runs, &reducer->run));
  if (reducer_has_tails(study)) TRY(store_dimension(file, "quantile", STUDY_QUANTILES, &reducer->quantile));
  TRY(store_dimension(file, study->ops->axis,
                      (size_t)(study->ops->estimates ? study->curve_count : study->places), &reducer->axis));
  TRY(study_references(&scratch, study, &references));
  TRY(provenance_write(file, title ? title : study->name, references));
  TRY(store_text_attribute(file, NULL, "config", study->file->resolved));
  TRY(store_text_attribute(file, NULL, "config_sha256", study->file->sha256));
  TRY(store_int_attribute(file, "seed", (int64_t)study->seed));
  TRY(reducer_put_labels(reducer));
  TRY(reducer_put_coordinates(reducer));
  for (int c = 0; c < study->published; c++) TRY(reducer_define_curve(reducer, c));
  if (study->ops->estimates) TRY(reducer_define_estimates(reducer));
  return reducer_define_cells(reducer);
}

#include "parallel/reduce.h"

#include "core/memory.h"
#include "io/provenance.h"
#include "io/store.h"
#include "parallel/adaptive.h"
#include "parallel/cell.h"
#include "parallel/checkpoint.h"
#include "parallel/folder.h"
#include "parallel/former.h"
#include "parallel/prior_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const Parallel *parallel;
  const Study *study;
  const char *directory;
  const ReduceOptions *options;
  Former former; /* the results that are replaced, on rank 0 */
  int64_t lost; /* runs that those have and the tasks lack */
  StoreFile *file; /* on rank 0 */
  signed char *state; /* [task_count], RunStatus */
  int *blocks; /* [setting_count], of each setting that count */
  int64_t runs; /* the most of any setting */
  int setting, policy, run, axis; /* dimensions */
  int *curve_ids; /* [curve_count, PER_CURVE] variable ids */
  int seconds, seconds_train, fallbacks, status;
} Reducer;

enum { VALUES, MEAN, SE, COUNT, REPLICATE_SE, DIFF_MEAN, DIFF_SE, DIFF_REPLICATE_SE, PER_CURVE };

/* The parts of a curve: those from DIFF_MEAN on are of paired differences. */
static int part_count(const StudyCurve *curve) { return curve->shared ? DIFF_MEAN : PER_CURVE; }

/* Layout of the file. */

/* Labels of a variable, by its dimensions. */
static const char *const OF_RUNS = "setting policy replicate", *const OF_POLICIES = "setting policy",
                         *const OF_SETTINGS = "setting";

/* The variable of a swept key: its dots are underscores. */
enum { AXIS_NAME = 128 };
static const char *axis_name(const ConfigAxis *axis, char name[AXIS_NAME]) {
  snprintf(name, AXIS_NAME, "%s", axis->key);
  for (char *letter = name; *letter; letter++)
    if (*letter == '.') *letter = '_';
  return name;
}

/* CF: a variable over settings names its auxiliary coordinates: the swept keys, and `labels`. */
static Status name_coordinates(const Reducer *reducer, const char *variable, const char *labels) {
  const StudyFile *file = reducer->study->file;
  size_t size = 64 + (size_t)file->axis_count * AXIS_NAME, length;
  char *names, name[AXIS_NAME];
  NEW(names, size);
  length = (size_t)snprintf(names, size, "%s", labels);
  for (int a = 0; a < file->axis_count; a++)
    length += (size_t)snprintf(names + length, size - length, " %s", axis_name(&file->axes[a], name));
  Status status = store_text_attribute(reducer->file, variable, "coordinates", names);
  free(names);
  return status;
}

static Status define_curve(Reducer *reducer, int c) {
  const StudyCurve *curve = reducer->study->curves[c];
  /* CF: a method over what is no dimension of the variable goes by its standard name, that of `run`; a
   * standard error is none of its methods. */
  static const struct {
    const char *suffix, *words, *method;
  } parts[PER_CURVE] = {
      {"", "", NULL},
      {"_mean", ", mean over completed runs", "realization: mean"},
      {"_se", ", standard error of the mean over completed runs", NULL},
      {"_n", ", number of completed runs in the mean", NULL},
      {"_se_replicate", ", standard error over the means of replicates", NULL},
      {"_diff_mean", ", mean of the paired difference to the first policy", "realization: mean"},
      {"_diff_se", ", standard error of the paired difference to the first policy", NULL},
      {"_diff_se_replicate", ", standard error of the paired difference over the means of replicates", NULL}};
  int whole[4] = {reducer->setting, reducer->policy, reducer->run, reducer->axis},
      means[3] = {reducer->setting, reducer->policy, reducer->axis};
  for (int part = 0; part < part_count(curve); part++) {
    char name[64], words[256];
    snprintf(name, sizeof name, "%s%s", curve->name, parts[part].suffix);
    snprintf(words, sizeof words, "%s%s", curve->long_name, parts[part].words);
    TRY(store_variable(reducer->file, name, part == COUNT ? STORE_INT : STORE_DOUBLE, part == VALUES ? 4 : 3,
                       part == VALUES ? whole : means, words, part == COUNT ? "1" : curve->units,
                       &reducer->curve_ids[c * PER_CURVE + part]));
    TRY(name_coordinates(reducer, name, part == VALUES ? OF_RUNS : OF_POLICIES));
    if (parts[part].method)
      TRY(store_text_attribute(reducer->file, name, "cell_methods", parts[part].method));
  }
  char of[64], names[256];
  snprintf(of, sizeof of, "%s_mean", curve->name);
  snprintf(names, sizeof names, "%s_se %s_n %s_se_replicate", curve->name, curve->name, curve->name);
  TRY(store_text_attribute(reducer->file, of, "ancillary_variables", names));
  if (curve->shared) return STATUS_OK;
  snprintf(of, sizeof of, "%s_diff_mean", curve->name);
  snprintf(names, sizeof names, "%s_diff_se %s_diff_se_replicate", curve->name, curve->name);
  return store_text_attribute(reducer->file, of, "ancillary_variables", names);
}

static Status define_flags(Reducer *reducer) {
  StoreFile *file = reducer->file;
  int runs[3] = {reducer->setting, reducer->policy, reducer->run};
  TRY(store_variable(file, "seconds", STORE_DOUBLE, 3, runs,
                     "CPU seconds of the block's simulation divided by its runs", "s", &reducer->seconds));
  TRY(store_variable(file, "seconds_train", STORE_DOUBLE, 2, runs,
                     "CPU seconds to fit the priors of the policy, all replicates", "s",
                     &reducer->seconds_train));
  TRY(store_variable(file, "fallbacks", STORE_INT64, 3, runs, "numerical fallbacks", "1",
                     &reducer->fallbacks));
  TRY(store_variable(file, "status", STORE_BYTE, 3, runs, "outcome of the run", NULL, &reducer->status));
  TRY(name_coordinates(reducer, "seconds", OF_RUNS));
  TRY(name_coordinates(reducer, "seconds_train", OF_POLICIES));
  TRY(name_coordinates(reducer, "fallbacks", OF_RUNS));
  TRY(name_coordinates(reducer, "status", OF_RUNS));
  TRY(store_bytes_attribute(file, "status", "flag_values", 3,
                            (signed char[]){RUN_NOT_RUN, RUN_OK, RUN_FAILED}));
  return store_text_attribute(file, "status", "flag_meanings", "not_run ok failed");
}

/* How long the job took that reduces; with `mpi_ranks` it shows how well a study scales. */
static Status put_wall(Reducer *reducer) {
  int id;
  double seconds = provenance_elapsed();
  TRY(store_variable(reducer->file, "seconds_wall", STORE_DOUBLE, 0, NULL,
                     "wall-clock seconds of the job that wrote this file", "s", &id));
  return store_put(reducer->file, id, &seconds);
}

/* Which value of a swept key a setting has. With `zip` all axes advance together, else the last is
 * fastest. */
static int axis_position(const StudyFile *file, int axis, int setting) {
  int product = 1, faster = 1;
  for (int i = 0; i < file->axis_count; i++) {
    product *= file->axes[i].count;
    if (i > axis) faster *= file->axes[i].count;
  }
  return product == file->setting_count ? setting / faster % file->axes[axis].count : setting;
}

/* A swept key as a variable over settings. */
static Status put_axis(Reducer *reducer, int index, const char **texts, double *numbers) {
  const StudyFile *file = reducer->study->file;
  const ConfigAxis *axis = &file->axes[index];
  char name[AXIS_NAME], words[160];
  axis_name(axis, name);
  snprintf(words, sizeof words, "swept key %s", axis->key);
  for (int s = 0; s < file->setting_count; s++) {
    int value = axis_position(file, index, s);
    texts[s] = axis->texts[value];
    numbers[s] = axis->numeric ? axis->numbers[value] : NAN;
  }
  if (!axis->numeric)
    return store_texts(reducer->file, name, reducer->setting, file->setting_count, texts, words);
  int id;
  TRY(store_variable(reducer->file, name, STORE_DOUBLE, 1, &reducer->setting, words, "1", &id));
  return store_put(reducer->file, id, numbers);
}

static Status put_labels(Reducer *reducer) {
  const StudyFile *file = reducer->study->file;
  const char **texts;
  double *numbers;
  int most = file->setting_count > file->policy_count ? file->setting_count : file->policy_count;
  NEW(texts, most);
  Status status = memory_new((void **)&numbers, (size_t)most, sizeof *numbers);
  for (int p = 0; p < file->policy_count; p++) texts[p] = file->policies[p].label;
  if (status == STATUS_OK)
    status = store_texts(reducer->file, "policy", reducer->policy, file->policy_count, texts,
                         "label of the policy");
  for (int s = 0; s < file->setting_count; s++) texts[s] = file->setting_labels[s];
  if (status == STATUS_OK)
    status = store_texts(reducer->file, "setting", reducer->setting, file->setting_count, texts,
                         "label of the setting");
  for (int a = 0; a < file->axis_count && status == STATUS_OK; a++)
    status = put_axis(reducer, a, texts, numbers);
  free(texts);
  free(numbers);
  return status;
}

/* Settings whose matrices were spread over ranks: equal to 1e-10, not byte for byte. */
static Status put_distributed(Reducer *reducer) {
  const StudyFile *file = reducer->study->file;
  signed char *flags;
  int id;
  NEW(flags, file->setting_count);
  for (int s = 0; s < file->setting_count; s++) flags[s] = problem_is_distributed(file->settings[s]);
  Status status = store_variable(reducer->file, "distributed", STORE_BYTE, 1, &reducer->setting,
                                 "whether the setting's matrices were spread over all ranks", NULL, &id);
  if (status == STATUS_OK)
    status = store_bytes_attribute(reducer->file, "distributed", "flag_values", 2, (signed char[]){0, 1});
  if (status == STATUS_OK)
    status = store_text_attribute(reducer->file, "distributed", "flag_meanings", "one_rank all_ranks");
  if (status == STATUS_OK) status = name_coordinates(reducer, "distributed", OF_SETTINGS);
  if (status == STATUS_OK) status = store_put(reducer->file, id, flags);
  free(flags);
  return status;
}

/* Coordinates: run, the replicate that it used, and the study's own axis. */
static Status put_coordinates(Reducer *reducer) {
  const Study *study = reducer->study;
  int64_t *runs;
  int *replicates, id;
  double *axis;
  NEW(runs, reducer->runs);
  Status status = memory_new((void **)&replicates, (size_t)reducer->runs, sizeof *replicates);
  if (status == STATUS_OK) status = memory_new((void **)&axis, (size_t)study->points, sizeof *axis);
  if (status != STATUS_OK) return status;
  for (int64_t r = 0; r < reducer->runs; r++)
    runs[r] = r, replicates[r] = (int)runs_replicate(&study->runs, r);
  const Config *longest = study->file->settings[0];
  for (int s = 0; s < study->file->setting_count; s++)
    if (study->ops->points(study->file->settings[s]) == study->points) longest = study->file->settings[s];
  for (int i = 0; i < study->points; i++) axis[i] = study->ops->axis_value(longest, i);
  status = store_variable(reducer->file, "run", STORE_INT64, 1, &reducer->run, "number of the run, from 0",
                          "1", &id);
  if (status == STATUS_OK)
    status = store_text_attribute(reducer->file, "run", "standard_name", "realization");
  if (status == STATUS_OK) status = store_put(reducer->file, id, runs);
  if (status == STATUS_OK)
    status = store_variable(reducer->file, "replicate", STORE_INT, 1, &reducer->run,
                            "which learned prior the run used", "1", &id);
  if (status == STATUS_OK) status = store_put(reducer->file, id, replicates);
  if (status == STATUS_OK)
    status = store_variable(reducer->file, study->ops->axis, STORE_DOUBLE, 1, &reducer->axis,
                            study->ops->axis_long_name, "1", &id);
  if (status == STATUS_OK) status = store_put(reducer->file, id, axis);
  free(runs);
  free(replicates);
  free(axis);
  return status;
}

static Status put_attributes(Reducer *reducer) {
  const Study *study = reducer->study;
  const char *title = config_text(study->file->settings[0], "title");
  TRY(provenance_write(reducer->file, title ? title : study->name));
  TRY(store_text_attribute(reducer->file, NULL, "config", study->file->resolved));
  TRY(store_text_attribute(reducer->file, NULL, "config_sha256", study->file->sha256));
  return store_int_attribute(reducer->file, NULL, "seed", (int64_t)study->seed);
}

static Status define(Reducer *reducer) {
  const Study *study = reducer->study;
  StoreFile *file = reducer->file;
  TRY(store_dimension(file, "setting", (size_t)study->file->setting_count, &reducer->setting));
  TRY(store_dimension(file, "policy", (size_t)study->file->policy_count, &reducer->policy));
  TRY(store_dimension(file, "run", (size_t)reducer->runs, &reducer->run));
  TRY(store_dimension(file, study->ops->axis, (size_t)study->points, &reducer->axis));
  TRY(put_attributes(reducer));
  TRY(put_labels(reducer));
  TRY(put_distributed(reducer));
  TRY(put_coordinates(reducer));
  for (int c = 0; c < study->curve_count; c++) TRY(define_curve(reducer, c));
  return define_flags(reducer);
}

/* Values. */

/* One policy in one setting; `first` is the first policy of the list, for paired differences. `scratch`
 * [points] x 3. */
static Status put_cell(Reducer *reducer, size_t s, size_t p, const Cell *cell, const Cell *first,
                       double *scratch) {
  const Study *study = reducer->study;
  size_t points = (size_t)study->points, runs = (size_t)cell->runs;
  reducer->lost += former_lost(&reducer->former, s, p, cell->runs, cell->status);
  size_t whole[4] = {s, p, 0, 0}, whole_count[4] = {1, 1, runs, points}, mean[3] = {s, p, 0},
         mean_count[3] = {1, 1, points};
  size_t run_count[3] = {1, 1, runs};
  double *mean_values = scratch, *se = scratch + points;
  int *n = (int *)(void *)(scratch + 2 * points);
  for (int c = 0; c < study->curve_count; c++) {
    const int *id = reducer->curve_ids + c * PER_CURVE;
    const double *values = cell->curves + (size_t)c * runs * points,
                 *base = first->curves + (size_t)c * runs * points;
    TRY(store_put_part(reducer->file, id[VALUES], whole, whole_count, values));
    cell_mean(cell->runs, study->points, values, NULL, mean_values, se, n);
    TRY(store_put_part(reducer->file, id[MEAN], mean, mean_count, mean_values));
    TRY(store_put_part(reducer->file, id[SE], mean, mean_count, se));
    TRY(store_put_part(reducer->file, id[COUNT], mean, mean_count, n));
    TRY(cell_replicate_se(study, cell->runs, values, NULL, se));
    TRY(store_put_part(reducer->file, id[REPLICATE_SE], mean, mean_count, se));
    if (study->curves[c]->shared) continue;
    cell_mean(cell->runs, study->points, values, base, mean_values, se, n);
    TRY(store_put_part(reducer->file, id[DIFF_MEAN], mean, mean_count, mean_values));
    TRY(store_put_part(reducer->file, id[DIFF_SE], mean, mean_count, se));
    TRY(cell_replicate_se(study, cell->runs, values, base, se));
    TRY(store_put_part(reducer->file, id[DIFF_REPLICATE_SE], mean, mean_count, se));
  }
  TRY(store_put_part(reducer->file, reducer->seconds, mean, run_count, cell->seconds));
  TRY(store_put_part(reducer->file, reducer->seconds_train, mean, (size_t[]){1, 1}, &cell->seconds_train));
  TRY(store_put_part(reducer->file, reducer->fallbacks, mean, run_count, cell->fallbacks));
  return store_put_part(reducer->file, reducer->status, mean, run_count, cell->status);
}

/* Cells on their way from the rank that reads them to rank 0, which writes. */

typedef struct {
  Status status;
  char message[512];
  ReduceCounts counts;
} CellNews;

/* With other ranks to do it, rank 0 reads none. */
static int reader_of(const Reducer *reducer, int cell) {
  return reducer->parallel->size == 1 ? 0 : 1 + cell % (reducer->parallel->size - 1);
}

static Status load(const Reducer *reducer, int s, int p, Cell *cell, ReduceCounts *counts) {
  return cell_load(reducer->study, reducer->directory, reducer->state, s, p, reducer->blocks[s],
                   reducer->options->set_aside, cell, counts);
}

static void send_cell(const Reducer *reducer, int s, int p, Cell *cell) {
  CellNews news = {0};
  news.status = load(reducer, s, p, cell, &news.counts);
  if (news.status != STATUS_OK) snprintf(news.message, sizeof news.message, "%s", status_message());
  parallel_send(0, &news, sizeof news);
  if (news.status == STATUS_OK) cell_send(reducer->study, cell, 0);
}

static Status receive_cell(const Reducer *reducer, int from, Cell *cell, ReduceCounts *counts) {
  CellNews news;
  parallel_receive(from, &news, sizeof news);
  if (news.status != STATUS_OK) return status_set(news.status, "%s", news.message);
  cell_receive(reducer->study, cell, from);
  counts->ok += news.counts.ok;
  counts->failed += news.counts.failed;
  counts->missing += news.counts.missing;
  counts->damaged += news.counts.damaged;
  return STATUS_OK;
}

/* Rank 0: every cell in order. After an error the others are still received, so that nobody waits for
 * ever. */
static Status put_values(Reducer *reducer, Cell *cell, Cell *first, double *scratch, ReduceCounts *counts) {
  const StudyFile *file = reducer->study->file;
  Status result = STATUS_OK;
  char message[512] = "";
  for (int c = 0; c < file->setting_count * file->policy_count; c++) {
    int s = c / file->policy_count, p = c % file->policy_count, from = reader_of(reducer, c);
    Cell *into = p == 0 ? first : cell;
    Status status = from == 0 ? load(reducer, s, p, into, counts) : receive_cell(reducer, from, into, counts);
    if (result != STATUS_OK) continue;
    if (status == STATUS_OK) status = put_cell(reducer, (size_t)s, (size_t)p, into, first, scratch);
    if (status != STATUS_OK) snprintf(message, sizeof message, "%s", status_message());
    result = status;
  }
  return result == STATUS_OK ? STATUS_OK : status_set(result, "%s", message);
}

/* The other ranks: their cells, in order. Errors go to rank 0. */
static Status send_values(const Reducer *reducer) {
  const StudyFile *file = reducer->study->file;
  Cell cell;
  Status status = cell_create(reducer->study, reducer->runs, &cell);
  TRY(parallel_agree(reducer->parallel, status));
  for (int c = 0; c < file->setting_count * file->policy_count; c++)
    if (reader_of(reducer, c) == reducer->parallel->rank)
      send_cell(reducer, c / file->policy_count, c % file->policy_count, &cell);
  cell_destroy(&cell);
  return STATUS_OK;
}

/* Blocks of a setting up to the last one that any policy has. */
static int blocks_present(const Reducer *reducer, int setting) {
  const Study *study = reducer->study;
  int blocks = 0;
  for (int p = 0; p < study->file->policy_count; p++)
    for (int k = blocks; k < study->runs.blocks; k++)
      if (reducer->state[study_task_index(study, setting, p, k)] != RUN_NOT_RUN) blocks = k + 1;
  return blocks;
}

/* The blocks of each setting: those that were asked for, and where that is not the last word yet all that are
 * there. */
static Status count_blocks(Reducer *reducer) {
  const Study *study = reducer->study;
  Adaptive adaptive;
  TRY(adaptive_create(study, reducer->directory, &adaptive));
  Status status = adaptive_replay(reducer->state, &adaptive);
  for (int s = 0; s < study->file->setting_count; s++) {
    int present = adaptive.settings[s].ended ? 0 : blocks_present(reducer, s);
    reducer->blocks[s] = present > adaptive.settings[s].wanted ? present : adaptive.settings[s].wanted;
    int64_t runs = runs_in_blocks(&study->runs, reducer->blocks[s]);
    if (runs > reducer->runs) reducer->runs = runs;
  }
  adaptive_destroy(&adaptive);
  return status;
}

/* Everything that rank 0 needs before the first cell comes. */
static Status begin_file(Reducer *reducer, const char *path, Cell *cell, Cell *first, double **scratch) {
  const Study *study = reducer->study;
  TRY(cell_create(study, reducer->runs, cell));
  TRY(cell_create(study, reducer->runs, first));
  NEW(*scratch, 3 * study->points);
  NEW(reducer->curve_ids, study->curve_count * PER_CURVE);
  TRY(store_create(path, STORE_NETCDF4, &reducer->file));
  return define(reducer);
}

static Status check_lost(const Reducer *reducer, const char *path) {
  if (reducer->lost == 0 || reducer->options->overwrite) return STATUS_OK;
  return status_set(
      STATUS_RESUME,
      "%s has %lld finished runs that the task files lack, and stays as it is; `thompson reduce "
      "--overwrite` replaces it",
      path, (long long)reducer->lost);
}

/* The file is whole: into place, unless its damaged tasks are to run again first. */
static Status end_file(Reducer *reducer, const char *path, const ReduceCounts *counts) {
  const bool wait = reducer->options->set_aside && counts->damaged > 0;
  Status status = wait ? STATUS_OK : check_lost(reducer, path);
  if (wait || status != STATUS_OK) {
    store_abandon(reducer->file);
    return status;
  }
  TRY(store_commit(reducer->file));
  return prior_samples_write(reducer->study, reducer->directory);
}

static Status write_file(Reducer *reducer, const char *path, ReduceCounts *counts) {
  Cell cell = {0}, first = {0};
  double *scratch = NULL;
  Status status = parallel_agree(reducer->parallel, begin_file(reducer, path, &cell, &first, &scratch));
  if (status == STATUS_OK) status = put_values(reducer, &cell, &first, scratch, counts);
  if (status == STATUS_OK) status = put_wall(reducer);
  if (status == STATUS_OK)
    status = end_file(reducer, path, counts);
  else
    store_abandon(reducer->file);
  cell_destroy(&cell);
  cell_destroy(&first);
  free(scratch);
  return status;
}

/* What there is to reduce, on rank 0. */
static Status look_around(Reducer *reducer) {
  const Study *study = reducer->study;
  if (reducer->parallel->rank > 0) return STATUS_OK;
  TRY(folder_check(reducer->directory));
  TRY(former_read(reducer->directory, study, &reducer->former));
  TRY(folder_make_room(reducer->directory, "prior_samples.nc", study->file->sha256));
  TRY(checkpoint_scan(reducer->directory, study, reducer->state));
  TRY(checkpoint_check_tasks(reducer->directory, study, reducer->state));
  return count_blocks(reducer);
}

static Status reduce(Reducer *reducer, const char *path, ReduceCounts *counts) {
  const Parallel *parallel = reducer->parallel;
  const Study *study = reducer->study;
  Status status = memory_new((void **)&reducer->state, (size_t)study->task_count, 1);
  if (status == STATUS_OK)
    status =
        memory_new((void **)&reducer->blocks, (size_t)study->file->setting_count, sizeof *reducer->blocks);
  if (status == STATUS_OK) status = look_around(reducer);
  TRY(parallel_agree(parallel, status));
  if (parallel->size > 1) {
    parallel_broadcast(reducer->state, (size_t)study->task_count);
    parallel_broadcast(reducer->blocks, (size_t)study->file->setting_count * sizeof *reducer->blocks);
    parallel_broadcast(&reducer->runs, sizeof reducer->runs);
  }
  return parallel_agree(parallel,
                        parallel->rank == 0 ? write_file(reducer, path, counts) : send_values(reducer));
}

Status reduce_study(const Parallel *parallel, const Study *study, const char *directory,
                    const ReduceOptions *options, ReduceCounts *counts) {
  char path[4096];
  Reducer reducer = {.parallel = parallel, .study = study, .directory = directory, .options = options};
  *counts = (ReduceCounts){0};
  snprintf(path, sizeof path, "%s/results.nc", directory);
  Status status = reduce(&reducer, path, counts);
  former_destroy(&reducer.former);
  free(reducer.state);
  free(reducer.blocks);
  free(reducer.curve_ids);
  return status;
}

#include "parallel/reduce_internal.h"

#include "core/memory.h"
#include "io/provenance.h"
#include "parallel/adaptive.h"
#include "parallel/cell.h"
#include "parallel/folder.h"
#include "parallel/prior_samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static Status load(Reducer *reducer, int s, int p, Cell *cell, ReduceCounts *counts) {
  return cell_load(&reducer->finished, s, p, reducer->blocks[s], reducer->options->set_aside, cell, counts);
}

static void send_cell(Reducer *reducer, int s, int p, Cell *cell) {
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
static Status send_values(Reducer *reducer) {
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
      if (reducer->finished.state[study_task_index(study, setting, p, k)] != RUN_NOT_RUN) blocks = k + 1;
  return blocks;
}

/* The blocks of each setting: those that were asked for, and where that is not the last word yet all that are
 * there. */
static Status count_blocks(Reducer *reducer) {
  const Study *study = reducer->study;
  Adaptive adaptive;
  TRY(adaptive_create(&reducer->finished, &adaptive));
  Status status = adaptive_replay(reducer->finished.state, &adaptive);
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
  return reduce_define(reducer);
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

/* How long the job took that reduces; with `mpi_ranks` it shows how well a study scales. */
static Status put_wall(Reducer *reducer) {
  int id;
  double seconds = provenance_elapsed();
  TRY(store_variable(reducer->file, "seconds_wall", STORE_DOUBLE, 0, NULL,
                     "wall-clock seconds of the job that wrote this file", "s", &id));
  return store_put(reducer->file, id, &seconds);
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
static Status look_around(Reducer *reducer, ReduceCounts *counts) {
  const Study *study = reducer->study;
  if (reducer->parallel->rank > 0) return STATUS_OK;
  TRY(folder_check(reducer->directory));
  TRY(former_read(reducer->directory, study, &reducer->former));
  TRY(folder_make_room(reducer->directory, "prior_samples.nc", study->file->sha256));
  TRY(finished_scan(reducer->directory, study, &reducer->finished));
  TRY(finished_check_study(&reducer->finished));
  TRY(finished_report_unreadable(&reducer->finished, reducer->options->set_aside, &counts->damaged));
  return count_blocks(reducer);
}

static Status reduce(Reducer *reducer, const char *path, ReduceCounts *counts) {
  const Parallel *parallel = reducer->parallel;
  const Study *study = reducer->study;
  Status status =
      memory_new((void **)&reducer->blocks, (size_t)study->file->setting_count, sizeof *reducer->blocks);
  if (status == STATUS_OK) status = look_around(reducer, counts);
  TRY(parallel_agree(parallel, status));
  TRY(finished_broadcast(parallel, reducer->directory, study, &reducer->finished));
  if (parallel->size > 1) {
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
  finished_destroy(&reducer.finished);
  free(reducer.blocks);
  free(reducer.curve_ids);
  return status;
}

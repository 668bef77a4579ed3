#include "io/provenance.h"
#include "parallel/adaptive.h"
#include "parallel/events.h"
#include "parallel/folder.h"
#include "parallel/prior_samples.h"
#include "parallel/reduce_internal.h"

#include <stdio.h>
#include <string.h>

/* Counts the blocks of a setting up to the last one that any policy has. */
static int blocks_present(const Reducer *reducer, int setting) {
  const Study *study = reducer->study;
  int blocks = 0;
  for (int p = 0; p < study->file->policy_count; p++)
    for (int k = blocks; k < study->runs.blocks; k++)
      if (reducer->finished.state[study_task_index(study, setting, p, k)] != RUN_NOT_RUN) blocks = k + 1;
  return blocks;
}

/* Counts the blocks of each setting: those that were asked for or, while more may be asked for, all that are
 * there. */
static Status count_blocks(Reducer *reducer) {
  const Study *study = reducer->study;
  Adaptive adaptive;
  TRY(adaptive_create(&reducer->memory, &reducer->finished, &adaptive));
  TRY(adaptive_replay(reducer->finished.state, &adaptive));
  for (int s = 0; s < study->file->setting_count; s++) {
    int present = adaptive.settings[s].ended ? 0 : blocks_present(reducer, s);
    reducer->blocks[s] = present > adaptive.settings[s].wanted ? present : adaptive.settings[s].wanted;
    int64_t runs = runs_in_blocks(&study->runs, reducer->blocks[s]);
    if (runs > reducer->runs) reducer->runs = runs;
  }
  return STATUS_OK;
}

/* Begins the file, with everything that rank 0 needs before the first cell comes. */
static Status begin_file(Reducer *reducer) {
  TRY(store_create(reducer->path, STORE_NETCDF4, &reducer->file));
  return reduce_define(reducer);
}

static Status check_lost(const Reducer *reducer) {
  if (reducer->lost == 0 || reducer->options->overwrite) return STATUS_OK;
  return status_set(STATUS_RESUME,
                    "%s has %lld finished runs that the journals lack, and stays as it is; `thompson reduce "
                    "--overwrite` replaces it",
                    reducer->path, (long long)reducer->lost);
}

/* Moves the file, which is whole, into place. */
static Status end_file(Reducer *reducer, const ReduceCounts *counts) {
  const Status status = check_lost(reducer);
  if (status != STATUS_OK) {
    store_abandon(reducer->file);
    return status;
  }
  TRY(store_commit(reducer->file));
  TRY(prior_samples_write(reducer->study, reducer->directory));
  /* Logs without tasks that have become unreadable would pass for whole ones. */
  return counts->damaged > 0 ? STATUS_OK : events_write(&reducer->finished, reducer->blocks);
}

/* Writes how long the job that reduces has taken; with `mpi_ranks` it shows how well a study scales. */
static Status put_wall(Reducer *reducer) {
  int id;
  double seconds = provenance_elapsed();
  TRY(store_variable(reducer->file, "seconds_wall", STORE_DOUBLE, 0, NULL,
                     "wall-clock seconds of the job that wrote this file", "s", &id));
  return store_put(reducer->file, id, &seconds);
}

static Status write_file(Reducer *reducer, ReduceCounts *counts) {
  Status status = parallel_agree(reducer->parallel, begin_file(reducer));
  if (status == STATUS_OK) status = reduce_put_values(reducer, counts);
  if (status == STATUS_OK) status = put_wall(reducer);
  if (status == STATUS_OK) return end_file(reducer, counts);
  store_abandon(reducer->file);
  return status;
}

/* Does the part of the other ranks. */
static Status help_write(Reducer *reducer, ReduceCounts *counts) {
  TRY(parallel_agree(reducer->parallel, STATUS_OK));
  return reduce_put_values(reducer, counts);
}

/* Looks for what stands in the way of the results, on rank 0. */
static Status look_around(Reducer *reducer) {
  TRY(folder_check(reducer->directory));
  TRY(former_read(&reducer->memory, reducer->directory, reducer->study, &reducer->former));
  return folder_make_room(reducer->directory, "prior_samples.nc", reducer->study->file->sha256);
}

static Status reduce(Reducer *reducer, ReduceCounts *counts) {
  const Parallel *parallel = reducer->parallel;
  const Study *study = reducer->study;
  const bool first = parallel->rank == 0;
  const size_t settings = (size_t)study->file->setting_count;
  TRY(parallel_agree(parallel, first ? look_around(reducer) : STATUS_OK));
  TRY(finished_open_all(&reducer->memory, parallel, reducer->directory, study, &reducer->finished));
  Status status = arena_new(&reducer->memory, (void **)&reducer->blocks, settings, sizeof *reducer->blocks);
  if (status == STATUS_OK && first) status = count_blocks(reducer);
  TRY(parallel_agree(parallel, status));
  if (parallel->size > 1) {
    parallel_broadcast(reducer->blocks, settings * sizeof *reducer->blocks);
    parallel_broadcast(&reducer->runs, sizeof reducer->runs);
  }
  TRY(parallel_agree(parallel, reduce_prepare(reducer)));
  status = first ? write_file(reducer, counts) : help_write(reducer, counts);
  const int damaged = first ? finished_report_damage(&reducer->finished) : 0;
  if (counts->missing > 0) counts->damaged += damaged; /* else others have what was there */
  return parallel_agree(parallel, status);
}

Status reduce_study(const Parallel *parallel, const Study *study, const char *directory,
                    const ReduceOptions *options, ReduceCounts *counts) {
  char path[4096];
  Reducer reducer = {
      .parallel = parallel, .study = study, .directory = directory, .path = path, .options = options};
  *counts = (ReduceCounts){0};
  snprintf(path, sizeof path, "%s/results.nc", directory);
  const Status status = reduce(&reducer, counts);
  finished_close(&reducer.finished);
  arena_free(&reducer.memory);
  return status;
}

#include "io/provenance.h"
#include "parallel/results/reduce_internal.h"
#include "parallel/tasks/adaptive.h"
#include "study/study_problem.h"

#include <unistd.h>

/* ---- DIR/prior_samples.nc: samples of the true distribution of theta* and of the learned prior with a
 * reverse chain (the family diffusion), for the upper rows of the papers' figures. */

enum { SAMPLES = 1000, SOURCES = 2 };

/* Returns the family that learns a reverse chain, whose samples the figures show next to the true ones. */
static const PriorOps *reducer_learned_family(void) {
  for (int i = 0; prior_family(i); i++)
    if (prior_family(i)->network_size && (prior_family(i)->able & PRIOR_CHAIN)) return prior_family(i);
  ASSERT(false);
  return NULL;
}

/* Writes theta[d, SAMPLES] of a source in a setting. What is not written is NaN. */
static Status reducer_put_samples(StoreFile *file, int setting, size_t source, int d, const double *theta,
                                  double *scratch) {
  io_dataset_transpose(d, SAMPLES, theta, scratch);
  return store_put_part(file, "theta", (size_t[]){(size_t)setting, source, 0, 0},
                        (size_t[]){1, 1, SAMPLES, (size_t)d}, scratch);
}

/* Samples one setting into theta[d, SAMPLES] and writes it. The learned prior is the first of that family
 * (replicate 0) that is on disk. */
static Status reducer_sample_setting(const Study *study, int s, const char *directory, StoreFile *file,
                                     double *theta, double *transposed) {
  const Config *setting = study->file->settings[s];
  SCOPED(Problem, problem, problem_destroy);
  TRY(study_problem_create(setting, &problem));
  /* No picture: there are too many dimensions, or there is no theta*. */
  if (problem.vectors || problem.ops->rewards) return STATUS_OK;
  problem_theta_for_pictures(&problem, SAMPLES, theta);
  TRY(reducer_put_samples(file, s, 0, problem.d, theta, transposed));
  for (int p = 0; p < study->file->policy_count; p++) {
    SCRATCH_ARENA(scratch);
    RngLanes rng = {.key = rng_key(study->seed, RNG_UNCONDITIONAL), .draws = SAMPLES, .lanes = SAMPLES};
    Belief belief;
    Prior prior;
    char path[4096];
    TRY(study_belief_create(setting, &study->file->policies[p], &problem, 0, &belief));
    if (belief.kind != BELIEF_FITTED || belief.family != reducer_learned_family()) continue;
    study_belief_path(&belief, directory, sizeof path, path);
    if (access(path, R_OK) != 0) continue;
    if (study_belief_prior(&scratch, &belief, &problem, directory, &prior) != STATUS_OK) {
      fprintf(stderr, "thompson: %s; its samples are left out\n", status_message());
      continue;
    }
    prior.ops->sample(&prior, &rng, theta);
    return reducer_put_samples(file, s, 1, problem.d, theta, transposed);
  }
  return STATUS_OK;
}

static Status reducer_fill_prior_samples(const Study *study, const char *directory, StoreFile *file,
                                         int width) {
  SCRATCH_ARENA(scratch);
  const char *const sources[SOURCES] = {"true", reducer_learned_family()->name};
  int dimension[4];
  double *theta, *transposed;
  ALLOCATE_ARRAYS(&scratch, width * SAMPLES, &theta, &transposed);
  TRY(store_dimension(file, "setting", (size_t)study->file->setting_count, &dimension[0]));
  TRY(store_dimension(file, "source", SOURCES, &dimension[1]));
  TRY(store_dimension(file, "sample", SAMPLES, &dimension[2]));
  TRY(store_dimension(file, "dim", (size_t)width, &dimension[3]));
  TRY(provenance_write(file, "samples of the true and the learned prior", NULL));
  TRY(store_text_attribute(file, NULL, "config_sha256", study->file->sha256));
  TRY(store_texts(file, "setting", dimension[0], study->file->setting_count, study->file->setting_labels,
                  "label of the setting"));
  TRY(store_texts(file, "source", dimension[1], SOURCES, sources,
                  "true distribution of theta*, or the family of the learned prior"));
  TRY(store_variable(file, "theta", STORE_DOUBLE, 4, dimension, "sample of theta", "1"));
  TRY(store_text_attribute(file, "theta", "coordinates", "setting source"));
  for (int s = 0; s < study->file->setting_count; s++)
    TRY(reducer_sample_setting(study, s, directory, file, theta, transposed));
  return STATUS_OK;
}

/* Writes theta(setting, source, sample, dim) with source = true, diffusion; NaN where a setting has no such
 * prior or fewer dimensions. A prior that cannot be read is reported on stderr and left out. STATUS_FILE when
 * the file cannot be written. Called on one rank. */
static Status reducer_write_prior_samples(const Study *study, const char *directory) {
  char path[4096];
  int width = 1;
  StoreFile *file;
  for (int s = 0; s < study->file->setting_count; s++) {
    SCOPED(Problem, problem, problem_destroy);
    TRY(study_problem_create(study->file->settings[s], &problem));
    if (problem.d > width && !problem.vectors) width = problem.d;
  }
  snprintf(path, sizeof path, "%s/prior_samples.nc", directory);
  TRY(store_create(path, &file));
  return store_finish(file, reducer_fill_prior_samples(study, directory, file, width));
}

/* ---- results.nc */

/* Ends the file: moves it into place if all went well, then writes the prior samples and the event logs. */
static Status reducer_end_file(Reducer *reducer, Status status) {
  const double seconds = provenance_elapsed(); /* with `mpi_ranks` it shows how well a study scales */
  if (status == STATUS_OK)
    status = store_write(reducer->file, "seconds_wall", STORE_DOUBLE, 0, NULL,
                         "wall-clock seconds of the job that wrote this file", "s", &seconds);
  if (status == STATUS_OK && reducer->lost > 0 && !reducer->overwrite)
    status = status_set(STATUS_RESUME,
                        "%s has %lld finished runs that the journals lack, so it is left as it is; `thompson "
                        "reduce --overwrite` replaces it",
                        reducer->path, (long long)reducer->lost);
  if (status == STATUS_OK && reducer->former.edited && reducer->counts.missing > 0 && !reducer->overwrite)
    status =
        status_set(STATUS_RESUME,
                   "%s is of the study before it was edited, and %d tasks of the study are missing, so it "
                   "is left as it is; `thompson run --resume` runs them, `thompson reduce --overwrite` "
                   "replaces it",
                   reducer->path, reducer->counts.missing);
  TRY(store_finish(reducer->file, status));
  TRY(reducer_write_prior_samples(reducer->study, reducer->directory));
  /* Logs that lack unreadable tasks would pass for complete ones. */
  return reducer->counts.damaged > 0 ? STATUS_OK : reduce_events_write(&reducer->finished, reducer->blocks);
}

/* Checks, on rank 0, that nothing is in the way of the results. */
static Status reducer_check_folder(Reducer *reducer) {
  TRY(folder_check(reducer->directory));
  TRY(former_read(&reducer->memory, reducer->directory, reducer->study, &reducer->former));
  return folder_make_room(reducer->directory, "prior_samples.nc", reducer->study->file->sha256);
}

static void reducer_free(Reducer *reducer) {
  problem_destroy(&reducer->problem);
  finished_close(&reducer->finished);
  arena_free(&reducer->memory);
}

Status reduce_study(const Study *study, const char *directory, bool overwrite, ReduceCounts *counts,
                    Leaderboard *board) {
  SCOPED(Reducer, reducer, reducer_free);
  char path[4096];
  const bool first = parallel_rank() == 0;
  const size_t settings = (size_t)study->file->setting_count;
  reducer = (Reducer){.study = study,
                      .directory = directory,
                      .path = path,
                      .overwrite = overwrite,
                      .board = board,
                      .problem_of = -1};
  *counts = (ReduceCounts){0};
  snprintf(path, sizeof path, "%s/results.nc", directory);
  TRY(parallel_agree(leaderboard_create(study, board)));
  TRY(parallel_agree(first ? reducer_check_folder(&reducer) : STATUS_OK));
  TRY(finished_open_all(&reducer.memory, reducer.directory, study, &reducer.finished));
  Status status = arena_new(&reducer.memory, (void **)&reducer.blocks, settings, sizeof *reducer.blocks);
  if (status == STATUS_OK && first)
    status = adaptive_count_blocks(&reducer.finished, reducer.blocks, &reducer.runs);
  TRY(parallel_agree(status));
  parallel_broadcast(reducer.blocks, settings * sizeof *reducer.blocks);
  parallel_broadcast(&reducer.runs, sizeof reducer.runs);
  status = parallel_agree(first ? reduce_layout_define(&reducer) : STATUS_OK);
  if (status == STATUS_OK) status = reduce_values_put(&reducer);
  if (first) status = reducer_end_file(&reducer, status);
  const int damaged = first ? finished_report_damage(&reducer.finished) : 0;
  if (reducer.counts.missing > 0)
    reducer.counts.damaged += damaged; /* else other records hold the same tasks */
  *counts = reducer.counts;
  return parallel_agree(status);
}

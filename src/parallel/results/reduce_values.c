/* The values of results.nc, cell by cell: one policy in one setting.
 *
 * Small curves go to rank 0, which takes the cells in order and compresses them. If curves are large, each of
 * the other ranks has its own settings: it reads them, writes their curves to their places in the file, and
 * sends the statistics to rank 0. */
#include "core/quantile.h"
#include "parallel/results/reduce_internal.h"
#include "parallel/statistics.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static Status reducer_create_buffers(Arena *memory, Reducer *reducer) {
  const Study *study = reducer->study;
  ALLOCATE(memory, reducer->offsets, study->published);
  ALLOCATE(memory, reducer->names, study->published);
  for (int c = 0; c < study->published; c++) reducer->names[c] = study->curves[c]->name;
  for (int i = 0; i < 2; i++) TRY(reduce_cell_create(memory, study, reducer->runs, &reducer->cells[i]));
  reducer->summary_size = (size_t)study->published * SUMMARY_ROWS * (size_t)study->places;
  ALLOCATE(memory, reducer->summary, reducer->summary_size);
  return STATUS_OK;
}

static Status reducer_summarise_cell(Reducer *reducer, int p) {
  Cell *first = &reducer->cells[0], *cell = &reducer->cells[p > 0];
  if (p > 0) reduce_cell_complete_world(reducer->study, cell, first);
  return reduce_cell_summarise(reducer->study, cell, first, reducer->summary);
}

/* Writing into the file, on rank 0. */

/* Returns whether a curve is due with this policy: curves of the world are complete only with the last one.
 */
static bool reducer_curve_is_due(const Study *study, int c, int p) {
  return !study->curves[c]->of_world || p == study->file->policy_count - 1;
}

static const double *reducer_curve_to_put(const Reducer *reducer, int c, int p) {
  const Study *study = reducer->study;
  const Cell *cell = &reducer->cells[p > 0 && !study->curves[c]->of_world];
  return cell->curves + (size_t)c * (size_t)cell->runs * (size_t)study->places;
}

/* Returns why an estimate whose means over runs are mean[ESTIMATES_POINTS] is not to be trusted. */
static Doubt reducer_doubt(const double *mean) {
  if (mean[ESTIMATES_ARM_0_ABSENT] > 0) return DOUBT_ARM_0_ABSENT;
  if (mean[ESTIMATES_ARM_WEIGHT] > 1) return DOUBT_ARM_WEIGHT_HIGH;
  if (mean[ESTIMATES_WEIGHT] > mean[ESTIMATES_WEIGHT_HIGH]) return DOUBT_WEIGHT_HIGH;
  if (mean[ESTIMATES_WEIGHT] < mean[ESTIMATES_WEIGHT_LOW]) return DOUBT_WEIGHT_LOW;
  return mean[ESTIMATES_SIZE] < ESTIMATES_FEW_EVENTS ? DOUBT_FEW_EVENTS : DOUBT_NONE;
}

/* Summarises a curve of a study of estimates, whose means over runs are mean[ESTIMATES_POINTS]:
 * out[ESTIMATES_COUNT], NAN if there are none. The interval is a percentile interval, widened by the other
 * one if that rests on few rare events or has no width; the bootstrap samples in `mean` are sorted in place.
 */
static void reducer_summarise_estimate(double *mean, double *out) {
  double *sample = mean + ESTIMATES_FIRST, centre = 0, square = 0;
  int n = 0;
  for (int s = 0; s < ESTIMATES_RESAMPLES; s++)
    if (!isnan(sample[s])) {
      centre += sample[s];
      sample[n++] = sample[s];
    }
  centre /= n > 0 ? n : 1;
  for (int s = 0; s < n; s++) square += (sample[s] - centre) * (sample[s] - centre);
  quantile_sort(n, sample);
  out[ESTIMATES_of_value] = mean[ESTIMATES_VALUE];
  out[ESTIMATES_of_value_se] = n > 1 ? sqrt(square / (n - 1)) : NAN;
  out[ESTIMATES_of_value_low] = n > 1 ? quantile_of_sorted(n, sample, 0.025) : NAN;
  out[ESTIMATES_of_value_high] = n > 1 ? quantile_of_sorted(n, sample, 0.975) : NAN;
  if (mean[ESTIMATES_RARE] < ESTIMATES_FEW_RARE ||
      !(out[ESTIMATES_of_value_low] < out[ESTIMATES_of_value_high])) {
    out[ESTIMATES_of_value_low] = fmin(out[ESTIMATES_of_value_low], mean[ESTIMATES_LOW]);
    out[ESTIMATES_of_value_high] = fmax(out[ESTIMATES_of_value_high], mean[ESTIMATES_HIGH]);
  }
  out[ESTIMATES_of_effective_sample_size] = mean[ESTIMATES_SIZE];
  out[ESTIMATES_of_mean_weight] = mean[ESTIMATES_WEIGHT];
  out[ESTIMATES_of_mean_weight_se] = mean[ESTIMATES_WEIGHT_SE];
  out[ESTIMATES_of_doubtful_arm] = mean[ESTIMATES_ARM];
  out[ESTIMATES_of_doubtful_arm_weight] = mean[ESTIMATES_ARM_WEIGHT];
}

/* Writes the parts of a curve. Plain values are written by the rank that has the runs. */
static Status reducer_put_curve(Reducer *reducer, int s, int p, int c) {
  const Study *study = reducer->study;
  const StudyCurve *curve = study->curves[c];
  for (int part = reducer->plain ? PART_MEAN : PART_VALUES; part < PARTS; part++) {
    size_t from[4] = {(size_t)s}, size[4] = {1}, n = 1;
    char name[PART_NAME];
    if (!reduce_layout_has_part(curve, part)) continue;
    if (!curve->of_world) {
      from[n] = (size_t)p;
      size[n++] = 1;
    }
    if (part == PART_VALUES) size[n++] = (size_t)reducer->runs;
    if (part == PART_QUANTILES) size[n++] = STUDY_QUANTILES;
    size[n] = (size_t)study->places;
    TRY(store_put_doubles_part(reducer->file, reduce_layout_part_name(curve, part, name), from, size,
                               part == PART_VALUES
                                   ? reducer_curve_to_put(reducer, c, p)
                                   : reduce_cell_summary_part(study, reducer->summary, c, part)));
  }
  return STATUS_OK;
}

/* Writes what a study of estimates has of an estimator. */
static Status reducer_put_estimate(Reducer *reducer, int s, int p, int c) {
  const Cell *cell = &reducer->cells[p > 0];
  const size_t start[3] = {(size_t)s, (size_t)p, (size_t)c}, count[3] = {1, 1, 1};
  double mean[ESTIMATES_POINTS], se[ESTIMATES_POINTS], n[ESTIMATES_POINTS], value[ESTIMATES_COUNT];
  statistics_mean(cell->runs, ESTIMATES_POINTS,
                  cell->curves + (size_t)c * (size_t)cell->runs * ESTIMATES_POINTS, NULL, mean, se, n);
  reducer_summarise_estimate(mean, value);
  for (int i = 0; i < ESTIMATES_COUNT; i++)
    TRY(store_put_part(reducer->file, reduce_estimates[i][0], start, count, &value[i]));
  const signed char doubt = (signed char)reducer_doubt(mean);
  return store_put_part(reducer->file, "doubt", start, count, &doubt);
}

static Status reducer_put_cell(Reducer *reducer, int s, int p) {
  const Study *study = reducer->study;
  const Cell *cell = &reducer->cells[p > 0];
  const size_t start[3] = {(size_t)s, (size_t)p, 0}, count[3] = {1, 1, (size_t)cell->runs};
  reducer->lost += former_lost(&reducer->former, start[0], start[1], cell->runs, cell->status);
  for (int c = 0; c < study->published; c++)
    if (reducer_curve_is_due(study, c, p)) TRY(reducer_put_curve(reducer, s, p, c));
  if (study->ops->estimates)
    for (int c = 0; c < study->curve_count; c++) TRY(reducer_put_estimate(reducer, s, p, c));
  for (int c = 0; c < COLUMN_KINDS; c++)
    TRY(store_put_part(reducer->file, column_kinds[c].name, start, count, columns_values(&cell->columns, c)));
  TRY(store_put_part(reducer->file, "seconds_train", start, count, &cell->seconds_train));
  return store_put_part(reducer->file, "status", start, count, cell->status);
}

/* Large curves, on the rank that has them. */

/* Begins the plain variables: all ranks learn the offsets and open the file. Collective. */
static Status reducer_begin_plain(Reducer *reducer) {
  const int curves = reducer->study->published;
  Status status = STATUS_OK;
  char *path = NULL;
  if (parallel_rank() == 0) {
    status = store_plain_place(reducer->file, curves, reducer->names, reducer->offsets);
    path = store_temporary(reducer->file);
  }
  TRY(parallel_agree(status));
  TRY(parallel_broadcast_text(&path));
  parallel_broadcast(reducer->offsets, (size_t)curves * sizeof *reducer->offsets);
  reducer->plain_file = open(path, O_WRONLY | O_CLOEXEC);
  if (reducer->plain_file < 0)
    status = status_set(STATUS_FILE, "%s: cannot write it: %s", path, strerror(errno));
  if (parallel_rank() > 0) free(path);
  return parallel_agree(status);
}

/* Reads a cell, and summarises it where it is written from: on rank 0 or, if curves are large, on its reader,
 * which also writes them. */
static Status reducer_make_cell(Reducer *reducer, int s, int p) {
  const Study *study = reducer->study;
  const size_t size = (size_t)reducer->runs * (size_t)study->places;
  TRY(reduce_cell_load(&reducer->finished, s, p, reducer->blocks[s], &reducer->cells[p > 0],
                       &reducer->counts));
  if (reducer->plain || parallel_rank() == 0) TRY(reducer_summarise_cell(reducer, p));
  if (!reducer->plain) return STATUS_OK;
  for (int c = 0; c < study->published; c++) {
    const size_t policies = (size_t)study->file->policy_count,
                 place = study->curves[c]->of_world ? (size_t)s : (size_t)s * policies + (size_t)p;
    if (reducer_curve_is_due(study, c, p))
      TRY(store_plain_write(reducer->plain_file, reducer->path, reducer->offsets[c] + place * size * 8, size,
                            reducer_curve_to_put(reducer, c, p)));
  }
  return STATUS_OK;
}

/* Between ranks. */

static void reducer_send(int rank, void *bytes, size_t size) { parallel_send(rank, bytes, size); }

/* Sends a cell to another rank or, unless `send`, receives it: with its statistics if these were computed
 * where it was read, or else with its curves. Only the sender knows whether it is `good`; of a bad one
 * nothing else is sent. Returns whether it is good. */
static bool reducer_pass_cell(Reducer *reducer, bool send, bool good, int other, int p) {
  Cell *cell = &reducer->cells[p > 0];
  const size_t runs = (size_t)cell->runs,
               values = (size_t)reducer->study->curve_count * runs * (size_t)reducer->study->places;
  void (*const pass)(int, void *, size_t) = send ? reducer_send : parallel_receive;
  pass(other, &good, sizeof good);
  if (!good) return false;
  if (reducer->plain)
    pass(other, reducer->summary, reducer->summary_size * sizeof *reducer->summary);
  else
    pass(other, cell->curves, values * sizeof *cell->curves);
  for (int c = 0; c < COLUMN_KINDS; c++) pass(other, columns_values(&cell->columns, c), runs * COLUMN_BYTES);
  pass(other, cell->status, runs);
  pass(other, &cell->seconds_train, sizeof cell->seconds_train);
  return true;
}

/* Which rank reads what. */

/* Returns the number of readers: if there are other ranks, rank 0 reads nothing. */
static int reducer_reading_ranks(void) { return parallel_size() == 1 ? 1 : parallel_size() - 1; }

/* Large curves: each reader has consecutive settings, and rank 0 takes one cell from every reader in turn, so
 * that all of them work. Small curves: cells are dealt to the readers in order. */

static int reducer_first_setting(const Reducer *reducer, int reader) {
  return (int)((int64_t)reader * reducer->study->file->setting_count / reducer_reading_ranks());
}

/* Finds cell number i of a reader; returns false when it has no more. */
static bool reducer_find_reader_cell(const Reducer *reducer, int reader, int i, int *s, int *p) {
  const StudyFile *file = reducer->study->file;
  const int policies = file->policy_count;
  const int cell = reducer->plain ? reducer_first_setting(reducer, reader) * policies + i
                                  : reader + i * reducer_reading_ranks();
  const int end = reducer->plain ? reducer_first_setting(reducer, reader + 1) : file->setting_count;
  *s = cell / policies;
  *p = cell % policies;
  return cell < end * policies;
}

/* Writes all cells, on rank 0. After an error, here or on a reader, the remaining cells are still received,
 * so that no rank waits for ever. */
static Status reducer_put_all_cells(Reducer *reducer) {
  const int most = reducer->study->file->setting_count * reducer->study->file->policy_count;
  Status status = STATUS_OK;
  bool good = true;
  for (int i = 0; i < most; i++)
    for (int r = 0, s, p; r < reducer_reading_ranks(); r++) {
      if (!reducer_find_reader_cell(reducer, r, i, &s, &p)) continue;
      if (parallel_size() > 1) good = reducer_pass_cell(reducer, false, true, 1 + r, p) && good;
      if (status != STATUS_OK || !good) continue;
      if (parallel_size() == 1)
        status = reducer_make_cell(reducer, s, p);
      else if (!reducer->plain)
        status = reducer_summarise_cell(reducer, p);
      if (status == STATUS_OK) status = reducer_put_cell(reducer, s, p);
    }
  return status;
}

/* Reads this rank's cells and sends each to rank 0, which learns at the end what an error was. */
static Status reducer_send_all_cells(Reducer *reducer) {
  Status status = STATUS_OK;
  for (int i = 0, s, p; reducer_find_reader_cell(reducer, parallel_rank() - 1, i, &s, &p); i++) {
    if (status == STATUS_OK) status = reducer_make_cell(reducer, s, p);
    reducer_pass_cell(reducer, true, status == STATUS_OK, 0, p);
  }
  return status;
}

Status reduce_values_put(Reducer *reducer) {
  SCRATCH_ARENA(memory);
  TRY(parallel_agree(reducer_create_buffers(&memory, reducer)));
  if (reducer->plain) TRY(reducer_begin_plain(reducer));
  Status status = parallel_rank() == 0 ? reducer_put_all_cells(reducer) : reducer_send_all_cells(reducer);
  if (reducer->plain) {
    /* Every rank syncs what it wrote: on shared file systems rank 0 cannot do this for others. */
    if (status == STATUS_OK && fsync(reducer->plain_file) != 0)
      status = status_set(STATUS_FILE, "%s: cannot write it: %s", reducer->path, strerror(errno));
    close(reducer->plain_file);
  }
  ReduceCounts *counts = &reducer->counts;
  double sums[] = {counts->ok, counts->failed, counts->missing, counts->damaged};
  parallel_sum_all(sizeof sums / sizeof *sums, sums);
  *counts = (ReduceCounts){(int)sums[0], (int)sums[1], (int)sums[2], (int)sums[3]};
  return parallel_agree(status);
}

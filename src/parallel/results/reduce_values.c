/* The values of results.nc, cell by cell: one policy in one setting. Other ranks, if there are any, read the
 * cells; rank 0 takes them in order, and compresses them. */
#include "parallel/results/reduce_internal.h"
#include "study/study_problem.h"

static Status reducer_create_buffers(Arena *memory, Reducer *reducer) {
  const Study *study = reducer->study;
  for (int i = 0; i < 2; i++) TRY(reduce_cell_create(memory, study, reducer->runs, &reducer->cells[i]));
  ALLOCATE(memory, reducer->summary, study->published * SUMMARY_ROWS * study->places);
  return STATUS_OK;
}

static Status reducer_summarise_cell(Reducer *reducer, int s, int p) {
  Cell *first = &reducer->cells[0], *cell = &reducer->cells[p > 0];
  if (p > 0) reduce_cell_complete_world(reducer->study, cell, first);
  TRY(reduce_cell_summarise(reducer->study, cell, first, reducer->study->published, reducer->summary));
  leaderboard_enter(reducer->study, s, p, cell, reducer->summary, reducer->board);
  return STATUS_OK;
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

/* Writes the parts of a curve. */
static Status reducer_put_curve(Reducer *reducer, int s, int p, int c) {
  const Study *study = reducer->study;
  const StudyCurve *curve = study->curves[c];
  for (int part = PART_VALUES; part < PARTS; part++) {
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
  const CellEstimate *estimate = leaderboard_estimates(reducer->board, reducer->study, s, p) + c;
  const size_t start[3] = {(size_t)s, (size_t)p, (size_t)c}, count[3] = {1, 1, 1};
  for (int i = 0; i < ESTIMATES_COUNT; i++)
    TRY(store_put_part(reducer->file, reduce_estimates[i][0], start, count, &estimate->value[i]));
  const signed char doubt = (signed char)estimate->doubt;
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

/* Between ranks. */

static void reducer_send(int rank, void *bytes, size_t size) { parallel_send(rank, bytes, size); }

/* Sends a cell to another rank or, unless `send`, receives it. Only the sender knows whether it is `good`; of
 * a bad one nothing else is sent. Returns whether it is good. */
static bool reducer_pass_cell(Reducer *reducer, bool send, bool good, int other, int p) {
  Cell *cell = &reducer->cells[p > 0];
  const size_t runs = (size_t)cell->runs,
               values = (size_t)reducer->study->along * runs * (size_t)reducer->study->places;
  void (*const pass)(int, void *, size_t) = send ? reducer_send : parallel_receive;
  pass(other, &good, sizeof good);
  if (!good) return false;
  pass(other, cell->curves, values * sizeof *cell->curves);
  for (int c = 0; c < COLUMN_KINDS; c++) pass(other, columns_values(&cell->columns, c), runs * COLUMN_BYTES);
  pass(other, cell->status, runs);
  pass(other, &cell->seconds_train, sizeof cell->seconds_train);
  return true;
}

/* ---- all cells */

/* Returns the rank that reads a cell: they are dealt to all but rank 0, if there are other ranks. */
static int reducer_reader(int cell) { return parallel_size() == 1 ? 0 : 1 + cell % (parallel_size() - 1); }

static Status reducer_load_cell(Reducer *reducer, int s, int p) {
  Cell *cell = &reducer->cells[p > 0];
  if (reducer->problem_of != s) {
    problem_destroy(&reducer->problem);
    TRY(study_problem_create(reducer->study->file->settings[s], &reducer->problem));
    reducer->problem_of = s;
  }
  TRY(reduce_cell_load(&reducer->finished, s, p, reducer->blocks[s], cell, &reducer->counts));
  return reduce_cell_sum_fit_seconds(reducer->study, reducer->directory, s, p, &reducer->problem,
                                     &cell->seconds_train);
}

/* Writes all cells, on rank 0. After an error, here or on a reader, the remaining cells are still received,
 * so that no rank waits for ever. */
static Status reducer_put_all_cells(Reducer *reducer) {
  const int policies = reducer->study->file->policy_count,
            cells = reducer->study->file->setting_count * policies;
  Status status = STATUS_OK;
  bool good = true;
  for (int cell = 0; cell < cells; cell++) {
    const int s = cell / policies, p = cell % policies, reader = reducer_reader(cell);
    if (reader > 0) good = reducer_pass_cell(reducer, false, true, reader, p) && good;
    if (status != STATUS_OK || !good) continue;
    if (reader == 0) status = reducer_load_cell(reducer, s, p);
    if (status == STATUS_OK) status = reducer_summarise_cell(reducer, s, p);
    if (status == STATUS_OK) status = reducer_put_cell(reducer, s, p);
  }
  return status;
}

/* Reads this rank's cells and sends each to rank 0, which learns at the end what an error was. */
static Status reducer_send_all_cells(Reducer *reducer) {
  const int policies = reducer->study->file->policy_count,
            cells = reducer->study->file->setting_count * policies;
  Status status = STATUS_OK;
  for (int cell = 0; cell < cells; cell++) {
    if (reducer_reader(cell) != parallel_rank()) continue;
    if (status == STATUS_OK) status = reducer_load_cell(reducer, cell / policies, cell % policies);
    reducer_pass_cell(reducer, true, status == STATUS_OK, 0, cell % policies);
  }
  return status;
}

Status reduce_values_put(Reducer *reducer) {
  SCRATCH_ARENA(memory);
  TRY(parallel_agree(reducer_create_buffers(&memory, reducer)));
  const Status status =
      parallel_rank() == 0 ? reducer_put_all_cells(reducer) : reducer_send_all_cells(reducer);
  ReduceCounts *counts = &reducer->counts;
  double sums[] = {counts->ok, counts->failed, counts->missing, counts->damaged};
  parallel_sum_all(sizeof sums / sizeof *sums, sums);
  *counts = (ReduceCounts){(int)sums[0], (int)sums[1], (int)sums[2], (int)sums[3]};
  return parallel_agree(status);
}

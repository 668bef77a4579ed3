/* Rows of neighbouring runs side by side: one per observation or, if the arms do not change, one per arm. */
#include "model/history/history_internal.h"
#include "model/history/history_passes.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static int history_tile_columns(const History *history) {
  return (history->runs + TILE_LANES - 1) / TILE_LANES;
}

/* Reserves the rows. A column of tiles has only the rows of its longest run, so all of them together have no
 * more rows than there are observations, but each can waste most of one tile. */
static Status history_rows_reserve(History *history, int rows) {
  HistoryRows *self = history_rows(history);
  const int count = history_tile_columns(history);
  const int64_t column_tiles = ((int64_t)rows + TILE_ROWS - 1) / TILE_ROWS;
  const int64_t observations = (int64_t)rows * history->each_round;
  int64_t tiles = observations / TILE_ROWS + count;
  if (tiles > count * column_tiles) tiles = count * column_tiles;
  if (tiles > INT_MAX)
    return status_set(STATUS_INPUT, "%d rows for each of %d runs are too many for one block", rows,
                      history->runs);
  const size_t cells = (size_t)tiles * TILE_ROWS * TILE_LANES;
  ALLOCATE(history->memory, self->tile, (size_t)count * (size_t)column_tiles);
  ALLOCATE(history->memory, self->filled, count);
  ALLOCATE(history->memory, self->length, history->runs);
  ALLOCATE_ARRAYS(history->memory, history->runs, &self->longest, &self->excess);
  ALLOCATE(history->memory, self->features, cells * (size_t)history->d);
  ALLOCATE_ARRAYS(history->memory, cells, &self->rewards, &self->counts, &self->lambda, &self->nu);
  self->capacity = rows;
  self->column_tiles = (int)column_tiles;
  self->tiles = (int)tiles;
  return STATUS_OK;
}

static void history_rows_clear(History *history) {
  HistoryRows *self = history_rows(history);
  const size_t runs = (size_t)history->runs, cells = (size_t)self->used * TILE_ROWS * TILE_LANES;
  memset(self->filled, 0, (size_t)history_tile_columns(history) * sizeof *self->filled);
  memset(self->length, 0, runs * sizeof *self->length);
  memset(self->longest, 0, runs * sizeof *self->longest);
  memset(self->excess, 0, runs * sizeof *self->excess);
  memset(self->features, 0, cells * (size_t)history->d * sizeof *self->features);
  memset(self->rewards, 0, cells * sizeof *self->rewards);
  memset(self->counts, 0, cells * sizeof *self->counts);
  self->used = 0;
  self->discounted = false;
}

static void history_rows_discount(History *history, double factor) {
  HistoryRows *self = history_rows(history);
  const size_t cells = (size_t)self->used * TILE_ROWS * TILE_LANES;
  for (size_t k = 0; k < cells; k++) self->counts[k] *= factor;
  for (int n = 0; n < history->runs; n++) self->excess[n] *= factor;
  self->discounted |= factor < 1;
}

void history_rows_add(const History *history, int run, size_t stride, const double *phi, double y) {
  HistoryRows *self = history_rows(history);
  const size_t d = (size_t)history->d, lane = (size_t)(run % TILE_LANES);
  const int column = run / TILE_LANES, l = self->length[run]++;
  double square = 0;
  ASSERT(l < self->capacity && l <= self->filled[column]);
  if (l == self->filled[column] && l % TILE_ROWS == 0) { /* the column needs a tile */
    ASSERT(self->used < self->tiles);
    self->tile[(size_t)column * (size_t)self->column_tiles + (size_t)(l / TILE_ROWS)] = self->used++;
  }
  if (l == self->filled[column]) self->filled[column]++;
  const size_t row = history_row(self, column, l);
  for (size_t i = 0; i < d; i++) {
    double x = self->features[(row * d + i) * TILE_LANES + lane] = phi[i * stride];
    square += x * x;
  }
  self->rewards[row * TILE_LANES + lane] = y;
  self->counts[row * TILE_LANES + lane] = 1;
  self->longest[run] = fmax(self->longest[run], sqrt(square));
}

static void history_rows_append(History *history, const int *arm, const double *phi, const double *y) {
  const int *run = history_latest_runs(history), count = history->each_round;
  for (int m = 0; m < count; m++)
    if (!arm || arm[m] >= 0) history_rows_add(history, run[m], (size_t)count, phi + m, y[m]);
}

/* Returns phi[d] of observation l of a run, entries TILE_LANES apart. */
static const double *history_rows_features_of(const History *history, int run, int l) {
  const HistoryRows *self = history_rows(history);
  const size_t row = history_row(self, run / TILE_LANES, l);
  return self->features + row * (size_t)history->d * TILE_LANES + run % TILE_LANES;
}

/* Returns the index of a row among rewards and counts. */
static size_t history_rows_cell(const HistoryRows *self, int run, int l) {
  return history_row(self, run / TILE_LANES, l) * TILE_LANES + (size_t)(run % TILE_LANES);
}

static double history_reward_of(const History *history, int run, int l) {
  const HistoryRows *self = history_rows(history);
  return self->rewards[history_rows_cell(self, run, l)];
}

static void history_rows_copy_run(const History *from, int m, History *to, int n) {
  for (int l = from->skipped; l < history_rows(from)->length[m]; l++)
    history_rows_add(to, n, TILE_LANES, history_rows_features_of(from, m, l), history_reward_of(from, m, l));
}

void history_rows_read(const History *history, int run, int l, double *phi) {
  const double *from = history_rows_features_of(history, run, l);
  for (size_t i = 0; i < (size_t)history->d; i++) phi[i] = from[i * TILE_LANES];
}

void history_rows_copy(const History *from, int run, int l, const double *phi, History *to) {
  const HistoryRows *rows = history_rows(from), *copy = history_rows(to);
  const size_t cell = history_rows_cell(rows, run, l);
  history_rows_add(to, 0, 1, phi, rows->rewards[cell]);
  copy->counts[history_rows_cell(copy, 0, copy->length[0] - 1)] = rows->counts[cell];
}

void history_rows_finish(const History *from, int run, History *to) {
  history_rows(to)->discounted = history_rows(from)->discounted;
  history_rows(to)->excess[0] = history_rows(from)->excess[run];
  to->content->observations[0] = history_observations(from, run);
  to->rounds = from->rounds;
  to->temper = from->temper;
}

static double history_rows_squares(const History *history, int run) {
  double sum = 0;
  for (int i = 0; i < history->d; i++)
    for (int l = 0; l < history_rows(history)->length[run]; l++) {
      const double x = history_rows_features_of(history, run, l)[i * TILE_LANES];
      sum += x * x;
    }
  return sum;
}

double history_observation(const History *history, int run, int l, size_t stride, double *phi) {
  ASSERT(history->ops == &history_form_rows); /* SamplerOps.by_observation */
  const double *from = history_rows_features_of(history, run, l);
  for (size_t i = 0; i < (size_t)history->d; i++) phi[i * stride] = from[i * TILE_LANES];
  return history_reward_of(history, run, l);
}

bool history_rows_are_single(const History *history) {
  return history->ops == &history_form_rows && history->temper == 1 && !history_rows(history)->discounted;
}

double history_excess(const HistoryView *view, int lane) {
  const HistoryRows *rows = history_rows(view->history);
  return 0.5 * view->history->temper * rows->excess[(view->first + lane) / view->draws];
}

History history_since(const History *history, int row) {
  History view = *history;
  ASSERT(history->ops == &history_form_rows && row >= 0 && row <= history->rounds);
  view.skipped = row;
  return view;
}

const HistoryOps history_form_rows = {.size = sizeof(HistoryRows),
                                      .reserve = history_rows_reserve,
                                      .append = history_rows_append,
                                      .clear = history_rows_clear,
                                      .copy_run = history_rows_copy_run,
                                      .discount = history_rows_discount,
                                      .squares = history_rows_squares,
                                      .log_likelihood = history_passes_log_likelihood};

/* ---- arms as rows: one row represents all observations of an arm */

typedef struct {
  HistoryRows rows;
  int *row; /* [B, K]: 1 + the row of an arm; 0: none */
} Arms;

static size_t history_arm_places(const History *history) {
  return (size_t)history->runs * (size_t)history->content->arms;
}

static Status history_arms_reserve(History *history, int rounds) {
  const int arms = history->content->arms;
  ALLOCATE(history->memory, ((Arms *)history->content)->row, history_arm_places(history));
  return history_rows_reserve(history, arms < rounds ? arms : rounds);
}

static void history_arms_clear(History *history) {
  const Arms *self = (Arms *)history->content;
  memset(self->row, 0, history_arm_places(history) * sizeof *self->row);
  history_rows_clear(history);
}

/* Returns the deviance of a reward; only the part that does not depend on theta matters. */
static double history_reward_deviance(const Likelihood *likelihood, double y) {
  double deviance, nothing = 0;
  likelihood->ops->deviance(likelihood, 1, &y, &nothing, &deviance);
  return deviance;
}

/* Appends to the rows of arms that were seen before: the log likelihood is linear in the reward but for terms
 * without theta. */
static void history_arms_append(History *history, const int *arm, const double *phi, const double *y) {
  const Arms *self = (Arms *)history->content;
  const HistoryRows *rows = &self->rows;
  for (int n = 0; n < history->runs; n++) {
    if (arm[n] < 0) continue;
    int *row = &self->row[(size_t)n * (size_t)rows->common.arms + (size_t)arm[n]];
    if (*row == 0) {
      history_rows_add(history, n, (size_t)history->runs, phi + n, y[n]);
      *row = rows->length[n];
      continue;
    }
    const size_t cell = history_row(rows, n / TILE_LANES, *row - 1) * TILE_LANES + (size_t)(n % TILE_LANES);
    const double count = rows->counts[cell]++, before = rows->rewards[cell];
    const double mean = rows->rewards[cell] += (y[n] - before) / (count + 1);
    rows->excess[n] += history_reward_deviance(history->likelihood, y[n]) +
                       count * history_reward_deviance(history->likelihood, before) -
                       (count + 1) * history_reward_deviance(history->likelihood, mean);
  }
}

const HistoryOps history_form_arms = {.size = sizeof(Arms),
                                      .reserve = history_arms_reserve,
                                      .append = history_arms_append,
                                      .clear = history_arms_clear,
                                      .discount = history_rows_discount,
                                      .log_likelihood = history_passes_log_likelihood};

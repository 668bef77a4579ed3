/* Rows of neighbouring runs side by side, a row for each observation; and what history_arms.c shares. */
#include "model/history_internal.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static int strips(const History *history) { return (history->runs + HISTORY_STRIP - 1) / HISTORY_STRIP; }

/* A strip has as many rows as its longest run, so all of them together have no more than there are
 * observations; and each can waste most of one page. */
Status history_rows_reserve(History *history, int rows) {
  HistoryRows *self = history_rows(history);
  const int count = strips(history);
  const int64_t strip_pages = ((int64_t)rows + HISTORY_PAGE - 1) / HISTORY_PAGE;
  const int64_t observations = (int64_t)rows * history->each_round;
  int64_t pages = observations / HISTORY_PAGE + count;
  if (pages > count * strip_pages) pages = count * strip_pages;
  if (pages > INT_MAX)
    return status_set(STATUS_INPUT, "%d rows for each of %d runs are too many for one block", rows,
                      history->runs);
  const size_t cells = (size_t)pages * HISTORY_PAGE * HISTORY_STRIP;
  HISTORY_NEW(history, self->page, (size_t)count * (size_t)strip_pages);
  HISTORY_NEW(history, self->filled, count);
  HISTORY_NEW(history, self->length, history->runs);
  HISTORY_NEW(history, self->features, cells * (size_t)history->d);
  HISTORY_NEW(history, self->rewards, cells);
  HISTORY_NEW(history, self->counts, cells);
  HISTORY_NEW(history, self->longest, history->runs);
  HISTORY_NEW(history, self->excess, history->runs);
  self->capacity = rows;
  self->strip_pages = (int)strip_pages;
  self->pages = (int)pages;
  return STATUS_OK;
}

void history_rows_clear(History *history) {
  HistoryRows *self = history_rows(history);
  const size_t runs = (size_t)history->runs, cells = (size_t)self->used * HISTORY_PAGE * HISTORY_STRIP;
  memset(self->filled, 0, (size_t)strips(history) * sizeof *self->filled);
  memset(self->length, 0, runs * sizeof *self->length);
  memset(self->longest, 0, runs * sizeof *self->longest);
  memset(self->excess, 0, runs * sizeof *self->excess);
  memset(self->features, 0, cells * (size_t)history->d * sizeof *self->features);
  memset(self->rewards, 0, cells * sizeof *self->rewards);
  memset(self->counts, 0, cells * sizeof *self->counts);
  self->used = 0;
}

/* Row l of a run can be written: its strip has the page. */
static void open_row(HistoryRows *self, int run, int l) {
  const int strip = run / HISTORY_STRIP;
  ASSERT(l < self->capacity);
  if (l < self->filled[strip]) return;
  ASSERT(l == self->filled[strip]);
  if (l % HISTORY_PAGE == 0) {
    ASSERT(self->used < self->pages);
    self->page[(size_t)strip * (size_t)self->strip_pages + (size_t)(l / HISTORY_PAGE)] = self->used++;
  }
  self->filled[strip]++;
}

void history_rows_add(const History *history, int run, size_t stride, const double *phi, double y) {
  HistoryRows *self = history_rows(history);
  const size_t d = (size_t)history->d, lane = (size_t)(run % HISTORY_STRIP);
  double square = 0;
  open_row(self, run, self->length[run]);
  const size_t row = history_row(self, run / HISTORY_STRIP, self->length[run]++);
  for (size_t i = 0; i < d; i++) {
    double x = self->features[(row * d + i) * HISTORY_STRIP + lane] = phi[i * stride];
    square += x * x;
  }
  self->rewards[row * HISTORY_STRIP + lane] = y;
  self->counts[row * HISTORY_STRIP + lane] = 1;
  self->longest[run] = fmax(self->longest[run], sqrt(square));
}

static void rows_append(History *history, const int *arm, const double *phi, const double *y) {
  const int *run = history_latest(history), count = history->each_round;
  (void)arm;
  for (int m = 0; m < count; m++) history_rows_add(history, run[m], (size_t)count, phi + m, y[m]);
}

/* phi[d] of observation l of a run, entries STRIP apart. */
static const double *features_of(const History *history, int run, int l) {
  const HistoryRows *self = history_rows(history);
  const size_t row = history_row(self, run / HISTORY_STRIP, l);
  return self->features + row * (size_t)history->d * HISTORY_STRIP + run % HISTORY_STRIP;
}

static double reward_of(const History *history, int run, int l) {
  const HistoryRows *self = history_rows(history);
  return self
      ->rewards[history_row(self, run / HISTORY_STRIP, l) * HISTORY_STRIP + (size_t)(run % HISTORY_STRIP)];
}

static void rows_copy_run(const History *from, int m, History *to, int n) {
  for (int l = 0; l < history_rows(from)->length[m]; l++)
    history_rows_add(to, n, HISTORY_STRIP, features_of(from, m, l), reward_of(from, m, l));
}

static double rows_squares(const History *history, int run) {
  double sum = 0;
  for (int i = 0; i < history->d; i++)
    for (int l = 0; l < history_rows(history)->length[run]; l++) {
      const double x = features_of(history, run, l)[i * HISTORY_STRIP];
      sum += x * x;
    }
  return sum;
}

double history_observation(const History *history, int run, int l, size_t stride, double *phi) {
  ASSERT(history->ops == &history_form_rows); /* SamplerOps.by_observation */
  const double *from = features_of(history, run, l);
  for (size_t i = 0; i < (size_t)history->d; i++) phi[i * stride] = from[i * HISTORY_STRIP];
  return reward_of(history, run, l);
}

History history_since(const History *history, int row) {
  History view = *history;
  ASSERT(history->ops == &history_form_rows && row >= 0 && row <= history->rounds);
  view.skipped = row;
  return view;
}

const HistoryOps history_form_rows = {.size = sizeof(HistoryRows),
                                      .reserve = history_rows_reserve,
                                      .append = rows_append,
                                      .clear = history_rows_clear,
                                      .copy_run = rows_copy_run,
                                      .squares = rows_squares};

/* Arms as rows: if the arms do not change, one row represents all observations of an arm. */
#include "model/history/history_internal.h"

#include <string.h>

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

/* Adds one more observation to a row. The log likelihood is linear in the reward but for terms without
 * theta. */
static void history_add_to_row(const History *history, int run, int l, double y) {
  HistoryRows *rows = history_rows(history);
  const size_t lane = (size_t)(run % TILE_LANES);
  const size_t cell = history_row(rows, run / TILE_LANES, l) * TILE_LANES + lane;
  const double count = rows->counts[cell]++, before = rows->rewards[cell];
  const double mean = rows->rewards[cell] += (y - before) / (count + 1);
  rows->excess[run] += history_reward_deviance(history->likelihood, y) +
                       count * history_reward_deviance(history->likelihood, before) -
                       (count + 1) * history_reward_deviance(history->likelihood, mean);
}

static void history_arms_append(History *history, const int *arm, const double *phi, const double *y) {
  const Arms *self = (Arms *)history->content;
  const int runs = history->runs;
  for (int n = 0; n < runs; n++) {
    if (arm[n] < 0) continue;
    int *row = &self->row[(size_t)n * (size_t)self->rows.common.arms + (size_t)arm[n]];
    if (*row) {
      history_add_to_row(history, n, *row - 1, y[n]);
    } else {
      history_rows_add(history, n, (size_t)runs, phi + n, y[n]);
      *row = self->rows.length[n];
    }
  }
}

const HistoryOps history_form_arms = {.size = sizeof(Arms),
                                      .reserve = history_arms_reserve,
                                      .append = history_arms_append,
                                      .clear = history_arms_clear,
                                      .discount = history_rows_discount};

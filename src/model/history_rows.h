/* Single observations of a history that keeps rows (the layout is that of model/history.h), for what needs
 * them one by one. Run and observation count from 0. */
#ifndef MODEL_HISTORY_ROWS_H
#define MODEL_HISTORY_ROWS_H

#include "model/history.h"

/* Coordinate i of phi. */
static inline double rows_feature(const History *history, int run, int observation, int i) {
  ASSERT(!history->arms); /* SamplerOps.by_observation */
  const size_t row = history_row(history, run / HISTORY_STRIP, observation);
  return history
      ->features[(row * (size_t)history->d + (size_t)i) * HISTORY_STRIP + (size_t)(run % HISTORY_STRIP)];
}

static inline double rows_reward(const History *history, int run, int observation) {
  ASSERT(!history->arms);
  const size_t row = history_row(history, run / HISTORY_STRIP, observation);
  return history->rewards[row * HISTORY_STRIP + (size_t)(run % HISTORY_STRIP)];
}

#endif

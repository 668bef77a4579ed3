/* Which rounds are new to a sampler that carries its state from round to round.
 *
 * The state of B runs is reset when a history is shorter than the last one seen, or has a different number of
 * runs. Observations that the sampler was not notified of one by one are caught up with at its next draw: by
 * one update each, at most CATCH_UP_MOST, all with the evidence that the history has by then. */
#pragma once

#include "sampler/sampler.h"

enum { CATCH_UP_MOST = 1000 };

typedef struct {
  int runs, rounds; /* of the history last seen; 0 runs: none yet */
} CatchUp;

/* Sets the state to that before the first observation, for this many runs. */
typedef void (*CatchUpBegin)(Sampler *sampler, int runs);
/* Makes the update of one round = 1, 2, .., history->rounds. */
typedef void (*CatchUpUpdate)(Sampler *sampler, const History *history, int round, int64_t *fallbacks);

/* Catches up with the history in at most `most` updates. Every run must have an observation in every new
 * round, unless only one round is new. */
void catch_up_history(Sampler *sampler, CatchUp *catch_up, int most, CatchUpBegin begin, CatchUpUpdate update,
                      const History *history, int64_t *fallbacks);

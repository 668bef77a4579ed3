/* Samplers that carry a state from round to round: which rounds are new to them.
 *
 * The state of B runs begins again when a history is shorter than the one last seen, or has another number of
 * runs. Observations that the sampler was not notified of one by one are caught up with when it is next drawn
 * from: one update for each of them, CATCH_UP_MOST at most, with the evidence that the history has by
 * then. */
#pragma once

#include "sampler/sampler.h"

enum { CATCH_UP_MOST = 1000 };

typedef struct {
  int runs, rounds; /* of the history last seen; 0 runs: none yet */
} CatchUp;

/* The state before the first observation, for this many runs. */
typedef void (*CatchUpBegin)(Sampler *sampler, int runs);
/* The update of one round = 1, 2, .., history->rounds. */
typedef void (*CatchUpUpdate)(Sampler *sampler, const History *history, int round, int64_t *fallbacks);

/* Catches up with the history in `most` updates at most. Every run has an observation in every round that
 * is new, unless just one is. */
void catch_up_history(Sampler *sampler, CatchUp *catch_up, int most, CatchUpBegin begin, CatchUpUpdate update,
                      const History *history, int64_t *fallbacks);

/* Returns the streams of the updates of a round: lanes first .. of `draws` for each run. */
RngLanes catch_up_streams(const Sampler *sampler, int round, int draws, int first, int lanes);

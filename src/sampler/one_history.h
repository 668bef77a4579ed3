/* Wide chunks of draws of one history: where each call of a chain has a price, a chunk has as many lanes as
 * the chain takes, and a matrix for each of them would not fit into any cache. Gaussian evidence is then used
 * in the r directions that it has (history_subspace.h), which all lanes share. */
#pragma once

#include "model/history/history_subspace.h"
#include "sampler/sampler.h"

/* The evidence of a chunk, n <= lanes. */
typedef struct {
  Subspace seen;
  double *along, *other; /* [r, n] */
} OneHistory;

/* Returns whether a sampler should use this. */
static inline bool one_history_fits(const SamplerSetup *setup) {
  return setup->prior->chain->lanes > CHUNK_LANES && setup->draws >= CHUNK_LANES &&
         likelihood_is_conjugate(setup->likelihood);
}

/* Returns the most lanes that a chunk can have. */
static inline int one_history_lanes(const SamplerSetup *setup) {
  return one_history_fits(setup) ? setup->draws : setup->runs * setup->draws;
}

/* Finds the evidence of a view of lanes of one run, in its coordinates. Errors: STATUS_INTERNAL. */
static inline Status one_history_find(Arena *memory, const HistoryView *view, OneHistory *out) {
  const HistoryView in_theta = history_view(view->history, 1, view->first / view->draws, 1),
                    one = history_view_in(in_theta, view->shift, view->scale);
  TRY(history_subspace_find(memory, &one, &out->seen));
  const size_t numbers = (size_t)out->seen.rank * (size_t)view->lanes;
  ALLOCATE_ARRAYS(memory, numbers, &out->along, &out->other);
  return STATUS_OK;
}

/* Twisted particles as one cloud: N particles that yield all M draws of one history. */
#pragma once

#include "model/denoiser/denoiser_chain.h"
#include "model/history/history_subspace.h"
#include "sampler/draw_notes.h"

enum { CLOUD_LEAST = 2000 /* particles, if their number is auto */, CLOUD_FROM = 100 /* draws, likewise */ };

/* The posterior, in the coordinates of the chain. */
typedef struct {
  const Chain *chain;
  const Subspace *seen;
  /* One lane of what is observed of h = V' x_0 or, by a function (cloud_functions.c), of x_0 itself; no
   * history: `seen` has all of it. */
  HistoryView rows;
  const double *mean, *variance; /* [d]: of the prior */
  int particles; /* N */
} CloudTarget;

/* Finds the directions of a likelihood that is known by a function, in a view of one lane in the coordinates
 * of the chain: mean[d] and variance[d] are the prior's. */
Status cloud_functions_find(Arena *memory, const HistoryView *view, const double *mean,
                            const double *variance, Rng *rng, Subspace *out);
/* Draws z[d, M] from the streams of the M draws of one run. A chain state that leaves the guard of chains and
 * a matrix that had to be repaired add one to *fallbacks each. Returns STATUS_INTERNAL without memory. */
Status cloud_draw(const CloudTarget *target, RngLanes rng, double *z, DrawNotes *notes, int64_t *fallbacks);

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
  const History
      *rows; /* observations of V' (x_0 + shift / scale) of the chain; NULL: `seen` has all of them */
  const double *rows_shift; /* [r]: V' shift / scale */
  const double *mean, *variance; /* [d]: of the prior */
  int particles; /* N */
} CloudTarget;

/* Draws z[d, M] from the streams of the M draws of one run. A chain state that leaves the guard of chains and
 * a matrix that had to be repaired add one to *fallbacks each. Returns STATUS_INTERNAL without memory. */
Status cloud_draw(const CloudTarget *target, RngLanes rng, double *z, DrawNotes *notes, int64_t *fallbacks);

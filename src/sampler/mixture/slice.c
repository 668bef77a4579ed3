#include "sampler/mixture/slice.h"

#include "core/linalg/linalg.h"
#include "core/tiling.h"

#include <math.h>
#include <string.h>

/* Most points of an ellipse that are tried in a step: the bracket halves on average, and is empty long before
 * that. */
enum { TRIALS = 64 };

Status slice_create(Arena *memory, int d, Slice *out) {
  const size_t n = CHUNK_LANES, vector = (size_t)d * n;
  *out = (Slice){.d = d};
  ALLOCATE_ARRAYS(memory, vector, &out->e, &out->across, &out->trial, &out->point);
  ALLOCATE(memory, out->normal, 2 * vector + SLICE_FREEDOM * n);
  ALLOCATE(memory, out->uniform, 3 * n);
  ALLOCATE_ARRAYS(memory, n, &out->density, &out->level, &out->log_ratio, &out->angle, &out->low, &out->high);
  ALLOCATE_ARRAYS(memory, n, &out->left, &out->tried);
  return STATUS_OK;
}

/* Returns |e|^2 of lane n. */
static double slice_square(const Slice *self, const double *e, int lanes, int n) {
  double square = 0;
  for (int i = 0; i < self->d; i++) square += e[i * lanes + n] * e[i * lanes + n];
  return square;
}

/* Computes e = L' theta - w. */
static void slice_whiten(Slice *self, int lanes, const double *factor, const double *whitened,
                         const double *theta) {
  for (int i = 0; i < self->d; i++)
    for (int n = 0; n < lanes; n++) {
      double sum = -whitened[i * lanes + n];
      for (int j = i; j < self->d; j++) sum += factor[(j * self->d + i) * lanes + n] * theta[j * lanes + n];
      self->e[i * lanes + n] = sum;
    }
}

/* Computes point[d, lanes] and the log density[lanes] of the target over the Student distribution at e[d,
 * lanes]. */
static void slice_evaluate(Slice *self, int lanes, const double *factor, const double *whitened,
                           SliceRatio *ratio, void *context, const double *e) {
  for (int i = 0; i < self->d * lanes; i++) self->point[i] = whitened[i] + e[i];
  linalg_factor_backward(self->d, lanes, factor, self->point);
  ratio(context, lanes, self->point, self->log_ratio);
  for (int n = 0; n < lanes; n++) {
    const double square = slice_square(self, e, lanes, n);
    self->log_ratio[n] += 0.5 * ((self->d + SLICE_FREEDOM) * log1p(square / SLICE_FREEDOM) - square);
  }
}

/* Draws the ellipse, the level and the first angle of a step of lane n. */
static void slice_begin_step(Slice *self, int lanes, int n) {
  const int d = self->d;
  const double *across = self->normal, *others = self->normal + d * lanes;
  double freedom = 0;
  for (int k = 0; k < d + SLICE_FREEDOM; k++) freedom += others[k * lanes + n] * others[k * lanes + n];
  const double scale = sqrt((SLICE_FREEDOM + slice_square(self, self->e, lanes, n)) / freedom);
  for (int i = n; i < d * lanes; i += lanes) self->across[i] = scale * across[i];
  self->level[n] = self->density[n] + log(self->uniform[n]);
  self->angle[n] = self->high[n] = 2 * M_PI * self->uniform[lanes + n];
  self->low[n] = self->high[n] - 2 * M_PI;
  self->tried[n] = 0;
}

/* Makes the points of the ellipses at the present angles the trial. */
static void slice_set_trial(Slice *self, int lanes) {
  for (int n = 0; n < lanes; n++) {
    const double along = cos(self->angle[n]), across = sin(self->angle[n]);
    for (int i = n; i < self->d * lanes; i += lanes)
      self->trial[i] = along * self->e[i] + across * self->across[i];
  }
}

/* Ends the step of lane n at its trial if that is above the level, and otherwise shrinks the bracket. */
static void slice_judge_trial(Slice *self, int lanes, int n) {
  const double share = self->uniform[2 * lanes + n];
  const bool accepted = self->log_ratio[n] > self->level[n];
  self->tried[n]++;
  if (accepted || self->tried[n] == TRIALS) self->left[n]--;
  if (accepted) {
    for (int i = n; i < self->d * lanes; i += lanes) self->e[i] = self->trial[i];
    self->density[n] = self->log_ratio[n];
    self->tried[n] = TRIALS;
    return;
  }
  *(self->angle[n] < 0 ? &self->low[n] : &self->high[n]) = self->angle[n];
  self->angle[n] = self->low[n] + share * (self->high[n] - self->low[n]);
}

void slice_move(Slice *self, int lanes, const double *factor, const double *whitened, const bool *moves,
                int steps, RngLanes rng, SliceRatio *ratio, void *context, double *theta) {
  int moving = 0;
  slice_whiten(self, lanes, factor, whitened, theta);
  slice_evaluate(self, lanes, factor, whitened, ratio, context, self->e);
  memcpy(self->density, self->log_ratio, (size_t)lanes * sizeof *self->density);
  for (int n = 0; n < lanes; n++) {
    self->left[n] = moves[n] ? steps : 0;
    self->tried[n] = TRIALS;
    self->angle[n] = 0;
    moving += moves[n];
  }
  while (moving > 0) {
    rng_lanes_normal(&rng, 2 * self->d + SLICE_FREEDOM, self->normal);
    rng_lanes_uniform(&rng, 3, self->uniform);
    for (int n = 0; n < lanes; n++)
      if (self->left[n] > 0 && self->tried[n] == TRIALS) slice_begin_step(self, lanes, n);
    slice_set_trial(self, lanes);
    slice_evaluate(self, lanes, factor, whitened, ratio, context, self->trial);
    moving = 0;
    for (int n = 0; n < lanes; n++) {
      if (self->left[n] > 0) slice_judge_trial(self, lanes, n);
      moving += self->left[n] > 0;
    }
  }
  for (int i = 0; i < self->d * lanes; i++) self->point[i] = whitened[i] + self->e[i];
  linalg_factor_backward(self->d, lanes, factor, self->point);
  for (int n = 0; n < lanes; n++)
    for (int i = n; i < self->d * lanes && moves[n]; i += lanes) theta[i] = self->point[i];
}

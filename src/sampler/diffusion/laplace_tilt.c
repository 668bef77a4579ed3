#include "sampler/diffusion/laplace_tilt.h"

#include "core/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Status laplace_tilt_create(Arena *memory, int d, LaplaceTilt *out) {
  ALLOCATE(memory, out->held, (size_t)d * CHUNK_LANES);
  return STATUS_OK;
}

/* abar_0 = 1: stage 0 always has room for the evidence. */
static int start_of(const Schedule *schedule, const LaplaceEvidence *evidence, int n) {
  double largest = 0;
  int t = schedule->stages;
  for (int i = 0; i < evidence->d; i++)
    largest = fmax(largest, evidence->eigenvalue[i * evidence->lanes + n]);
  while ((1 - schedule->alpha_bar[t]) * largest >= schedule->alpha_bar[t]) t--;
  return t;
}

void laplace_tilt_begin(LaplaceTilt *tilt, const Schedule *schedule, LaplaceEvidence *evidence) {
  tilt->first = 0;
  for (int n = 0; n < evidence->lanes; n++) {
    int t = tilt->start[n] = start_of(schedule, evidence, n);
    double alpha_bar = schedule->alpha_bar[t];
    if (t > tilt->first) tilt->first = t;
    for (int i = 0; i < evidence->d; i++) {
      double *l = &evidence->eigenvalue[i * evidence->lanes + n], room = alpha_bar - (1 - alpha_bar) * *l;
      *l /= room;
      evidence->rotated[i * evidence->lanes + n] *= sqrt(alpha_bar) / room;
    }
  }
}

void laplace_tilt_started(LaplaceTilt *tilt, const double *s, LaplaceEvidence *evidence) {
  const size_t bytes = (size_t)(evidence->d * evidence->lanes) * sizeof *s;
  memcpy(tilt->held, s, bytes);
  memset(evidence->eigenvalue, 0, bytes);
  memset(evidence->rotated, 0, bytes);
}

void laplace_tilt_hold(const LaplaceTilt *tilt, int t, int d, int lanes, double *s) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      if (tilt->start[n] < t) s[i * lanes + n] = tilt->held[i * lanes + n];
}

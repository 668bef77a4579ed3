#include "sampler/tilt_reverse.h"

#include "core/memory.h"
#include "sampler/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Status tilt_reverse_create(const SamplerSetup *setup, bool exponential, TiltReverse *out) {
  const size_t vector = (size_t)setup->prior->d * CHUNK_LANES;
  *out = (TiltReverse){.chain = setup->prior->chain, .exponential = exponential};
  NEW(out->lane, CHUNK_LANES);
  NEW(out->rescues, CHUNK_LANES);
  NEW(out->z, vector);
  NEW(out->s, vector);
  NEW(out->normal, vector);
  NEW(out->eps, vector);
  TRY(joint_chain_create(setup, false, CHUNK_LANES, &out->moments));
  return history_create(setup->prior->d, CHUNK_LANES, setup->likelihood, &out->none);
}

void tilt_reverse_destroy(TiltReverse *self) {
  joint_chain_destroy(&self->moments);
  history_destroy(&self->none);
  free(self->lane);
  free(self->rescues);
  free(self->z);
  free(self->s);
  free(self->normal);
  free(self->eps);
}

/* e^h = 1 / sqrt(alpha_t), e^2h - 1 = beta_t / alpha_t. */
static void step_exponential(TiltReverse *self, int t, int count) {
  const Schedule *schedule = &self->chain->schedule;
  const double growth = 1 / sqrt(schedule->alpha[t]);
  const double of_noise = -2 * (growth - 1) / sqrt(1 - schedule->alpha_bar[t]);
  const double deviation = sqrt(schedule->beta[t] / schedule->alpha[t]);
  self->chain->noise(self->chain, t, count, self->s, self->eps);
  for (int k = 0; k < self->chain->d * count; k++)
    self->s[k] = growth * self->s[k] + of_noise * self->eps[k] + deviation * self->normal[k];
}

static void step_moments(TiltReverse *self, int t, int count) {
  const size_t size = (size_t)(self->chain->d * count) * sizeof *self->s;
  const HistoryView view = {&self->none, 1, 0, count, NULL, NULL};
  joint_chain_begin(&self->moments, &view);
  memcpy(self->moments.s, self->s, size);
  joint_chain_condition(&self->moments, t, self->rescues);
  joint_chain_draw(&self->moments, t, self->normal, NULL, self->rescues);
  memcpy(self->s, self->moments.s, size);
}

void tilt_reverse_stage(TiltReverse *self, int t, int count) {
  memset(self->rescues, 0, CHUNK_LANES * sizeof *self->rescues);
  if (self->exponential)
    step_exponential(self, t, count);
  else
    step_moments(self, t, count);
}

/* From s_t to s_{t-1} for all lanes that have come to stage t. */
static void take_stage(TiltReverse *self, const Chunk *chunk, uint32_t position, int t, const int *stage,
                       double *s, int64_t *fallbacks) {
  const int d = self->chain->d, lanes = chunk->lanes;
  RngLanes rng = chunk->rng;
  int count = 0;
  for (int n = 0; n < lanes; n++)
    if (stage[n] >= t) self->lane[count++] = n;
  if (count == 0) return;
  rng.position = position + (uint32_t)t * ((uint32_t)(d + 1) / 2);
  rng_lanes_normal(&rng, d, self->z);
  lanes_gather(d, lanes, count, self->lane, self->z, self->normal);
  lanes_gather(d, lanes, count, self->lane, s, self->s);
  tilt_reverse_stage(self, t, count);
  lanes_scatter(d, lanes, count, self->lane, self->s, s);
  for (int m = 0; m < count; m++)
    fallbacks[(chunk->first + self->lane[m]) / (int)chunk->rng.draws] += self->rescues[m];
  chunk_guard(chunk, d, s, fallbacks);
}

/* The clean sample given s_t of the lanes that start at stage t. */
static void draw_clean(TiltReverse *self, const Chunk *chunk, uint32_t position, int t, const int *stage,
                       double *s) {
  const int d = self->chain->d, lanes = chunk->lanes;
  RngLanes rng = chunk->rng;
  int count = 0;
  for (int n = 0; n < lanes; n++)
    if (stage[n] == t) self->lane[count++] = n;
  if (count == 0) return;
  rng.position = position;
  rng_lanes_uniform(&rng, d, self->z);
  lanes_gather(d, lanes, count, self->lane, self->z, self->normal);
  lanes_gather(d, lanes, count, self->lane, s, self->s);
  self->chain->clean(self->chain, t, count, self->s, self->normal, self->eps);
  lanes_scatter(d, lanes, count, self->lane, self->eps, s);
}

void tilt_reverse_run(TiltReverse *self, const Chunk *chunk, uint32_t position, const int *stage, double *s,
                      int64_t *fallbacks) {
  for (int t = self->chain->schedule.stages; t >= 1; t--) {
    if (self->chain->clean)
      draw_clean(self, chunk, position, t, stage, s);
    else
      take_stage(self, chunk, position, t, stage, s, fallbacks);
  }
}

#include "sampler/check/draws_check.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "sampler/check/spread.h"
#include "sampler/mixture/mixture_posterior.h"

#include <math.h>

struct DrawsCheck {
  const Sampler *sampler;
  MixturePosterior *posterior;
  double *start; /* [d], mean of the prior */
  double *mean, *factor; /* [d, B], [d, d, B]: m; S, then L */
  double *from, *e; /* [d, B], where u points; [d, B], e of one draw of each run */
  double *offset, *square; /* [B], sums over draws */
  int *jitters; /* [B] */
  int64_t *fallbacks; /* [B], of the moments; they are ignored */
  int64_t draws; /* draws of each run, over all rounds */
};

Status draws_check_create(Arena *memory, const Sampler *sampler, const History *history, DrawsCheck **out) {
  const Mixture *prior = sampler->setup.prior ? sampler->setup.prior->mixture : NULL;
  const MixtureOptions options = {.candidates = 1, .forgets = history_is_filtered(history)};
  const size_t d = (size_t)sampler->d, runs = (size_t)history->runs;
  DrawsCheck *self;
  *out = NULL;
  if (!prior || !spread_is_known(sampler)) return STATUS_OK;
  ALLOCATE(memory, self, 1);
  self->sampler = sampler;
  ALLOCATE(memory, self->start, d);
  ALLOCATE_ARRAYS(memory, d * runs, self->mean, self->from, self->e);
  ALLOCATE(memory, self->factor, d * d * runs);
  ALLOCATE_ARRAYS(memory, runs, self->offset, self->square, self->jitters, self->fallbacks);
  for (int c = 0; c < prior->components; c++)
    for (size_t i = 0; i < d; i++) self->start[i] += prior->weight[c] * prior->mean[(size_t)c * d + i];
  *out = self;
  return mixture_posterior_create(memory, prior, history->likelihood, history->runs, options,
                                  &self->posterior);
}

/* Sets x[d, B] <- L^-1 (x - m). */
static void whiten_draws(const DrawsCheck *self, int runs, double *x) {
  const int d = self->sampler->d;
  for (int i = 0; i < d * runs; i++) x[i] -= self->mean[i];
  linalg_forward_lanes(d, runs, self->factor, x);
}

void draws_check_add(DrawsCheck *self, const History *history, int draws, const double *theta) {
  const int d = self->sampler->d, runs = history->runs;
  const History tempered = sampler_tempered(self->sampler, history);
  mixture_posterior_moments(self->posterior, &tempered, 0, self->sampler->setup.prior->mixture->components,
                            self->mean, self->factor, self->fallbacks);
  linalg_cholesky_lanes(d, runs, self->factor, self->jitters);
  lanes_repeat(d, runs, self->start, self->from);
  whiten_draws(self, runs, self->from);
  for (int k = 0; k < draws; k++) {
    for (int i = 0; i < d * runs; i++) self->e[i] = theta[(size_t)i * (size_t)draws + (size_t)k];
    whiten_draws(self, runs, self->e);
    for (int b = 0; b < runs; b++) {
      double along = 0, length = 0, square = 0;
      for (int i = b; i < d * runs; i += runs) {
        along += self->e[i] * self->from[i];
        length += self->from[i] * self->from[i];
        square += self->e[i] * self->e[i];
      }
      self->offset[b] -= length > 0 ? along / sqrt(length) : 0;
      self->square[b] += square / d;
    }
  }
  self->draws += draws;
}

void draws_check_means(const DrawsCheck *self, int runs, double *offset, double *spread) {
  for (int b = 0; b < runs; b++) {
    offset[b] = self->offset[b] / (double)self->draws;
    spread[b] = self->square[b] / (double)self->draws;
  }
}

#include "sampler/check/draws_check.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "sampler/check/spread.h"
#include "sampler/mixture/mixture_posterior.h"

#include <math.h>
#include <string.h>

enum { JUDGES = 32 };

struct DrawsCheck {
  const Sampler *sampler;
  MixturePosterior *posterior;
  MixturePosterior *judge; /* of a likelihood that is not conjugate; NULL if histories forget */
  double *judges; /* [d, B JUDGES]: its draws */
  double *start; /* [d], mean of the prior */
  double *mean, *factor; /* [d, B], [d, d, B]: m; S, then L */
  double *from, *e; /* [d, B], where u points; [d, B], e of one draw of each run */
  double *offset, *square; /* [B], sums over draws */
  int *jitters; /* [B] */
  int64_t *fallbacks; /* [B], of the moments: they are not to be trusted */
  int64_t *ignored; /* [B], of the judges */
  double *centre, *width, *norm; /* [B]: mean and deviation of u' e, and mean of |e|^2, in the posterior */
  int64_t *draws; /* [B]: checked draws, over all rounds */
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
  ALLOCATE_ARRAYS(memory, d * runs, &self->mean, &self->from, &self->e);
  ALLOCATE(memory, self->factor, d * d * runs);
  ALLOCATE_ARRAYS(memory, runs, &self->offset, &self->square, &self->centre, &self->width, &self->norm);
  ALLOCATE(memory, self->jitters, runs);
  ALLOCATE_ARRAYS(memory, runs, &self->fallbacks, &self->ignored, &self->draws);
  for (int c = 0; c < prior->components; c++)
    for (size_t i = 0; i < d; i++) self->start[i] += prior->weight[c] * prior->mean[(size_t)c * d + i];
  *out = self;
  if (mixture_posterior_has_steps(history)) {
    ALLOCATE(memory, self->judges, d * runs * JUDGES);
    TRY(mixture_posterior_create(memory, prior, history->likelihood, history->runs,
                                 mixture_posterior_options(NULL), &self->judge));
  }
  return mixture_posterior_create(memory, prior, history->likelihood, history->runs, options,
                                  &self->posterior);
}

/* Sets x[d, B] <- L^-1 (x - m). */
static void whiten_draws(const DrawsCheck *self, int runs, double *x) {
  const int d = self->sampler->d;
  for (int i = 0; i < d * runs; i++) x[i] -= self->mean[i];
  linalg_factor_forward(d, runs, self->factor, x);
}

/* Sets e[d, B] <- L^-1 (theta - m) of draw k of each run, of theta[d, B M]. */
static void take_draw(DrawsCheck *self, int runs, int draws, int k, const double *theta) {
  for (int i = 0; i < self->sampler->d * runs; i++) self->e[i] = theta[(size_t)i * (size_t)draws + (size_t)k];
  whiten_draws(self, runs, self->e);
}

/* Returns u' e of run b, and *square = |e|^2. */
static double measure_draw(const DrawsCheck *self, int runs, int b, double *square) {
  double along = 0, length = 0;
  *square = 0;
  for (int i = b; i < self->sampler->d * runs; i += runs) {
    along += self->e[i] * self->from[i];
    length += self->from[i] * self->from[i];
    *square += self->e[i] * self->e[i];
  }
  return length > 0 ? -along / sqrt(length) : 0;
}

/* Finds what u' e and |e|^2 are in the posterior of the runs whose moments are not to be trusted, by draws.
 */
static void ask_judges(DrawsCheck *self, const History *history) {
  const int runs = history->runs;
  const SamplerSetup *setup = &self->sampler->setup;
  const RngLanes rng =
      rng_lanes(rng_key(setup->seed, RNG_JUDGE), setup->first_run, runs, JUDGES, (uint32_t)history->rounds);
  mixture_posterior_sample(self->judge, history, rng, JUDGES, self->judges, NULL, self->ignored);
  for (int b = 0; b < runs; b++)
    if (self->fallbacks[b] > 0) self->centre[b] = self->width[b] = self->norm[b] = 0;
  for (int k = 0; k < JUDGES; k++) {
    take_draw(self, runs, JUDGES, k, self->judges);
    for (int b = 0; b < runs; b++) {
      double square;
      const double along = measure_draw(self, runs, b, &square);
      if (self->fallbacks[b] == 0) continue;
      self->centre[b] += along / JUDGES;
      self->width[b] += along * along / JUDGES;
      self->norm[b] += square / JUDGES;
    }
  }
  for (int b = 0; b < runs; b++)
    if (self->fallbacks[b] > 0) /* rounding can make this negative */
      self->width[b] = sqrt(fmax(self->width[b] - self->centre[b] * self->centre[b], 0));
}

void draws_check_add(DrawsCheck *self, const History *history, int draws, const double *theta) {
  const int d = self->sampler->d, runs = history->runs;
  const History tempered = sampler_tempered(self->sampler, history);
  bool doubted = false;
  memset(self->fallbacks, 0, (size_t)runs * sizeof *self->fallbacks);
  mixture_posterior_moments(self->posterior, &tempered, 0, self->sampler->setup.prior->mixture->components,
                            self->mean, self->factor, self->fallbacks);
  linalg_factor_cholesky(d, runs, self->factor, self->jitters);
  lanes_repeat(d, runs, self->start, self->from);
  whiten_draws(self, runs, self->from);
  for (int b = 0; b < runs; b++) {
    self->centre[b] = 0;
    self->width[b] = 1;
    self->norm[b] = d;
    doubted = doubted || self->fallbacks[b] > 0;
  }
  if (doubted && self->judge) ask_judges(self, &tempered);
  for (int k = 0; k < draws; k++) {
    take_draw(self, runs, draws, k, theta);
    for (int b = 0; b < runs; b++) {
      double square;
      const double along = measure_draw(self, runs, b, &square);
      if (self->fallbacks[b] > 0 && !self->judge) continue;
      self->offset[b] += self->width[b] > 0 ? (along - self->centre[b]) / self->width[b] : 0;
      self->square[b] += square / self->norm[b];
      self->draws[b]++;
    }
  }
}

void draws_check_means(const DrawsCheck *self, int runs, double *offset, double *spread) {
  for (int b = 0; b < runs; b++) {
    offset[b] = self->offset[b] / (double)self->draws[b];
    spread[b] = self->square[b] / (double)self->draws[b];
  }
}

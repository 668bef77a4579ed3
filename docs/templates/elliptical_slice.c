/* Elliptical slice sampling (Murray, Adams and MacKay 2010): the posterior of a Gaussian prior of mean m from
 * the values of any likelihood, without gradients and without a step size.
 *
 * A step draws w from the prior and a level below the likelihood of theta; theta then becomes a point
 * m + (theta - m) cos a + (w - m) sin a of an ellipse, at an angle a from a bracket that shrinks towards
 * theta until the likelihood reaches the level. Each draw ends a chain that begins with a draw from the
 * prior. */
#include "core/arena.h"
#include "core/chunk.h"
#include "io/config/config_rows.h"
#include "model/history/history_density.h"
#include "sampler/sampler.h"

#include <math.h>

/* Points that a step tries at most; the bracket is empty long before that. A step takes as many random
 * numbers whatever happens, so that no draw depends on those beside it. */
enum { TRIALS = 48 };

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  int steps;
  HistoryDensity likelihood;
  double *theta, *across, *point; /* [d, n]: theta, w, a point of the ellipse */
  double *here, *there, *level; /* [n]: log likelihood of theta and of the point; what it must reach */
  double *angle, *low, *high; /* [n]: a and its bracket */
  double *uniform; /* [TRIALS + 2, n] */
} Elliptical;

static Status elliptical_slice_create(Sampler *sampler, const SamplerSetup *setup) {
  Elliptical *self;
  ALLOCATE(sampler->memory, self, 1);
  sampler->state = self;
  self->steps = (int)config_int(setup->options, "steps");
  ALLOCATE_ARRAYS(sampler->memory, sampler->d * CHUNK_LANES, &self->theta, &self->across, &self->point);
  ALLOCATE_ARRAYS(sampler->memory, CHUNK_LANES, &self->here, &self->there, &self->level, &self->angle,
                  &self->low, &self->high);
  ALLOCATE(sampler->memory, self->uniform, (TRIALS + 2) * CHUNK_LANES);
  return history_density_create(sampler->memory, sampler->d, CHUNK_LANES, setup->likelihood,
                                &self->likelihood);
}

/* Moves every lane by one step. */
static void elliptical_slice_step(Elliptical *self, const Prior *prior, RngLanes *rng) {
  const int d = prior->d, lanes = (int)rng->lanes;
  const double *m = prior->mixture->mean;
  int moving = lanes;
  prior->ops->sample(prior, rng, self->across);
  rng_lanes_uniform(rng, TRIALS + 2, self->uniform);
  for (int n = 0; n < lanes; n++) {
    self->level[n] = self->here[n] + log(self->uniform[n]);
    self->high[n] = 2 * M_PI * self->uniform[lanes + n];
    self->low[n] = self->high[n] - 2 * M_PI;
  }
  for (int trial = 2; trial < TRIALS + 2 && moving > 0; trial++) {
    for (int n = 0; n < lanes; n++)
      self->angle[n] = self->low[n] + (self->high[n] - self->low[n]) * self->uniform[trial * lanes + n];
    for (int i = 0; i < d * lanes; i++) {
      const double centre = m[i / lanes], angle = self->angle[i % lanes];
      self->point[i] =
          centre + (self->theta[i] - centre) * cos(angle) + (self->across[i] - centre) * sin(angle);
    }
    history_density(&self->likelihood, self->point, self->there, NULL);
    for (int n = 0; n < lanes; n++) {
      if (self->there[n] >= self->level[n]) {
        for (int i = n; i < d * lanes; i += lanes) self->theta[i] = self->point[i];
        self->here[n] = self->there[n];
        self->level[n] = INFINITY;
        moving--;
      }
      *(self->angle[n] < 0 ? &self->low[n] : &self->high[n]) = self->angle[n];
    }
  }
}

static void elliptical_slice_sample(Sampler *sampler, const History *history, RngLanes rng, int draws,
                                    double *theta, int64_t *fallbacks) {
  Elliptical *self = sampler->state;
  const Prior *prior = sampler->setup.prior;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = history_view(history, draws, chunk.first, chunk.lanes);
    history_density_at(&self->likelihood, &view, fallbacks);
    prior->ops->sample(prior, &chunk.rng, self->theta);
    history_density(&self->likelihood, self->theta, self->here, NULL);
    for (int k = 0; k < self->steps; k++) elliptical_slice_step(self, prior, &chunk.rng);
    chunk_store(&chunk, sampler->d, self->theta, theta);
  }
}

static const ConfigKey KEYS[] = {{INT("steps", 1, 100000, "100", "steps from the prior to a draw")},
                                 {.name = NULL}};

const SamplerOps sampler_elliptical_slice = {.name = "elliptical_slice",
                                             .summary =
                                                 "the posterior of a Gaussian prior, without gradients",
                                             .reference = "Murray, Adams and MacKay (2010)",
                                             .default_prior = "gaussian",
                                             .needs = NEEDS_GAUSSIAN,
                                             .keys = KEYS,
                                             .create = elliptical_slice_create,
                                             .sample = elliptical_slice_sample};

/* VTS, variational Thompson sampling (Urteaga and Wiggins 2018; VITS paper, Section 1 and Appendix D): each
 * run carries a mixture of mean-field Gaussians q, fitted to the target exp(-U) of potential.h after every
 * observation by steps that raise a lower bound (vts_bound.h), from where the last round left it. A draw is a
 * draw from q.
 *
 * It differs from the paper, where the mixture is the model: rewards of an arm there are a mixture of linear
 * regressions with unknown weights and noise, and variational EM gives each its factors, all arms apart. Here
 * the model is the bandit's own and the mixture is the approximation of its posterior, which is how the VITS
 * paper describes its rival; `posterior: per_arm` keeps the arms apart.
 *
 * The means start as draws from the prior (of one component: at the prior's mean), the variances as those of
 * the prior; before the first observation q is fitted to the prior. Streams of a start are (RNG_OBSERVE, run,
 * round 0, component). A draw uses 1 uniform and d normals of its stream. */
#include "core/arena.h"
#include "sampler/catch_up.h"
#include "sampler/chunk.h"
#include "sampler/cost.h"
#include "sampler/gradient/vts_bound.h"
#include "sampler/gradient/vts_quadratic.h"
#include "sampler/methods.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  Potential potential;
  VtsBound bound;
  VtsQuadratic quadratic;
  CatchUp catch_up;
  int components, steps; /* M */
  bool fitted; /* since `begin` */
  double *weight, *mean, *variance; /* [B, M], [B, M, d], [B, M, d] */
  double *uniform, *normal; /* [n], [d, n] of a chunk */
} Vts;

/* Steps end where the bound rises by no more than this, in nats. */
static const double ENOUGH = 1e-9;

static VtsMixture mixture_of(const Vts *self, int d, int run) {
  const size_t first = (size_t)run * (size_t)self->components;
  return (VtsMixture){self->components, d, self->weight + first, self->mean + first * (size_t)d,
                      self->variance + first * (size_t)d};
}

static void place_means(Sampler *sampler, int run, VtsMixture *q) {
  Vts *self = sampler->state;
  const int d = sampler->d;
  for (int m = 0; m < q->components; m++) {
    RngLanes rng = catch_up_streams(sampler, 0, q->components, run * q->components + m, 1);
    if (q->components > 1)
      self->potential.prior->ops->sample(self->potential.prior, &rng, q->mean + m * d);
    else
      memcpy(q->mean, self->potential.start_mean, (size_t)d * sizeof *q->mean);
  }
}

static void vts_begin(Sampler *sampler, int runs) {
  Vts *self = sampler->state;
  const int d = sampler->d;
  self->fitted = false;
  for (int run = 0; run < runs; run++) {
    VtsMixture q = mixture_of(self, d, run);
    place_means(sampler, run, &q);
    for (int m = 0; m < q.components; m++) {
      q.weight[m] = 1.0 / q.components;
      for (int i = 0; i < d; i++)
        q.variance[m * d + i] = self->potential.start_deviation[i] * self->potential.start_deviation[i];
    }
  }
}

static void vts_fit(Vts *self, VtsMixture *q, int64_t *fallbacks) {
  double before = -INFINITY;
  for (int k = 0; k < self->steps; k++) {
    const double value = vts_bound_step(&self->bound, q, fallbacks);
    if (value - before <= ENOUGH) return;
    before = value;
  }
}

/* The runs of the potential's view. */
static void vts_fit_each(Vts *self, const HistoryView *view, int64_t *fallbacks) {
  for (int run = view->first; run < view->first + view->lanes; run++) {
    VtsMixture q = mixture_of(self, self->potential.d, run);
    vts_bound_at(&self->bound, run);
    vts_fit(self, &q, &fallbacks[run]);
  }
}

static void vts_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Vts *self = sampler->state;
  (void)round;
  for (int first = 0; first < history->runs; first += CHUNK_LANES) {
    const HistoryView view = {history, 1, first, chunk_size(history->runs, first, CHUNK_LANES), NULL, NULL};
    const VtsMixture q = mixture_of(self, sampler->d, first);
    potential_at(&self->potential, &view);
    if (potential_is_quadratic(&self->potential))
      vts_quadratic_fit(&self->quadratic, self->steps, ENOUGH, q.weight, q.mean, q.variance,
                        fallbacks + first);
    else
      vts_fit_each(self, &view, fallbacks);
  }
  self->fitted = true;
}

static void vts_observe(Sampler *sampler, const History *history, int64_t *fallbacks) {
  Vts *self = sampler->state;
  catch_up_history(sampler, &self->catch_up, CATCH_UP_MOST, vts_begin, vts_update, history, fallbacks);
  if (!self->fitted) vts_update(sampler, history, 0, fallbacks);
}

static void vts_carry(const Sampler *from, int from_run, Sampler *to, int to_run) {
  const Vts *source = from->state;
  Vts *target = to->state;
  const VtsMixture q = mixture_of(source, from->d, from_run), p = mixture_of(target, to->d, to_run);
  const size_t components = (size_t)q.components, vector = components * (size_t)q.d;
  memcpy(p.weight, q.weight, components * sizeof *p.weight);
  memcpy(p.mean, q.mean, vector * sizeof *p.mean);
  memcpy(p.variance, q.variance, vector * sizeof *p.variance);
  target->catch_up = (CatchUp){to->setup.runs, source->catch_up.rounds};
  target->fitted = source->fitted;
}

static int vts_pick(const VtsMixture *q, double uniform) {
  int m = 0;
  for (double left = uniform - q->weight[0]; left >= 0 && m < q->components - 1; left -= q->weight[m]) m++;
  return m;
}

static void vts_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                       int64_t *fallbacks) {
  Vts *self = sampler->state;
  const int d = sampler->d;
  vts_observe(sampler, history, fallbacks);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    rng_lanes_uniform(&chunk.rng, 1, self->uniform);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    for (int n = 0; n < chunk.lanes; n++) {
      const VtsMixture q = mixture_of(self, d, (chunk.first + n) / draws);
      const int m = vts_pick(&q, self->uniform[n]);
      for (int i = 0; i < d; i++) {
        double *z = &self->normal[i * chunk.lanes + n];
        *z = q.mean[m * d + i] + sqrt(q.variance[m * d + i]) * *z;
      }
    }
    chunk_store(&chunk, d, self->normal, theta);
  }
}

/* Of the mixture of mean-field Gaussians, whose weights add up to 1. */
static void vts_moments(Sampler *sampler, const History *history, double *mean, double *covariance,
                        int64_t *fallbacks) {
  const int d = sampler->d, runs = history->runs;
  vts_observe(sampler, history, fallbacks);
  for (int run = 0; run < runs; run++) {
    const VtsMixture q = mixture_of(sampler->state, d, run);
    double *m = mean + run, *v = covariance + run;
    for (int i = 0; i < d; i++) {
      m[i * runs] = 0;
      for (int c = 0; c < q.components; c++) m[i * runs] += q.weight[c] * q.mean[c * d + i];
    }
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) {
        double sum = 0;
        for (int c = 0; c < q.components; c++)
          sum += q.weight[c] * ((q.mean[c * d + i] - m[i * runs]) * (q.mean[c * d + j] - m[j * runs]) +
                                (i == j ? q.variance[c * d + i] : 0));
        v[(ptrdiff_t)(i * d + j) * runs] = sum;
      }
  }
}

static Status vts_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d;
  Vts *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->components = (int)config_int(setup->options, "components");
  self->steps = (int)config_int(setup->options, "steps");
  const size_t total = (size_t)setup->runs * (size_t)self->components;
  TRY(potential_create(memory, setup, CHUNK_LANES, &self->potential));
  TRY(vts_bound_create(memory, &self->potential, &self->bound));
  TRY(vts_quadratic_create(memory, &self->potential, self->components, &self->quadratic));
  ALLOCATE(memory, self->weight, total);
  ALLOCATE(memory, self->mean, total * d);
  ALLOCATE(memory, self->variance, total * d);
  ALLOCATE(memory, self->uniform, CHUNK_LANES);
  ALLOCATE(memory, self->normal, d * CHUNK_LANES);
  return STATUS_OK;
}

/* Steps end early where the bound no longer rises, which is rare. A row costs its expectations; pairs of
 * components, and components of a mixture prior, bounds of their own. Where U is quadratic runs go side by
 * side. */
static double vts_cost(const SamplerWork *work) {
  const double d = work->d, components = (double)config_int(work->options, "components"),
               steps = (double)config_int(work->options, "steps"),
               prior = work->components > 1 ? work->components : 0;
  double own = 1000 + 14 * d * d + prior * (1800 + 50 * d * d) + (work->conjugate ? 0 : 5500 * work->rows),
         pair = 7000 + 2200 * d + 60 * d * d;
  if (work->conjugate && prior == 0) {
    own = cost_share(work->runs) * (400 + 70 * d + 3.5 * d * d);
    pair = cost_share(work->runs) * (380 + 14 * d);
  }
  return steps * components * (own + (components - 1) * pair) + work->drawn * work->draws * (200 + 30 * d);
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS,
                                 {.name = "components",
                                  .type = KEY_INT,
                                  .minimum = 1,
                                  .maximum = VTS_COMPONENTS,
                                  .fallback = "2",
                                  .help = "Gaussians of the approximation"},
                                 {.name = "steps",
                                  .type = KEY_INT,
                                  .minimum = 1,
                                  .maximum = 100000,
                                  .fallback = "10",
                                  .help = "updates of all parameters after each observation, at most"},
                                 {.name = NULL}};

const SamplerOps sampler_vts = {
    .name = "vts",
    .summary = "Variational Thompson sampling: a mixture of mean-field Gaussians",
    .reference = "Urteaga and Wiggins (2018); VITS paper, Appendix D",
    .default_prior = "standard",
    /* Mean-field: what its coordinates have in common is lost. Beyond a factor of two it counts. */
    .narrow = 0.5,
    .wide = 2,
    .needs = NEEDS_MIXTURE,
    .by_observation = true,
    .keys = KEYS,
    .create = vts_create,
    .sample = vts_sample,
    .moments = vts_moments,
    .cost = vts_cost,
    .observe = vts_observe,
    .carry = vts_carry,
};

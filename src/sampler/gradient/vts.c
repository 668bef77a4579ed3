/* VTS, variational Thompson sampling (Urteaga and Wiggins 2018; VITS paper, Section 1 and Appendix D): each
 * run carries a mixture of mean-field Gaussians q, fitted to the target exp(-U) of potential.h after every
 * observation by steps that raise a lower bound (vts_ascent.h), starting from where the last round left it. A
 * draw is a draw from q.
 *
 * It differs from the original paper, where the mixture is the model: the rewards of an arm are a mixture of
 * linear regressions with unknown weights and noise, and variational EM fits their factors, separately for
 * each arm. Here the model is that of the bandit, and the mixture approximates its posterior, which is how
 * the VITS paper describes its rival; `posterior: per_arm` keeps the arms separate.
 *
 * The means start as draws from the prior (a single component at the prior's mean), the variances as those of
 * the prior; before the first observation q is fitted to the prior. The streams of the start are
 * (RNG_OBSERVE, run, round 0, component). A draw uses 1 uniform and d normals of its stream. */
#include "core/chunk.h"
#include "core/lanes.h"
#include "io/config/config_rows.h"
#include "sampler/gradient/vts_ascent.h"
#include "sampler/sampler.h"

#include <math.h>

typedef struct {
  Potential potential;
  VtsAscent ascent;
  int components, steps; /* M */
  bool fitted; /* since vts_begin */
  VtsMixture q; /* [G], of groups of VECTOR_LANES runs */
  double *start; /* [d, M] */
  double *uniform, *normal; /* [n], [d, n] of a chunk */
} Vts;

/* Steps end once the bound rises by no more than this, in nats. */
static const double ENOUGH = 1e-9;

/* Returns q of the group of a run; the run is lane run % VECTOR_LANES of the group. */
static VtsMixture vts_group_of_run(const Vts *self, int run) {
  const int first = run / VECTOR_LANES * self->components, d = self->potential.d;
  return (VtsMixture){self->q.weight + first, self->q.mean + first * d, self->q.variance + first * d};
}

static void vts_begin(Sampler *sampler, int runs) {
  Vts *self = sampler->state;
  const Potential *potential = &self->potential;
  const int d = sampler->d, components = self->components;
  self->fitted = false;
  for (int run = 0; run < runs; run++) {
    const VtsMixture q = vts_group_of_run(self, run);
    const int n = run % VECTOR_LANES;
    RngLanes rng = sampler_update_streams(sampler, 0, components, run * components, components);
    if (components > 1) potential->prior->ops->sample(potential->prior, &rng, self->start);
    for (int m = 0; m < components; m++) {
      q.weight[m][n] = 1.0 / components;
      for (int i = 0; i < d; i++) {
        q.mean[m * d + i][n] = components > 1 ? self->start[i * components + m] : potential->start_mean[i];
        q.variance[m * d + i][n] = potential->start_deviation[i] * potential->start_deviation[i];
      }
    }
  }
}

static void vts_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Vts *self = sampler->state;
  (void)round;
  for (int first = 0; first < history->runs; first += CHUNK_LANES) {
    const HistoryView view = history_view(history, 1, first, chunk_size(history->runs, first, CHUNK_LANES));
    potential_at(&self->potential, &view);
    for (int run = first; run < first + view.lanes; run += VECTOR_LANES) {
      const VtsMixture q = vts_group_of_run(self, run);
      vts_ascend(&self->ascent, &q, run, self->steps, ENOUGH, fallbacks);
    }
  }
  self->fitted = true;
}

static void vts_carry(const Sampler *from, int from_run, Sampler *to, int to_run) {
  const Vts *source = from->state;
  Vts *target = to->state;
  const VtsMixture q = vts_group_of_run(source, from_run), p = vts_group_of_run(target, to_run);
  const int components = source->components, vector = components * from->d;
  real_copy_lane(components, q.weight, from_run, p.weight, to_run);
  real_copy_lane(vector, q.mean, from_run, p.mean, to_run);
  real_copy_lane(vector, q.variance, from_run, p.variance, to_run);
  target->fitted = source->fitted;
}

static void vts_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                       int64_t *fallbacks) {
  Vts *self = sampler->state;
  const int d = sampler->d;
  if (!self->fitted) vts_update(sampler, history, 0, fallbacks);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    rng_lanes_uniform(&chunk.rng, 1, self->uniform);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    for (int n = 0; n < chunk.lanes; n++) {
      const int run = (chunk.first + n) / draws, lane = run % VECTOR_LANES;
      const VtsMixture q = vts_group_of_run(self, run);
      const int m =
          lanes_pick(self->components, VECTOR_LANES, (const double *)q.weight + lane, self->uniform[n]);
      for (int i = 0; i < d; i++) {
        double *z = &self->normal[i * chunk.lanes + n];
        *z = q.mean[m * d + i][lane] + sqrt(q.variance[m * d + i][lane]) * *z;
      }
    }
    chunk_store(&chunk, d, self->normal, theta);
  }
}

/* Computes the moments of the mixture of mean-field Gaussians, whose weights add up to 1. */
static void vts_moments(Sampler *sampler, const History *history, double *mean, double *covariance,
                        int64_t *fallbacks) {
  const Vts *self = sampler->state;
  const int d = sampler->d, components = self->components;
  if (!self->fitted) vts_update(sampler, history, 0, fallbacks);
  for (RealLanes runs = real_begin(history->runs); runs.count > 0; real_next(&runs)) {
    const VtsMixture q = vts_group_of_run(self, (int)runs.first);
    for (int i = 0; i < d; i++)
      for (int j = 0; j <= i; j++) {
        Real m_i = {0}, m_j = {0}, sum = {0};
        for (int c = 0; c < components; c++) {
          m_i += q.weight[c] * q.mean[c * d + i];
          m_j += q.weight[c] * q.mean[c * d + j];
        }
        for (int c = 0; c < components; c++) {
          const Real product = (q.mean[c * d + i] - m_i) * (q.mean[c * d + j] - m_j);
          sum += q.weight[c] * (i == j ? product + q.variance[c * d + i] : product);
        }
        real_store(runs, 1, &m_i, mean + (size_t)i * runs.lanes);
        real_store(runs, 1, &sum, covariance + (size_t)(i * d + j) * runs.lanes);
        real_store(runs, 1, &sum, covariance + (size_t)(j * d + i) * runs.lanes);
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
  const size_t components = (size_t)self->components;
  const size_t total = ((size_t)setup->runs + VECTOR_LANES - 1) / VECTOR_LANES * components;
  TRY(potential_create(memory, setup, CHUNK_LANES, &self->potential));
  TRY(vts_ascent_create(memory, &self->potential, self->components, &self->ascent));
  ALLOCATE(memory, self->q.weight, total);
  ALLOCATE_ARRAYS(memory, total * d, &self->q.mean, &self->q.variance);
  ALLOCATE(memory, self->start, components * d);
  ALLOCATE(memory, self->uniform, CHUNK_LANES);
  ALLOCATE(memory, self->normal, d * CHUNK_LANES);
  return STATUS_OK;
}

static const ConfigKey KEYS[] = {
    POTENTIAL_KEYS,
    {INT("components", 1, VTS_COMPONENTS, "2", "Gaussians of the approximation")},
    {INT("steps", 1, 100000, "10", "maximum number of updates of all parameters after each observation")},
    {.name = NULL}};

const SamplerOps sampler_vts = {
    .name = "vts",
    .summary = "Variational Thompson sampling: a mixture of mean-field Gaussians",
    .reference = "Urteaga and Wiggins (2018); VITS paper, Appendix D",
    .default_prior = "standard",
    /* Mean-field: correlations between coordinates are lost. Only a factor beyond two counts as an error. */
    .narrow = 0.5,
    .wide = 2,
    .needs = NEEDS_MIXTURE,
    .by_observation = true,
    .keys = KEYS,
    .targets_posterior = potential_targets_posterior,
    .create = vts_create,
    .sample = vts_sample,
    .moments = vts_moments,
    .begin = vts_begin,
    .update = vts_update,
    .carry = vts_carry,
};

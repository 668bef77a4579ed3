/* VITS, variational inference Thompson sampling (Clavier et al. 2024, Algorithms 1 to 3): each run carries
 * one Gaussian q, moved towards the target exp(-U) of potential.h by `steps` updates after every observation
 * (vits_step.h), from where the last round left it. A draw is a draw from q.
 *
 * q starts as the prior, its log density multiplied by eta lambda: N(0, I / (eta lambda)) in Algorithm 1. The
 * algorithm box also draws the first mean at random, the analysis (equation 30) begins at 0; here it is 0, so
 * that draws before the first observation are draws from the prior. Of a prior that is not Gaussian q has
 * mean and covariance: one Gaussian can then only settle in one mode, or span several.
 *
 * At a fixed step the mean keeps a variance of about a / (2 - a) times that of the target, a = h
 * lambda_max, because gradients are taken at draws; the Hessian-free version averages them.
 *
 * Updates use the streams (RNG_OBSERVE, run, round); a draw uses d normals of its own stream. */
#include "core/linalg.h"
#include "core/memory.h"
#include "sampler/chunk.h"
#include "sampler/follow.h"
#include "sampler/matrix_lanes.h"
#include "sampler/methods.h"
#include "sampler/vits_step.h"

#include <stdlib.h>
#include <string.h>

/* Lanes that are updated at once: fewer for large matrices, so that a strip stays in cache; a whole number of
 * strips of a history. */
enum { SMALL_DIMENSION = 8, LARGE_LANES = HISTORY_STRIP };

typedef struct {
  Potential potential;
  VitsStep work;
  Follow follow;
  int width; /* of a block of lanes */
  /* [d, B], [d, d, B], [d, d, B] in blocks of `width` runs, lane last within each. */
  VitsGaussian q;
  /* Of a chunk of draws. */
  VitsGaussian drawn;
  double *normal, *theta; /* [d, n] */
} Vits;

/* The Gaussians of the runs from `first` on, the beginning of a block. */
static VitsGaussian block_at(const Vits *self, int d, int first) {
  const size_t vector = (size_t)d * (size_t)first, matrix = (size_t)d * vector;
  return (VitsGaussian){self->q.mean + vector, self->q.root + matrix, self->q.inverse + matrix};
}

static int block_lanes(const Vits *self, int runs, int first) {
  return runs - first < self->width ? runs - first : self->width;
}

static void begin(Sampler *sampler, int runs) {
  const Vits *self = sampler->state;
  for (int first = 0; first < runs; first += self->width) {
    const int lanes = block_lanes(self, runs, first);
    vits_start(&self->potential, lanes, 0, lanes, block_at(self, sampler->d, first));
  }
}

/* Algorithm 2 or 3. */
static void update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Vits *self = sampler->state;
  for (int first = 0; first < history->runs; first += self->width) {
    const int lanes = block_lanes(self, history->runs, first);
    RngLanes rng = follow_streams(sampler, round, 1, first, lanes);
    potential_at(&self->potential, &(HistoryView){history, 1, first, lanes, NULL, NULL});
    vits_step_round(&self->work, &self->potential, block_at(self, sampler->d, first), &rng, fallbacks);
  }
}

static void vits_observe(Sampler *sampler, const History *history, int64_t *fallbacks) {
  Vits *self = sampler->state;
  follow_history(sampler, &self->follow, FOLLOW_MOST, begin, update, history, fallbacks);
}

/* to[rows] of lane n of `lanes` <- those of a run. */
static void copy_lane(int rows, const double *from, int from_lanes, int from_lane, double *to, int lanes,
                      int n) {
  for (int i = 0; i < rows; i++) to[i * lanes + n] = from[i * from_lanes + from_lane];
}

static void gather(const Vits *self, int d, int runs, int run, int lanes, int n) {
  const int first = run / self->width * self->width, from_lanes = block_lanes(self, runs, first);
  const VitsGaussian block = block_at(self, d, first);
  copy_lane(d, block.mean, from_lanes, run - first, self->drawn.mean, lanes, n);
  copy_lane(d * d, block.root, from_lanes, run - first, self->drawn.root, lanes, n);
}

static void vits_carry(const Sampler *from, int from_run, Sampler *to, int to_run) {
  const Vits *source = from->state;
  Vits *target = to->state;
  const int d = from->d, width = source->width;
  const int first = from_run / width * width, place = to_run / width * width;
  const int lanes = block_lanes(source, from->setup.runs, first),
            to_lanes = block_lanes(target, to->setup.runs, place);
  const VitsGaussian q = block_at(source, d, first), p = block_at(target, d, place);
  copy_lane(d, q.mean, lanes, from_run - first, p.mean, to_lanes, to_run - place);
  copy_lane(d * d, q.root, lanes, from_run - first, p.root, to_lanes, to_run - place);
  copy_lane(d * d, q.inverse, lanes, from_run - first, p.inverse, to_lanes, to_run - place);
  target->follow = (Follow){to->setup.runs, source->follow.rounds};
}

static void vits_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Vits *self = sampler->state;
  const int d = sampler->d;
  vits_observe(sampler, history, fallbacks);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    for (int n = 0; n < chunk.lanes; n++)
      gather(self, d, history->runs, (chunk.first + n) / draws, chunk.lanes, n);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    vits_place(d, chunk.lanes, self->drawn, self->normal, self->theta);
    chunk_store(&chunk, d, self->theta, theta);
  }
}

static void vits_gaussian(const Sampler *sampler, double *mean, double *covariance) {
  const Vits *self = sampler->state;
  const int d = sampler->d, runs = self->follow.runs;
  for (int first = 0; first < runs; first += self->width) {
    const int lanes = block_lanes(self, runs, first);
    const VitsGaussian block = block_at(self, d, first);
    double *product = self->work.product;
    matrix_lanes_product_by_transposed(d, lanes, block.root, block.root, product);
    for (int n = 0; n < lanes; n++) {
      copy_lane(d, block.mean, lanes, n, mean, runs, first + n);
      copy_lane(d * d, product, lanes, n, covariance, runs, first + n);
    }
  }
}

static void vits_destroy(Sampler *sampler) {
  Vits *self = sampler->state;
  potential_destroy(&self->potential);
  vits_step_destroy(&self->work);
  free(self->q.mean);
  free(self->q.root);
  free(self->q.inverse);
  free(self->drawn.mean);
  free(self->drawn.root);
  free(self->normal);
  free(self->theta);
  free(self);
}

static Status create(Sampler *sampler, const SamplerSetup *setup, VitsKind kind) {
  const size_t d = (size_t)sampler->d, vector = d * (size_t)setup->runs, chunk = d * CHUNK_LANES;
  Vits *self;
  NEW(self, 1);
  sampler->state = self;
  self->width = sampler->d <= SMALL_DIMENSION ? CHUNK_LANES : LARGE_LANES;
  TRY(potential_create(setup, self->width, &self->potential));
  TRY(vits_step_create(kind, setup, self->width, &self->work));
  NEW(self->q.mean, vector);
  NEW(self->q.root, d * vector);
  NEW(self->q.inverse, d * vector);
  NEW(self->drawn.mean, chunk);
  NEW(self->drawn.root, d * chunk);
  NEW(self->normal, chunk);
  NEW(self->theta, chunk);
  begin(sampler, setup->runs);
  self->follow.runs = setup->runs;
  return STATUS_OK;
}

static Status vits1_create(Sampler *sampler, const SamplerSetup *setup) {
  return create(sampler, setup, VITS_ONE);
}
static Status vits2_create(Sampler *sampler, const SamplerSetup *setup) {
  return create(sampler, setup, VITS_TWO);
}
static Status vits2_hf_create(Sampler *sampler, const SamplerSetup *setup) {
  return create(sampler, setup, VITS_HESSIAN_FREE);
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS, STEP_KEYS, {.name = NULL}};

static const ConfigKey HESSIAN_FREE_KEYS[] = {POTENTIAL_KEYS,
                                              STEP_KEYS,
                                              {.name = "samples",
                                               .type = KEY_INT,
                                               .minimum = 1,
                                               .maximum = 100000,
                                               .fallback = "20",
                                               .help = "gradients that each update averages"},
                                              {.name = NULL}};

#define VITS_OPS                                                                                             \
  .default_prior = "standard", .needs = NEEDS_SCORE, .destroy = vits_destroy, .sample = vits_sample,         \
  .observe = vits_observe, .carry = vits_carry, .gaussian = vits_gaussian

const SamplerOps sampler_vits1 = {
    .name = "vits1",
    .summary =
        "VITS-I: a Gaussian moved along the gradient of the Kullback-Leibler divergence, with inverses",
    .reference = "Clavier, Huix and Durmus (2024), VITS paper, Algorithms 1 and 2",
    .keys = KEYS,
    .create = vits1_create,
    VITS_OPS,
};

const SamplerOps sampler_vits2 = {
    .name = "vits2",
    .summary = "VITS-II: as VITS-I, the inverse carried along by a first-order update",
    .reference = "Clavier, Huix and Durmus (2024), VITS paper, Algorithms 1 and 3",
    .keys = KEYS,
    .create = vits2_create,
    VITS_OPS,
};

const SamplerOps sampler_vits2_hf = {
    .name = "vits2_hf",
    .summary = "VITS-II Hessian-free: as VITS-II, the Hessian estimated from gradients",
    .reference = "Clavier, Huix and Durmus (2024), VITS paper, Algorithms 1 and 3, equation 13",
    .keys = HESSIAN_FREE_KEYS,
    .create = vits2_hf_create,
    VITS_OPS,
};

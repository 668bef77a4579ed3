/* VITS, variational inference Thompson sampling (Clavier et al. 2024, Algorithms 1 to 3): each run carries
 * one Gaussian q, moved towards the target exp(-U) of potential.h by `steps` updates after every observation
 * (vits_step.h), starting from where the last round left it. A draw is a draw from q.
 *
 * q starts as the prior with its log density multiplied by eta lambda: N(0, I / (eta lambda)) in Algorithm 1.
 * The paper's algorithm box also draws the first mean at random, while its analysis (equation 30) begins at
 * 0; here it is the prior's mean, so that draws before the first observation are draws from the prior. The
 * weights of a network do start at a random mean, because at 0 all hidden units are alike and stay so for
 * long. If the prior is not Gaussian, q starts with its mean and covariance, and a single Gaussian can only
 * settle in one mode, or span several. With `components` q is a mixture of J Gaussians, at best one per mode
 * (vits_mixture.h).
 *
 * Under the rule `lambda_max` a single Gaussian is kept in the coordinates in which a Gaussian prior is N(m,
 * I) (potential.h). The rule `eta_t` is the paper's, in theta itself.
 *
 * At a fixed step the mean of Algorithms 2 and 3 keeps a variance of about a / (2 - a) times that of the
 * target, a = h lambda_max, because gradients are taken at draws, and all draws of a call share the error of
 * the mean. A control variate removes most of it (`gradient`, vits_step.h).
 *
 * Component j of run n is lane n J + j. Updates use the streams (RNG_OBSERVE, run, round, component); a draw
 * uses d normals of its own stream, after 1 uniform when J > 1. */
#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg/linalg_lanes.h"
#include "core/simd.h"
#include "io/config/config_rows.h"
#include "sampler/gradient/vits_mixture.h"
#include "sampler/methods.h"

#include <limits.h>

/* Products read a matrix again for each few of its rows, so that it has to stay in the first-level cache: up
 * to the first dimension CHUNK_LANES lanes are updated at once, up to the second VECTOR_LANES, above it one
 * vector of this processor (with AVX2, 16 lanes take 1.2 times as long as 8 at d = 20, and 8 take 1.2 times
 * as long as 4, 1.3 times at d = 40). That is rounded down to whole runs; the components of one run stay
 * together. Networks take one lane at a time, since each of their matrices is a job for BLAS. */
enum { SMALL_DIMENSION = 8, MIDDLE_DIMENSION = 16 };
/* The most memory that the matrices of a block of runs may take. */
static const double MOST_BYTES = 16e9;

typedef struct {
  Potential potential;
  VitsStep work;
  VitsMixture mixture;
  int components; /* J */
  int width; /* lanes of a chunk */
  /* [d, B J], [d, d, B J], [d, d, B J] in chunks of `width` lanes, lane last within each. */
  VitsGaussian q;
  double *weight; /* [B J] */
  /* For a chunk of draws: */
  int drawn_lanes;
  VitsGaussian drawn;
  double *uniform, *normal, *theta; /* [n], [d, n], [d, n] */
} Vits;

/* Returns the lanes of a vector in d > SMALL_DIMENSION dimensions. A single lane at the end goes to BLAS,
 * which rounds in another way: there is one at every instruction level, or at none. */
static int vits_vector(int d, size_t total) {
  enum { NARROW = 4 };
  const bool left_alone = total % NARROW == 1 && total % VECTOR_LANES != 1;
  if (d <= MIDDLE_DIMENSION || simd_level() == SIMD_V4 || left_alone) return VECTOR_LANES;
  return NARROW;
}

/* Returns the Gaussians of the chunk that starts at lane `first`. */
static VitsGaussian vits_chunk_gaussians(const Vits *self, int d, int first) {
  const size_t vector = (size_t)d * (size_t)first, matrix = (size_t)d * vector;
  return (VitsGaussian){self->q.mean + vector, self->q.root + matrix, self->q.inverse + matrix};
}

static void vits_begin(Sampler *sampler, int runs) {
  const Vits *self = sampler->state;
  const int components = self->components;
  const RngLanes rng = sampler_update_streams(sampler, 0, components, 0, runs * components);
  for (Chunk chunk = chunk_begin_narrow(rng, self->width); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const VitsGaussian q = vits_chunk_gaussians(self, sampler->d, chunk.first);
    vits_mixture_start(&self->mixture, &self->potential, chunk.lanes, q, self->weight + chunk.first);
    if (self->potential.network) potential_start(&self->potential, &chunk.rng, q.mean);
  }
}

/* Runs Algorithm 2 or 3. */
static void vits_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Vits *self = sampler->state;
  const int components = self->components;
  const RngLanes rng = sampler_update_streams(sampler, round, components, 0, history->runs * components);
  for (Chunk chunk = chunk_begin_narrow(rng, self->width); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = history_view(history, components, chunk.first, chunk.lanes);
    const VitsGaussian q = vits_chunk_gaussians(self, sampler->d, chunk.first);
    potential_at(&self->potential, &view);
    vits_step_round(&self->work, &self->potential, q, &chunk.rng, fallbacks);
    vits_mixture_weigh(&self->mixture, &self->potential, q, &chunk.rng, self->weight + chunk.first,
                       fallbacks);
  }
}

/* Returns the Gaussian of one of `total` lanes: a column of arrays that have *lanes lanes. */
static VitsGaussian vits_lane(const Vits *self, int d, int total, int lane, int *lanes) {
  const int first = lane / self->width * self->width, place = lane - first;
  const VitsGaussian q = vits_chunk_gaussians(self, d, first);
  *lanes = chunk_size(total, first, self->width);
  return (VitsGaussian){q.mean + place, q.root + place, q.inverse + place};
}

static void vits_carry(const Sampler *from, int from_run, Sampler *to, int to_run) {
  const Vits *source = from->state, *target = to->state;
  const int d = from->d, components = source->components;
  for (int j = 0; j < components; j++) {
    const int lane = from_run * components + j, to_lane = to_run * components + j;
    int n, m;
    const VitsGaussian q = vits_lane(source, d, from->setup.runs * components, lane, &n),
                       p = vits_lane(target, d, to->setup.runs * components, to_lane, &m);
    lanes_copy(d, 1, q.mean, n, p.mean, m);
    lanes_copy(d * d, 1, q.root, n, p.root, m);
    lanes_copy(d * d, 1, q.inverse, n, p.inverse, m);
    target->weight[to_lane] = source->weight[lane];
  }
}

/* Copies to self->drawn, for every draw of the chunk, the Gaussian of its run that its uniform number
 * picks. */
static void vits_pick_gaussians(const Vits *self, int d, int runs, int draws, const Chunk *chunk) {
  const int components = self->components;
  for (int n = 0; n < chunk->lanes; n++) {
    const int first = (chunk->first + n) / draws * components,
              picked = first + lanes_pick(components, 1, self->weight + first, self->uniform[n]);
    int lanes;
    const VitsGaussian q = vits_lane(self, d, runs * components, picked, &lanes);
    lanes_copy(d, 1, q.mean, lanes, self->drawn.mean + n, chunk->lanes);
    lanes_copy(d * d, 1, q.root, lanes, self->drawn.root + n, chunk->lanes);
  }
}

static void vits_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Vits *self = sampler->state;
  const int d = sampler->d, components = self->components;
  (void)fallbacks;
  const bool in_place = components == 1 && draws == 1; /* a chunk of draws is a chunk of Gaussians */
  const int most = in_place && self->width < self->drawn_lanes ? self->width : self->drawn_lanes;
  for (Chunk chunk = chunk_begin_narrow(rng, most); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    VitsGaussian q = self->drawn;
    if (components > 1) rng_lanes_uniform(&chunk.rng, 1, self->uniform);
    if (in_place)
      q = vits_chunk_gaussians(self, d, chunk.first);
    else
      vits_pick_gaussians(self, d, history->runs, draws, &chunk);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    vits_place(d, chunk.lanes, q, self->normal, self->theta);
    chunk_store(&chunk, d, potential_theta(&self->potential, chunk.lanes, self->theta), theta);
  }
}

/* Counts the updates of a round and the draw, B eps. */
static double vits_operations(const Sampler *sampler) {
  const Vits *self = sampler->state;
  const double d = sampler->d;
  if (self->components > 1 || !potential_has_fixed_hessian(&self->potential)) return NAN;
  return vits_step_operations(&self->work) + 2 * d * d;
}

static void vits_gaussian(const Sampler *sampler, double *mean, double *covariance) {
  Vits *self = sampler->state;
  const int d = sampler->d, runs = sampler->seen_runs;
  ASSERT(self->components == 1);
  for (int first = 0; first < runs; first += self->width) {
    const int lanes = chunk_size(runs, first, self->width);
    const VitsGaussian q = vits_chunk_gaussians(self, d, first);
    double *product = self->work.product;
    linalg_lanes_product_by_transposed(d, lanes, q.root, q.root, product);
    potential_covariance(&self->potential, lanes, product);
    const double *middle = potential_theta(&self->potential, lanes, q.mean);
    lanes_copy(d, lanes, middle, lanes, mean + first, runs);
    lanes_copy(d * d, lanes, product, lanes, covariance + first, runs);
  }
}

static Status vits_check(const Config *options, const Likelihood *likelihood) {
  if (!likelihood_has_network(likelihood) || config_int(options, "components") == 1) return STATUS_OK;
  return status_set(STATUS_INPUT, "components must be 1 for the weights of a network (model: network)");
}

static Status vits_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const VitsKind kind = sampler->ops == &sampler_vits1   ? VITS_ONE
                        : sampler->ops == &sampler_vits2 ? VITS_TWO
                                                         : VITS_HESSIAN_FREE;
  const int components = (int)config_int(setup->options, "components");
  const bool network = likelihood_has_network(setup->likelihood);
  const size_t d = (size_t)sampler->d, total = (size_t)setup->runs * (size_t)components;
  const double bytes = 2.0 * (double)(d * d * total) * sizeof(double);
  const int vector = vits_vector(sampler->d, total), few = components > vector ? components : vector,
            most = sampler->d <= SMALL_DIMENSION ? CHUNK_LANES : few;
  Vits *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  if (total > INT_MAX)
    return status_set(STATUS_INPUT, "sampler %s: %d components for each of %d runs are too many",
                      sampler->ops->name, components, setup->runs);
  if (bytes > MOST_BYTES)
    return status_set(STATUS_INPUT,
                      "sampler %s: two matrices of %d x %d for each of %d runs take %.0f GB; reduce block",
                      sampler->ops->name, sampler->d, sampler->d, setup->runs, bytes * 1e-9);
  self->components = components;
  self->width = network ? 1 : most / components * components;
  self->drawn_lanes = network ? 1 : CHUNK_LANES;
  const size_t chunk = d * (size_t)self->drawn_lanes;
  TRY(potential_create(memory, setup, self->width, &self->potential));
  TRY(vits_step_create(memory, kind, setup, self->width, &self->work));
  if (components == 1 && self->work.step.by_curvature) TRY(potential_whiten(memory, &self->potential));
  TRY(vits_mixture_create(memory, setup, &self->potential, components, self->width, &self->mixture));
  ALLOCATE(memory, self->q.mean, d * total);
  ALLOCATE_ARRAYS(memory, d * d * total, &self->q.root, &self->q.inverse);
  ALLOCATE(memory, self->weight, total);
  ALLOCATE_ARRAYS(memory, chunk, &self->drawn.mean, &self->normal, &self->theta);
  ALLOCATE(memory, self->drawn.root, d * chunk);
  ALLOCATE(memory, self->uniform, CHUNK_LANES);
  return STATUS_OK;
}

#define COMPONENTS_KEY                                                                                       \
  INT("components", 1, VITS_COMPONENTS, "1",                                                                 \
      "Gaussians of the approximation, weighted by their evidence lower bound")

static const ConfigKey KEYS[] = {
    POTENTIAL_KEYS,
    STEP_KEYS,
    {COMPONENTS_KEY},
    {WORD("gradient", "auto",
          "gradient for the mean: plain, at a draw as in the paper; or controlled, with a control variate "
          "that removes the noise of single draws; auto: controlled with lambda_max"),
     .words = "auto plain controlled"},
    {.name = NULL}};

static const ConfigKey HESSIAN_FREE_KEYS[] = {
    POTENTIAL_KEYS,
    STEP_KEYS,
    {COMPONENTS_KEY},
    {INT("samples", 1, 100000, "20", "gradients averaged in each update")},
    {.name = NULL}};

#define VITS_OPS                                                                                             \
  .default_prior = "standard", .needs = NEEDS_SCORE, .networks = true, .check = vits_check,                  \
  .create = vits_create, .sample = vits_sample, .begin = vits_begin, .update = vits_update,                  \
  .operations = vits_operations, .carry = vits_carry, .gaussian = vits_gaussian,                             \
  .targets_posterior = potential_targets_posterior

const SamplerOps sampler_vits1 = {
    .name = "vits1",
    .summary =
        "VITS-I: a Gaussian moved along the gradient of the Kullback-Leibler divergence, with inverses",
    .reference = "Clavier, Huix and Durmus (2024), VITS paper, Algorithms 1 and 2",
    .keys = KEYS,
    VITS_OPS,
};

const SamplerOps sampler_vits2 = {
    .name = "vits2",
    .summary = "VITS-II: as VITS-I, with the inverse tracked by a first-order update",
    .reference = "Clavier, Huix and Durmus (2024), VITS paper, Algorithms 1 and 3",
    .keys = KEYS,
    VITS_OPS,
};

const SamplerOps sampler_vits2_hf = {
    .name = "vits2_hf",
    .summary = "VITS-II Hessian-free: as VITS-II, with the Hessian estimated from gradients",
    .reference = "Clavier, Huix and Durmus (2024), VITS paper, Algorithms 1 and 3, equation 13",
    .keys = HESSIAN_FREE_KEYS,
    VITS_OPS,
};

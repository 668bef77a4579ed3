/* Recursive variational Gaussian approximation (Lambert, Bonnabel and Bach 2022): one Gaussian per run, in
 * one pass over the observations with one update each. With q_t = N(mu_t, P_t^-1) it solves the implicit
 * equations
 *
 *     P_t  = P_{t-1} + E_{q_t}[-l''(u)] phi phi'
 *     mu_t = mu_{t-1} + P_{t-1}^-1 phi E_{q_t}[l'(u)],      u = phi' theta, l(u) = log p(y | u)
 *
 * Since l depends on theta through u alone, these reduce to two equations for the mean alpha and the variance
 * nu of u under q_t:
 *
 *     alpha = alpha_0 + nu_0 E[l'(u)],   nu = nu_0 / (1 + nu_0 E[-l''(u)]),   u ~ N(alpha, nu)
 *
 * with alpha_0, nu_0 those under q_{t-1}. The expectations are Gauss-Hermite sums. For Gaussian rewards the
 * recursion is the Kalman filter, whose result depends on the evidence alone and is computed from it in one
 * step.
 *
 * q starts as the tempered prior of potential.h; if the prior is not Gaussian, as the Gaussian with its
 * moments. A draw uses d normals of its stream. */
#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/linalg/quadrature.h"
#include "sampler/gradient/potential.h"
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

enum { NODES = 20 };

typedef struct {
  Potential potential;
  double node[NODES], weight[NODES]; /* of the standard normal distribution */
  double *start_precision; /* [d, d] */
  int *absorbed; /* [B]: how many observations of each run its Gaussian has absorbed */
  double *mean, *precision; /* [d, B], [d, d, B] in chunks, lane last within each */
  /* For a chunk: */
  double *factor, *inverse; /* [d, d, n]: of the precision */
  double *phi, *whitened, *normal; /* [d, n] */
  double *drawn_mean; /* [d, n] */
  double *reward; /* [n]: y of the row phi */
  int *jitters; /* [n] */
} Rvga;

/* ---- one observation of one run */

typedef struct {
  const Rvga *self;
  const Likelihood *likelihood;
  double y, tempering; /* tempering multiplies l */
  double alpha0, nu0; /* under q_{t-1} */
} Scalar;

/* Solves for alpha given nu, and returns E[l'(u)] and E[-l''(u)], u ~ N(alpha, nu): alpha - alpha_0 - nu_0
 * E[l'] increases in alpha, with slope 1 + nu_0 E[-l'']. Uses Newton's method from *alpha, with steps so
 * short that the curvature changes little along each. */
static void rvga_solve_alpha(const Scalar *scalar, double nu, double *alpha, double *slope,
                             double *curvature) {
  enum { ITERATIONS = 100 };
  const double longest = 1 / fmax(scalar->likelihood->ops->self_concordance, 1e-300);
  double u[NODES], y[NODES], slopes[NODES], curvatures[NODES];
  for (int k = 0; k < NODES; k++) y[k] = scalar->y;
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    for (int k = 0; k < NODES; k++) u[k] = fmax(-700, fmin(700, *alpha + sqrt(nu) * scalar->self->node[k]));
    scalar->likelihood->ops->derivatives(scalar->likelihood, NODES, y, u, slopes, curvatures);
    *slope = *curvature = 0;
    for (int k = 0; k < NODES; k++) {
      *slope += scalar->tempering * scalar->self->weight[k] * slopes[k];
      *curvature -= scalar->tempering * scalar->self->weight[k] * curvatures[k];
    }
    double step = (scalar->alpha0 + scalar->nu0 * *slope - *alpha) / (1 + scalar->nu0 * *curvature);
    step = fmax(-longest, fmin(longest, step));
    *alpha += step;
    if (fabs(step) <= 1e-12 * (1 + fabs(*alpha))) return;
  }
}

/* Solves both equations, with nu by bisection between 0 and nu_0, and returns E[l'] and E[-l''] under q_t. */
static void rvga_solve_implicit(const Scalar *scalar, double *slope, double *curvature) {
  enum { HALVINGS = 40 };
  double low = 0, high = scalar->nu0, alpha = scalar->alpha0;
  for (int k = 0; k < HALVINGS; k++) {
    double nu = 0.5 * (low + high);
    rvga_solve_alpha(scalar, nu, &alpha, slope, curvature);
    if (nu * (1 + scalar->nu0 * *curvature) < scalar->nu0)
      low = nu;
    else
      high = nu;
    if (high - low <= 1e-13 * scalar->nu0) return;
  }
}

/* ---- the Gaussians q of a chunk: `lanes` runs from `first` on */

typedef struct {
  int first, lanes;
  double *mean, *precision;
} RvgaChunk;

static RvgaChunk rvga_chunk(const Rvga *self, int d, int runs, int first) {
  const size_t vector = (size_t)d * (size_t)first;
  return (RvgaChunk){first, chunk_size(runs, first, CHUNK_LANES), self->mean + vector,
                     self->precision + (size_t)d * vector};
}

static void rvga_begin(Sampler *sampler, int runs) {
  const Rvga *self = sampler->state;
  const int d = sampler->d;
  memset(self->absorbed, 0, (size_t)runs * sizeof *self->absorbed);
  for (int first = 0; first < runs; first += CHUNK_LANES) {
    const RvgaChunk q = rvga_chunk(self, d, runs, first);
    lanes_repeat(d, q.lanes, self->potential.start_mean, q.mean);
    lanes_repeat(d * d, q.lanes, self->start_precision, q.precision);
  }
}

static void rvga_factorise_precision(Rvga *self, const RvgaChunk *q, int d, int64_t *fallbacks) {
  memcpy(self->factor, q->precision, (size_t)(d * d * q->lanes) * sizeof *self->factor);
  memset(self->jitters, 0, CHUNK_LANES * sizeof *self->jitters);
  linalg_factor_cholesky(d, q->lanes, self->factor, self->jitters);
  for (int n = 0; n < q->lanes; n++) fallbacks[q->first + n] += self->jitters[n];
}

/* Computes P and mu from the evidence of Gaussian rewards: P = P_0 + w Lambda, mu = P^-1 (P_0 mu_0 + w b).
 * Returns false, and changes nothing, if the evidence is not the whole log likelihood. */
static bool rvga_take_evidence(Rvga *self, const RvgaChunk *q, const History *history, int64_t *fallbacks) {
  const int d = history->d, lanes = q->lanes;
  const double *precision = self->factor, *vector = self->normal;
  const double weight = self->potential.likelihood_weight;
  const HistoryView view = history_view(history, 1, q->first, lanes);
  if (!history_evidence(&view, self->factor, self->normal)) return false;
  for (int i = 0; i < d; i++) {
    double pull = 0;
    for (int j = 0; j < d; j++) pull += self->start_precision[i * d + j] * self->potential.start_mean[j];
    for (int n = 0; n < lanes; n++) q->mean[i * lanes + n] = pull + weight * vector[i * lanes + n];
    for (int k = i * d; k < (i + 1) * d; k++)
      for (int n = 0; n < lanes; n++)
        q->precision[k * lanes + n] = self->start_precision[k] + weight * precision[k * lanes + n];
  }
  rvga_factorise_precision(self, q, d, fallbacks);
  linalg_factor_solve(d, lanes, self->factor, q->mean);
  return true;
}

/* Updates P and mu of lane n by its observation, given phi and P_{t-1}^-1 phi. */
static void rvga_absorb_lane(Rvga *self, const RvgaChunk *q, const History *history, int n) {
  const int d = history->d, lanes = q->lanes;
  Scalar scalar = {.self = self,
                   .likelihood = history->likelihood,
                   .y = self->reward[n],
                   .tempering = self->potential.likelihood_weight * history->temper};
  double slope = 0, curvature = 0;
  for (int i = 0; i < d; i++) {
    scalar.alpha0 += self->phi[i * lanes + n] * q->mean[i * lanes + n];
    scalar.nu0 += self->phi[i * lanes + n] * self->whitened[i * lanes + n];
  }
  rvga_solve_implicit(&scalar, &slope, &curvature);
  for (int i = 0; i < d; i++) {
    q->mean[i * lanes + n] += slope * self->whitened[i * lanes + n];
    for (int j = 0; j < d; j++)
      q->precision[(i * d + j) * lanes + n] +=
          curvature * self->phi[i * lanes + n] * self->phi[j * lanes + n];
  }
}

/* Absorbs the next observation of every run that has one; returns false if none has. */
static bool rvga_absorb_rows(Rvga *self, const RvgaChunk *q, const History *history, int64_t *fallbacks) {
  const int d = history->d, lanes = q->lanes;
  bool any = false;
  memset(self->phi, 0, (size_t)(d * lanes) * sizeof *self->phi);
  for (int n = 0; n < lanes; n++) {
    const int run = q->first + n, row = self->absorbed[run];
    if (row == history_observations(history, run)) continue;
    self->reward[n] = history_observation(history, run, row, (size_t)lanes, self->phi + n);
    any = true;
  }
  if (!any) return false;
  rvga_factorise_precision(self, q, d, fallbacks);
  memcpy(self->whitened, self->phi, (size_t)(d * lanes) * sizeof *self->phi);
  linalg_factor_solve(d, lanes, self->factor, self->whitened);
  for (int n = 0; n < lanes; n++) {
    const int run = q->first + n;
    if (self->absorbed[run] == history_observations(history, run)) continue;
    rvga_absorb_lane(self, q, history, n);
    self->absorbed[run]++;
  }
  return true;
}

static void rvga_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Rvga *self = sampler->state;
  (void)round;
  for (int first = 0; first < history->runs; first += CHUNK_LANES) {
    const RvgaChunk q = rvga_chunk(self, sampler->d, history->runs, first);
    if (rvga_take_evidence(self, &q, history, fallbacks)) continue;
    while (rvga_absorb_rows(self, &q, history, fallbacks)) continue;
  }
}

static void rvga_carry(const Sampler *from, int from_run, Sampler *to, int to_run) {
  const Rvga *source = from->state;
  Rvga *target = to->state;
  const int d = from->d;
  const RvgaChunk q = rvga_chunk(source, d, from->setup.runs, from_run / CHUNK_LANES * CHUNK_LANES);
  const RvgaChunk p = rvga_chunk(target, d, to->setup.runs, to_run / CHUNK_LANES * CHUNK_LANES);
  const int lane = from_run - q.first, place = to_run - p.first;
  lanes_copy(d, 1, q.mean + lane, q.lanes, p.mean + place, p.lanes);
  lanes_copy(d * d, 1, q.precision + lane, q.lanes, p.precision + place, p.lanes);
  target->absorbed[to_run] = source->absorbed[from_run];
}

/* Computes theta = mu + L^-T z, P = L L'. */
static void rvga_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  Rvga *self = sampler->state;
  const int d = sampler->d;
  (void)fallbacks;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    for (int n = 0; n < chunk.lanes; n++) {
      const int run = (chunk.first + n) / draws;
      const RvgaChunk q = rvga_chunk(self, d, history->runs, run / CHUNK_LANES * CHUNK_LANES);
      const int from = run - q.first;
      lanes_copy(d, 1, q.mean + from, q.lanes, self->drawn_mean + n, chunk.lanes);
      lanes_copy(d * d, 1, q.precision + from, q.lanes, self->factor + n, chunk.lanes);
    }
    linalg_factor_cholesky(d, chunk.lanes, self->factor, NULL);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    linalg_factor_backward(d, chunk.lanes, self->factor, self->normal);
    for (int i = 0; i < d * chunk.lanes; i++) self->normal[i] += self->drawn_mean[i];
    chunk_store(&chunk, d, self->normal, theta);
  }
}

static void rvga_gaussian(const Sampler *sampler, double *mean, double *covariance) {
  Rvga *self = sampler->state;
  const int d = sampler->d, runs = sampler->seen_runs;
  for (int first = 0; first < runs; first += CHUNK_LANES) {
    const RvgaChunk q = rvga_chunk(self, d, runs, first);
    const int lanes = q.lanes;
    memcpy(self->factor, q.precision, (size_t)(d * d * lanes) * sizeof *self->factor);
    linalg_factor_cholesky(d, lanes, self->factor, NULL);
    linalg_factor_inverse(d, lanes, self->factor, self->inverse);
    lanes_copy(d, lanes, q.mean, lanes, mean + first, runs);
    lanes_copy(d * d, lanes, self->inverse, lanes, covariance + first, runs);
  }
}

static void rvga_moments(Sampler *sampler, const History *history, double *mean, double *covariance,
                         int64_t *fallbacks) {
  (void)history;
  (void)fallbacks;
  rvga_gaussian(sampler, mean, covariance);
}

static Status rvga_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d, vector = d * (size_t)setup->runs, chunk = d * CHUNK_LANES;
  Rvga *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  TRY(potential_create(memory, setup, 1, &self->potential));
  ALLOCATE(memory, self->start_precision, d * d);
  ALLOCATE(memory, self->absorbed, setup->runs);
  ALLOCATE(memory, self->mean, vector);
  ALLOCATE(memory, self->precision, d * vector);
  ALLOCATE_ARRAYS(memory, d * chunk, &self->factor, &self->inverse);
  ALLOCATE_ARRAYS(memory, chunk, &self->phi, &self->whitened, &self->normal, &self->drawn_mean);
  ALLOCATE(memory, self->reward, CHUNK_LANES);
  ALLOCATE(memory, self->jitters, CHUNK_LANES);
  linalg_lanes_product_transposed(sampler->d, 1, self->potential.start_inverse, self->potential.start_inverse,
                                  self->start_precision);
  return quadrature_hermite(NODES, self->node, self->weight);
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS, {.name = NULL}};

const SamplerOps sampler_rvga = {
    .name = "rvga",
    .summary = "Recursive variational Gaussian approximation: one implicit update for each observation",
    .reference = "Lambert, Bonnabel and Bach (2022)",
    .default_prior = "standard",
    .by_observation = true,
    .keys = KEYS,
    .targets_posterior = potential_targets_posterior,
    .create = rvga_create,
    .sample = rvga_sample,
    .moments = rvga_moments,
    .begin = rvga_begin,
    .update = rvga_update,
    .at_once = true,
    .carry = rvga_carry,
    .gaussian = rvga_gaussian,
};

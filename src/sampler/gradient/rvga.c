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
#include "core/linalg.h"
#include "core/matrix_lanes.h"
#include "core/quadrature.h"
#include "core/real.h"
#include "sampler/cost.h"
#include "sampler/gradient/potential.h"
#include "sampler/sampler.h"

enum { NODES = 20 };

/* q of eight runs; not owned. */
typedef struct {
  Real *mean, *precision; /* [d], [d, d] */
  Real *root; /* [d, d]: the inverse of the Cholesky factor of the precision */
} RvgaGaussian;

typedef struct {
  Potential potential;
  double node[NODES], weight[NODES]; /* of the standard normal distribution */
  double *start_precision, *start_information; /* [d, d], [d] */
  int *absorbed; /* [B]: how many observations of each run its Gaussian has absorbed */
  RvgaGaussian q; /* [G] groups of VECTOR_LANES runs */
  Real *phi, *column, *whitened; /* scratch: [d] */
  double *normal; /* [d, n] of a chunk */
} Rvga;

/* Returns q of the group of a run; the run is lane run % VECTOR_LANES of the group. */
static RvgaGaussian rvga_group_of_run(const Rvga *self, int run) {
  const size_t d = (size_t)self->potential.d, vector = (size_t)(run / VECTOR_LANES) * d;
  return (RvgaGaussian){self->q.mean + vector, self->q.precision + d * vector, self->q.root + d * vector};
}

/* Computes the root for `count` runs from `first` on. */
INLINE void rvga_factorise(const Rvga *self, const RvgaGaussian *q, int first, int count,
                           int64_t *fallbacks) {
  const int d = self->potential.d;
  Real jitters = {0};
  memcpy(q->root, q->precision, (size_t)(d * d) * sizeof *q->root);
  real_cholesky(d, q->root, self->column, &jitters);
  real_invert_triangle(d, q->root, self->column);
  for (int n = 0; n < count; n++) fallbacks[first + n] += (int64_t)jitters[n];
}

static void rvga_begin(Sampler *sampler, int runs) {
  const Rvga *self = sampler->state;
  const int d = sampler->d;
  memset(self->absorbed, 0, (size_t)runs * sizeof *self->absorbed);
  for (int run = 0; run < runs; run += VECTOR_LANES) {
    const RvgaGaussian q = rvga_group_of_run(self, run);
    for (int i = 0; i < d; i++) q.mean[i] = real_of(self->potential.start_mean[i]);
    for (int i = 0; i < d * d; i++) q.precision[i] = real_of(self->start_precision[i]);
    rvga_factorise(self, &q, 0, 0, NULL);
  }
}

/* ---- one observation of each run */

typedef struct {
  const Rvga *self;
  const Likelihood *likelihood;
  double tempering; /* multiplies l */
  Real y, alpha0, nu0; /* alpha and nu under q_{t-1} */
} RvgaRow;

/* Computes E[l'(u)] and E[-l''(u)], u ~ N(alpha, nu). */
INLINE void rvga_expect(const RvgaRow *row, Real alpha, Real nu, Real *slope, Real *curvature) {
  const Real deviation = real_root(nu);
  Real u[NODES], y[NODES], slopes[NODES], curvatures[NODES];
  for (int k = 0; k < NODES; k++) {
    u[k] = real_within(700, alpha + deviation * row->self->node[k]);
    y[k] = row->y;
  }
  row->likelihood->ops->derivatives(row->likelihood, NODES * VECTOR_LANES, (double *)y, (double *)u,
                                    (double *)slopes, (double *)curvatures);
  *slope = *curvature = (Real){0};
  for (int k = 0; k < NODES; k++) {
    const double weight = row->tempering * row->self->weight[k];
    *slope += weight * slopes[k];
    *curvature -= weight * curvatures[k];
  }
}

/* Solves for alpha given nu: alpha - alpha_0 - nu_0 E[l'] increases in alpha, with slope 1 + nu_0 E[-l''].
 * Uses Newton's method from *alpha, with steps so short that the curvature changes little along each. A run
 * that is close enough stays where it is. */
INLINE void rvga_solve_alpha(const RvgaRow *row, Real nu, Real *alpha, Real *slope, Real *curvature) {
  enum { ITERATIONS = 100 };
  const double longest = 1 / fmax(row->likelihood->ops->self_concordance, 1e-300);
  Mask moving = ~(Mask){0};
  for (int k = 0; k < ITERATIONS && !real_everywhere(~moving); k++) {
    rvga_expect(row, *alpha, nu, slope, curvature);
    const Real error = row->alpha0 + row->nu0 * *slope - *alpha;
    const Real step = real_within(longest, error / (1 + row->nu0 * *curvature));
    const Real most = 1e-12 * (1 + real_max(*alpha, -*alpha));
    moving &= (step > most) | (step < -most);
    *alpha = real_choose(moving, *alpha + step, *alpha);
  }
}

/* Solves both equations, with nu by bisection between 0 and nu_0, and computes E[l'] and E[-l''] under q_t.
 */
INLINE void rvga_solve_implicit(const RvgaRow *row, Real *slope, Real *curvature) {
  enum { HALVINGS = 40 };
  Real low = {0}, high = row->nu0, alpha = row->alpha0;
  for (int k = 0; k < HALVINGS; k++) {
    const Real nu = 0.5 * (low + high);
    rvga_solve_alpha(row, nu, &alpha, slope, curvature);
    const Mask below = nu * (1 + row->nu0 * *curvature) < row->nu0;
    low = real_choose(below, nu, low);
    high = real_choose(below, high, nu);
  }
}

/* Loads the next observations of `count` runs from `first` on, with phi = 0 where there is none. Returns
 * whether there are any. */
INLINE bool rvga_load_row(const Rvga *self, const History *history, int first, int count, Real *y) {
  bool any = false;
  *y = (Real){0};
  memset(self->phi, 0, (size_t)history->d * sizeof *self->phi);
  for (int n = 0; n < count; n++) {
    int *absorbed = &self->absorbed[first + n];
    if (*absorbed == history_observations(history, first + n)) continue;
    (*y)[n] = history_observation(history, first + n, (*absorbed)++, VECTOR_LANES, (double *)self->phi + n);
    any = true;
  }
  return any;
}

/* Updates P and mu by the observation in phi and y. */
INLINE void rvga_absorb_row(const Rvga *self, const RvgaGaussian *q, const History *history, Real y) {
  const int d = history->d;
  const Real *phi = self->phi;
  RvgaRow row = {self, history->likelihood, self->potential.likelihood_weight * history->temper, y, {0}, {0}};
  Real slope = {0}, curvature = {0};
  real_lower(d, q->root, phi, self->column);
  real_lower_transposed(d, q->root, self->column, self->whitened);
  for (int i = 0; i < d; i++) row.alpha0 += phi[i] * q->mean[i], row.nu0 += phi[i] * self->whitened[i];
  rvga_solve_implicit(&row, &slope, &curvature);
  for (int i = 0; i < d; i++) {
    q->mean[i] += slope * self->whitened[i];
    for (int j = 0; j < d; j++) q->precision[i * d + j] += curvature * phi[i] * phi[j];
  }
}

/* ---- updates */

/* Computes P = P_0 + w Lambda and mu = P^-1 (P_0 mu_0 + w b) from the evidence of Gaussian rewards. */
INLINE void rvga_take_evidence(Rvga *self, const RvgaGaussian *q, const History *history, int first,
                               int count, int64_t *fallbacks) {
  const RealLanes lanes = real_begin(count);
  const int d = history->d;
  potential_at(&self->potential, &(HistoryView){history, 1, first, count, NULL, NULL});
  real_load(lanes, d * d, self->potential.precision, q->precision);
  real_load(lanes, d, self->potential.vector, self->phi);
  real_pad(count, d * d, q->precision);
  rvga_factorise(self, q, first, count, fallbacks);
  real_lower(d, q->root, self->phi, self->column);
  real_lower_transposed(d, q->root, self->column, q->mean);
}

SIMD_CLONES
static void rvga_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Rvga *self = sampler->state;
  const bool conjugate = likelihood_is_conjugate(history->likelihood);
  Real y;
  (void)round;
  for (int first = 0; first < history->runs; first += VECTOR_LANES) {
    const RvgaGaussian q = rvga_group_of_run(self, first);
    const int count = chunk_size(history->runs, first, VECTOR_LANES);
    if (conjugate) rvga_take_evidence(self, &q, history, first, count, fallbacks);
    while (!conjugate && rvga_load_row(self, history, first, count, &y)) {
      rvga_absorb_row(self, &q, history, y);
      rvga_factorise(self, &q, first, count, fallbacks);
    }
  }
}

static void rvga_carry(const Sampler *from, int from_run, Sampler *to, int to_run) {
  const Rvga *source = from->state, *target = to->state;
  const RvgaGaussian q = rvga_group_of_run(source, from_run), p = rvga_group_of_run(target, to_run);
  const int d = from->d;
  real_copy_lane(d, q.mean, from_run, p.mean, to_run);
  real_copy_lane(d * d, q.precision, from_run, p.precision, to_run);
  real_copy_lane(d * d, q.root, from_run, p.root, to_run);
  target->absorbed[to_run] = source->absorbed[from_run];
}

/* Computes theta = mu + L^-T z, P = L L'. */
static void rvga_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                        int64_t *fallbacks) {
  const Rvga *self = sampler->state;
  const int d = sampler->d;
  (void)history;
  (void)fallbacks;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    rng_lanes_normal(&chunk.rng, d, self->normal);
    for (int n = 0; n < chunk.lanes; n++) {
      const int run = (chunk.first + n) / draws, lane = run % VECTOR_LANES;
      const RvgaGaussian q = rvga_group_of_run(self, run);
      double *z = self->normal + n;
      for (int i = 0; i < d; i++) {
        double sum = q.mean[i][lane];
        for (int j = i; j < d; j++) sum += q.root[j * d + i][lane] * z[j * chunk.lanes];
        z[i * chunk.lanes] = sum; /* needed no more, as the matrix is triangular */
      }
    }
    chunk_store(&chunk, d, self->normal, theta);
  }
}

static void rvga_gaussian(const Sampler *sampler, double *mean, double *covariance) {
  const Rvga *self = sampler->state;
  const int d = sampler->d;
  for (RealLanes runs = real_begin(sampler->seen_runs); runs.count > 0; real_next(&runs)) {
    const RvgaGaussian q = rvga_group_of_run(self, (int)runs.first);
    real_store(runs, d, q.mean, mean);
    for (int i = 0; i < d; i++)
      for (int j = 0; j <= i; j++) {
        Real sum = {0};
        for (int k = i; k < d; k++) sum += q.root[k * d + i] * q.root[k * d + j];
        real_store(runs, 1, &sum, covariance + (size_t)(i * d + j) * runs.lanes);
        real_store(runs, 1, &sum, covariance + (size_t)(j * d + i) * runs.lanes);
      }
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
  const size_t d = (size_t)sampler->d, vectors = ((size_t)setup->runs + VECTOR_LANES - 1) / VECTOR_LANES * d;
  Rvga *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  Potential *potential = &self->potential;
  TRY(potential_create(memory, setup, VECTOR_LANES, potential));
  ALLOCATE(memory, self->start_precision, d * d);
  ALLOCATE(memory, self->start_information, d);
  ALLOCATE(memory, self->absorbed, setup->runs);
  ALLOCATE(memory, self->q.mean, vectors);
  ALLOCATE_ARRAYS(memory, d * vectors, self->q.precision, self->q.root);
  ALLOCATE_ARRAYS(memory, d, self->phi, self->column, self->whitened);
  ALLOCATE(memory, self->normal, d * CHUNK_LANES);
  matrix_lanes_product_transposed(sampler->d, 1, potential->start_inverse, potential->start_inverse,
                                  self->start_precision);
  linalg_multiply_lanes(sampler->d, 1, self->start_precision, potential->start_mean, self->start_information);
  /* The start takes the place of the prior in the quadratic part of U. */
  potential->prior_weight = 1;
  potential->prior_precision = self->start_precision;
  potential->prior_information = self->start_information;
  return quadrature_hermite(NODES, self->node, self->weight);
}

/* Returns the cost. If rewards are not Gaussian, every update solves two equations by bisection and Newton's
 * method, over NODES nodes. */
static double rvga_cost(const SamplerWork *work) {
  const double d = work->d, update = cost_share(work->runs) * cost_gaussian(work),
               draw = cost_share(cost_drawn_lanes(work)) * (120 + 30 * d + 5 * d * d);
  const double implicit = work->conjugate ? 0 : 52000 * cost_padding(work->runs, VECTOR_LANES);
  return implicit + update + work->drawn * work->draws * draw;
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS, {.name = NULL}};

const SamplerOps sampler_rvga = {
    .name = "rvga",
    .summary = "Recursive variational Gaussian approximation: one implicit update for each observation",
    .reference = "Lambert, Bonnabel and Bach (2022)",
    .default_prior = "standard",
    .by_observation = true,
    .keys = KEYS,
    .create = rvga_create,
    .sample = rvga_sample,
    .moments = rvga_moments,
    .cost = rvga_cost,
    .begin = rvga_begin,
    .update = rvga_update,
    .at_once = true,
    .carry = rvga_carry,
    .gaussian = rvga_gaussian,
};

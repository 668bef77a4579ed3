/* Langevin Monte Carlo Thompson sampling (Xu et al. 2022; VITS paper, Section 1 and Appendix F): each draw is
 * the state of its own chain,
 *
 *     theta <- theta - h grad U(theta) + sqrt(2 h) z,
 *
 * which makes `steps` updates after every observation, starting from where the last round left it. A chain
 * starts as a draw from the prior, shrunk towards the prior's mean by the factor 1 / sqrt(eta lambda); for a
 * Gaussian prior that is a draw from the tempered prior. theta can be the weights of a network.
 *
 * Under the rule `lambda_max` a Gaussian prior is whitened (potential.h): steps are then preconditioned by
 * its covariance, so that only the evidence can make the chain slow. The rule `eta_t` is the paper's, in
 * theta itself.
 *
 * No step is rejected, so a chain on a Gaussian target of precision P settles at the covariance (P - h P^2 /
 * 2)^-1, whose variances are too large by the factor 1 / (1 - a / 2), a being h times the eigenvalue of P.
 *
 * M draws per run are M chains; the streams of an update are (RNG_OBSERVE, run, round, chain). Returning the
 * draws uses no further random numbers. */
#include "core/chunk.h"
#include "core/linalg.h"
#include "core/real.h"
#include "sampler/cost.h"
#include "sampler/gradient/step_size.h"
#include "sampler/sampler.h"

#include <float.h>
#include <string.h>

/* How far a chain may stray from the mean of the start, in standard deviations of the start. */
static const double GUARD = 100;

/* Steps on a quadratic potential whose normals are drawn ahead in one batch: the default number in a
 * round. */
enum { MOVES = 10 };

typedef struct {
  Potential potential;
  StepSize step;
  double feel_good; /* mu of the feel-good term; 0: none */
  double *theta; /* [d, B M] in chunks, lane last within each; z if the potential is whitened */
  double *gradient, *normal, *h, *pull; /* [d, n], [d, n], [n], [n] */
  double *hessian; /* [d, d, n]; NULL with a network */
  /* NULL unless the potential is quadratic: the normals; P, b, theta and P theta of one vector of chains. */
  double *normals; /* [MOVES, d, n] */
  Real *precision, *vector, *chain, *image; /* [d, d], [d] */
  double *guard_unit; /* [d]: 1 over the distance that a coordinate may have from the start's mean */
} Lmc;

/* Returns the chains of the chunk that starts at lane `first`. */
static double *lmc_chains_at(const Lmc *self, int d, int first) {
  return self->theta + (size_t)d * (size_t)first;
}

static void lmc_begin(Sampler *sampler, int runs) {
  const Lmc *self = sampler->state;
  const int d = sampler->d, draws = sampler->setup.draws, total = runs * draws;
  for (int first = 0; first < total; first += CHUNK_LANES) {
    RngLanes rng = sampler_update_streams(sampler, 0, draws, first, chunk_size(total, first, CHUNK_LANES));
    potential_start(&self->potential, &rng, lmc_chains_at(self, d, first));
  }
}

/* ---- the feel-good term of Feel-Good Thompson sampling (Zhang 2022): for every round s it subtracts mu
 * max_a phi(x_s, a)' theta from U, the best reward that theta promises in that round.
 *
 * A history holds only the arms that were played, not all that were available. So the maximum is taken over
 * the ball that the features lie in, where it is R |theta| with R the root mean square length of the features
 * seen so far: close to the truth if the arms fill a ball, and a stand-in otherwise. Zhang's cap on the term
 * is left out, since the prior outweighs a term that grows linearly. eta multiplies the term as it does the
 * loss. If rewards are not Gaussian, the natural parameter phi' theta takes the place of the reward. */

/* Computes pull[n] = mu eta temper times rounds times R, for the lanes of the potential's view. */
static void feel_good_begin(const Potential *potential, double mu, double *pull) {
  const HistoryView *view = &potential->view;
  const History *history = view->history;
  const double weight = mu * potential->eta * history->temper;
  for (int n = 0, last = -1; n < view->lanes; n++) {
    const int run = (view->first + n) / view->draws;
    pull[n] = run == last ? pull[n - 1]
                          : weight * sqrt(history_observations(history, run) * history_squares(history, run));
    last = run;
  }
}

/* Subtracts the gradient of the feel-good term from gradient[d, n], that of U at z[d, n] in the potential's
 * coordinates; push[d, n] is scratch. */
static void feel_good_subtract(Potential *potential, const double *pull, const double *z, double *push,
                               double *gradient) {
  const int d = potential->d, lanes = potential->view.lanes;
  const double *theta = potential_theta(potential, lanes, z);
  double factor[CHUNK_LANES];
  ASSERT(lanes <= CHUNK_LANES);
  for (int n = 0; n < lanes; n++) {
    double square = 0;
    for (int i = 0; i < d; i++) square += theta[i * lanes + n] * theta[i * lanes + n];
    factor[n] = pull[n] / sqrt(fmax(square, DBL_MIN));
  }
  memcpy(push, theta, (size_t)(d * lanes) * sizeof *push);
  potential_to_gradient(potential, lanes, push);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) gradient[i * lanes + n] -= factor[n] * push[i * lanes + n];
}

/* ---- steps */

/* Brings coordinate i back within the guard, or to the start's mean if it is not finite. Returns whether it
 * was beyond. */
static inline bool lmc_guard_coordinate(const Potential *potential, int i, double *x) {
  const double middle = potential->start_mean[i], limit = GUARD * potential->start_deviation[i];
  const double away = *x - middle;
  if (isfinite(away) && fabs(away) <= limit) return false;
  *x = isfinite(away) ? middle + copysign(limit, away) : middle;
  return true;
}

static void lmc_guard(const Potential *potential, double *theta, int64_t *fallbacks) {
  const HistoryView *view = &potential->view;
  for (int i = 0; i < potential->d; i++)
    for (int n = 0; n < view->lanes; n++)
      if (lmc_guard_coordinate(potential, i, &theta[i * view->lanes + n]))
        fallbacks[(view->first + n) / view->draws]++;
}

/* Returns the point at which the rule `lambda_max` takes the curvature: theta = 0, where that of logistic
 * rewards is largest, or with a network the chain itself, the only place where the curvature is known. */
static const double *lmc_curvature_reference(Lmc *self, const double *theta) {
  if (self->potential.network) return theta;
  memset(self->gradient, 0,
         (size_t)(self->potential.d * self->potential.view.lanes) * sizeof *self->gradient);
  return self->gradient;
}

/* ---- steps on a quadratic potential: a vector of chains makes all its steps before the next one starts, so
 * that its matrices stay in the first-level cache */

/* Returns whether such steps apply: not to one large matrix, and not in z with the feel-good term, which
 * needs theta. */
static bool lmc_can_step_quadratic(const Lmc *self, int lanes) {
  return self->normals && !(self->feel_good > 0 && self->potential.root) &&
         !linalg_is_single(self->potential.d, lanes);
}

/* Returns pull / |theta|. */
INLINE Real feel_good_factor(int d, const Real *theta, Real pull) {
  Real square = {0};
  for (int i = 0; i < d; i++) square += theta[i] * theta[i];
  return pull / real_root(square + DBL_MIN);
}

/* Brings the chains of lanes `at` back within the guard. */
static void lmc_guard_chains(const Lmc *self, RealLanes at, int64_t *fallbacks) {
  const HistoryView *view = &self->potential.view;
  for (int i = 0; i < self->potential.d; i++)
    for (int n = 0; n < (int)at.count; n++) {
      double x = self->chain[i][n];
      if (lmc_guard_coordinate(&self->potential, i, &x))
        fallbacks[(view->first + (int)at.first + n) / view->draws]++;
      self->chain[i][n] = x;
    }
}

/* Makes one step of the chains of lanes `at` with normal[d, N]. As long as the squares of their coordinates,
 * in units of the guard, add up to less than 1, no chain is beyond it. */
INLINE void step_chains(const Lmc *self, RealLanes at, Real h, Real noise, Real pull, const double *normal,
                        int64_t *fallbacks) {
  const int d = self->potential.d;
  Real *theta = self->chain, z, away, square = {0};
  const Real factor = self->feel_good > 0 ? feel_good_factor(d, theta, pull) : (Real){0};
  double total = 0;
  real_multiply(d, self->precision, theta, self->image);
  for (int i = 0; i < d; i++) {
    real_load(at, 1, normal + (size_t)i * at.lanes, &z);
    theta[i] -= h * (self->image[i] - self->vector[i] - factor * theta[i]);
    theta[i] += noise * z; /* separate: of two products in one sum, either could be fused with it */
    away = self->guard_unit[i] * (theta[i] - self->potential.start_mean[i]);
    square += away * away;
  }
  for (int n = 0; n < VECTOR_LANES; n++) total += square[n];
  if (!(total < 1)) lmc_guard_chains(self, at, fallbacks);
}

/* Moves theta[d, lanes] by `steps` steps with the normals drawn ahead. */
SIMD_CLONES
static void step_quadratic(const Lmc *self, int lanes, int steps, double *theta, int64_t *fallbacks) {
  const int d = self->potential.d;
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real h, pull = {0};
    real_load(at, d * d, self->potential.precision, self->precision);
    real_load(at, d, self->potential.vector, self->vector);
    real_load(at, d, theta, self->chain);
    real_pad((int)at.count, d, self->chain); /* copies make steps of length 0 */
    real_load(at, 1, self->h, &h);
    if (self->feel_good > 0) real_load(at, 1, self->pull, &pull);
    const Real noise = real_root(2 * h);
    for (int k = 0; k < steps; k++)
      step_chains(self, at, h, noise, pull, self->normals + (size_t)(k * d * lanes), fallbacks);
    real_store(at, d, self->chain, theta);
  }
}

/* Makes the steps of a round. All have the same length, and if it was shortened, every step counts as a
 * fallback. */
static void lmc_move_on_quadratic(Lmc *self, RngLanes *rng, double *theta, int64_t *fallbacks) {
  const int d = self->potential.d, lanes = self->potential.view.lanes;
  for (int left = self->step.steps; left > 0; left -= MOVES) {
    const int count = left < MOVES ? left : MOVES;
    for (int k = 0; k < count; k++) {
      step_size_choose(&self->step, &self->potential, NULL, NULL, NULL, NULL, self->h, fallbacks);
      rng_lanes_normal(rng, d, self->normals + (size_t)(k * d * lanes));
    }
    step_quadratic(self, lanes, count, theta, fallbacks);
  }
}

/* ---- steps on any potential */

/* Moves to theta - h g + sqrt(2 h) z. */
SIMD_CLONES
static void lmc_move(int d, int lanes, const double *restrict h, const double *restrict g,
                     const double *restrict z, double *restrict theta) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      theta[i * lanes + n] += special_two_products(sqrt(2 * h[n]), z[i * lanes + n], -h[n], g[i * lanes + n]);
}

/* Makes the steps of a round. Every step computes the Hessian, unless the rewards are Gaussian with a linear
 * mean, so that it is known, or the mean is a network, whose Hessian would cost more than the steps. */
static void lmc_move_on_any(Lmc *self, RngLanes *rng, double *theta, int64_t *fallbacks) {
  Potential *potential = &self->potential;
  double *hessian = potential->conjugate ? NULL : self->hessian;
  for (int k = 0; k < self->step.steps; k++) {
    potential_derivatives(potential, theta, self->gradient, hessian);
    if (self->feel_good > 0) feel_good_subtract(potential, self->pull, theta, self->normal, self->gradient);
    step_size_choose(&self->step, potential, self->gradient, hessian, NULL, NULL, self->h, fallbacks);
    rng_lanes_normal(rng, potential->d, self->normal);
    lmc_move(potential->d, potential->view.lanes, self->h, self->gradient, self->normal, theta);
    lmc_guard(potential, theta, fallbacks);
  }
}

static void lmc_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Lmc *self = sampler->state;
  const int draws = sampler->setup.draws, total = history->runs * draws;
  for (int first = 0; first < total; first += CHUNK_LANES) {
    const HistoryView view = {history, draws, first, chunk_size(total, first, CHUNK_LANES), NULL, NULL};
    RngLanes rng = sampler_update_streams(sampler, round, draws, first, view.lanes);
    double *theta = lmc_chains_at(self, sampler->d, first);
    potential_at(&self->potential, &view);
    step_size_begin(&self->step, &self->potential, lmc_curvature_reference(self, theta));
    if (self->feel_good > 0) feel_good_begin(&self->potential, self->feel_good, self->pull);
    (lmc_can_step_quadratic(self, view.lanes) ? lmc_move_on_quadratic : lmc_move_on_any)(self, &rng, theta,
                                                                                         fallbacks);
  }
}

/* Returns the first `draws` chains of every run as its draws. */
static void lmc_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                       int64_t *fallbacks) {
  Lmc *self = sampler->state;
  const int d = sampler->d, chains = sampler->setup.draws, total = history->runs * chains;
  (void)fallbacks;
  for (int n = 0; n < (int)rng.lanes; n++) {
    const int chain = n / draws * chains + n % draws, first = chain / CHUNK_LANES * CHUNK_LANES;
    const double *chunk = lmc_chains_at(self, d, first);
    const int lanes = chunk_size(total, first, CHUNK_LANES);
    double *z = self->gradient;
    for (int i = 0; i < d; i++) z[i] = chunk[i * lanes + chain - first];
    const double *x = potential_theta(&self->potential, 1, z);
    for (int i = 0; i < d; i++) theta[(size_t)i * rng.lanes + (size_t)n] = x[i];
  }
}

static Status lmc_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d, vector = d * CHUNK_LANES;
  Lmc *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  if (config_has(setup->options, "optimism")) self->feel_good = config_real(setup->options, "optimism");
  TRY(potential_create(memory, setup, CHUNK_LANES, &self->potential));
  TRY(step_size_create(memory, setup, CHUNK_LANES, 2, &self->step));
  if (self->step.by_curvature) TRY(potential_whiten(memory, &self->potential));
  ALLOCATE(memory, self->theta, d * (size_t)setup->runs * (size_t)setup->draws);
  ALLOCATE_ARRAYS(memory, vector, self->gradient, self->normal);
  ALLOCATE_ARRAYS(memory, CHUNK_LANES, self->h, self->pull);
  if (!self->potential.network) ALLOCATE(memory, self->hessian, d * vector);
  if (!potential_is_quadratic(&self->potential)) return STATUS_OK;
  ALLOCATE(memory, self->normals, MOVES * vector);
  ALLOCATE(memory, self->precision, d * d);
  ALLOCATE_ARRAYS(memory, d, self->vector, self->chain, self->image, self->guard_unit);
  for (size_t i = 0; i < d; i++) self->guard_unit[i] = 1 / (GUARD * self->potential.start_deviation[i]);
  return STATUS_OK;
}

/* Returns the cost of the steps of M chains, with the promised reward if there is `optimism`. Moving a
 * network's weights costs what their normals cost. */
static double lmc_cost(const SamplerWork *work) {
  const double d = work->d, lanes = cost_drawn_lanes(work);
  const bool optimism = config_has(work->options, "optimism");
  const double move = work->weights > 0
                          ? 150 * work->weights
                          : cost_share(lanes) * (110 + 25 * d + 4 * d * d + (optimism ? 35 + d : 0));
  const double step = move + potential_cost(work, lanes, !work->conjugate && work->weights == 0);
  return work->draws * ((double)config_int(work->options, "steps") * step + work->drawn * 10 * d);
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS, STEP_KEYS, {.name = NULL}};

static const ConfigKey FEEL_GOOD_KEYS[] = {
    POTENTIAL_KEYS,
    STEP_KEYS,
    {REAL("optimism", 0, 1e6, "0.01",
          "mu of the feel-good term, the best reward that theta promises in each round")},
    {.name = NULL}};

#define LMC_OPS                                                                                              \
  .default_prior = "standard", .needs = NEEDS_SCORE, .create = lmc_create, .sample = lmc_sample,             \
  .cost = lmc_cost, .begin = lmc_begin, .update = lmc_update, .restless = true,                              \
  .wide = 1.118 /* (1 - a / 2)^-1/2 at a = 0.4 */

const SamplerOps sampler_lmc = {
    .name = "lmc",
    .summary = "Langevin Monte Carlo: chains that follow the gradient of the log posterior, with noise",
    .reference = "Xu et al. (2022); VITS paper, Appendix F",
    .keys = KEYS,
    .networks = true,
    .chain = true,
    LMC_OPS,
};

const SamplerOps sampler_fgts = {
    .name = "fgts",
    .summary = "Feel-Good Thompson sampling: Langevin Monte Carlo that favours theta with a high reward",
    .reference = "Zhang (2022); Huix, Zhang and Durmus (2023)",
    .by_observation = true,
    .keys = FEEL_GOOD_KEYS,
    LMC_OPS,
};

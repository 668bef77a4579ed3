#include "sampler/markov/langevin.h"

#include "core/lanes.h"
#include "core/real.h"
#include "core/special.h"

static const double ACCEPTANCE = 0.574, STEP_LEAST = 1e-10, STEP_MOST = 4;
/* A state further than this from the mean, in standard deviations of the Gaussian, has diverged. */
static const double FURTHEST = 1e6;

Status langevin_create(Arena *memory, int d, int capacity, Langevin *out) {
  const size_t n = (size_t)capacity, vector = (size_t)d * n;
  *out = (Langevin){.d = d, .capacity = capacity};
  ALLOCATE_ARRAYS(memory, vector, &out->mean, &out->deviation, &out->stiffness, &out->slope, &out->u,
                  &out->gradient, &out->new_u, &out->new_gradient, &out->x, &out->score, &out->normal);
  ALLOCATE_ARRAYS(memory, n, &out->log_target, &out->new_log_target, &out->step, &out->root, &out->uniform);
  return STATUS_OK;
}

/* ---- the target */

SIMD_CLONES
void langevin_project(int d, int lanes, const EvidenceBasis *basis, const double *of_p,
                      const double *covariance, double *mean, double *variance) {
  const int own = basis->shared ? 1 : lanes;
  if (basis->identity) {
    lanes_repeat(d, lanes, of_p, mean);
    lanes_repeat(d, lanes, covariance, variance);
    return;
  }
  for (int k = 0; k < d; k++, mean += lanes, variance += lanes) {
    for (int n = 0; n < own; n++) mean[n] = variance[n] = 0;
    for (int i = 0; i < d; i++) {
      const double *u_i = basis->u + (i * d + k) * own;
      for (int n = 0; n < own; n++) mean[n] += of_p[i] * u_i[n];
      for (int j = 0; j < d; j++) {
        const double *u_j = basis->u + (j * d + k) * own, c = covariance[i * d + j];
        for (int n = 0; n < own; n++) variance[n] += c * u_i[n] * u_j[n];
      }
    }
    for (int n = own; n < lanes; n++) {
      mean[n] = mean[0];
      variance[n] = variance[0];
    }
  }
}

void langevin_target(Langevin *self, const LangevinPrior *prior, int lanes, const LangevinTilt *tilt) {
  const double *q = tilt->q, *b = tilt->b, *mean = tilt->mean, *variance = tilt->variance;
  const int d = self->d;
  ASSERT(lanes <= self->capacity);
  self->lanes = lanes;
  self->prior = *prior;
  self->basis = tilt->basis && !tilt->basis->identity ? tilt->basis : NULL;
  for (int at = 0; at < d * lanes; at++) {
    const double v = variance[at], share = 1 / (1 + q[at] * v), square = v * share; /* r^2 = v / (1 + q v) */
    self->mean[at] = special_two_products(square, b[at], share, mean[at]);
    self->deviation[at] = sqrt(square);
    self->stiffness[at] = q[at] * square;
    self->slope[at] = self->deviation[at] * share * (b[at] - q[at] * mean[at]);
  }
}

/* Computes x = U (m + r u), with y[d, n] as scratch. */
SIMD_CLONES
static void langevin_place(const Langevin *self, const double *u, double *y, double *x) {
  double *to = self->basis ? y : x;
  for (int k = 0; k < self->d * self->lanes; k++) to[k] = self->mean[k] + self->deviation[k] * u[k];
  if (self->basis) evidence_basis_apply(self->basis, self->d, self->lanes, false, y, x);
}

void langevin_positions(const Langevin *self, double *x) { langevin_place(self, self->u, self->score, x); }

/* Evaluates the log target[n] and its gradient[d, n] at u: those of the prior at x, the gradient turned back
 * to u, and of the tilt. */
SIMD_CLONES
static void evaluate_target(Langevin *self, const double *u, double *restrict gradient,
                            double *restrict log_target) {
  const double *r = self->deviation, *stiffness = self->stiffness, *slope = self->slope;
  const int d = self->d, lanes = self->lanes;
  langevin_place(self, u, self->score, self->x);
  self->prior.at(self->prior.context, lanes, self->x, log_target, self->basis ? self->score : gradient);
  if (self->basis) evidence_basis_apply(self->basis, d, lanes, true, self->score, gradient);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      const int at = i * lanes + n;
      const double pull = slope[at] - stiffness[at] * u[at];
      gradient[at] = r[at] * gradient[at] + pull;
      log_target[n] += 0.5 * u[at] * (slope[at] + pull);
    }
}

/* ---- steps */

/* Accepts or rejects the proposals, and adapts the step sizes and their roots unless `rate` is 0. The chance
 * of acceptance is the exponential of min(0, log ratio), to which the proposals contribute 1/2 sum (z^2 - (z
 * + sqrt(e) (gradient + new gradient) / 2)^2). */
SIMD_CLONES
static void langevin_judge(Langevin *self, double rate) {
  const Real zero = {0};
  for (RealLanes at = real_begin(self->lanes); at.count > 0; real_next(&at)) {
    const size_t entries = (size_t)self->d * at.lanes;
    Real log_target, new_log_target, step, root, uniform, now, proposed, z;
    real_load(at, 1, self->log_target, &log_target);
    real_load(at, 1, self->new_log_target, &new_log_target);
    real_load(at, 1, self->step, &step);
    real_load(at, 1, self->root, &root);
    real_load(at, 1, self->uniform, &uniform);
    Real chance = new_log_target - log_target;
    for (size_t row = 0; row < entries; row += at.lanes) {
      real_load(at, 1, self->gradient + row, &now);
      real_load(at, 1, self->new_gradient + row, &proposed);
      real_load(at, 1, self->normal + row, &z);
      const Real drift = 0.5 * root * (now + proposed);
      chance -= drift * (z + 0.5 * drift);
    }
    chance = real_exp(real_choose(real_above(zero, chance), chance, zero));
    const Mask accepted = real_above(chance, uniform);
    log_target = real_choose(accepted, new_log_target, log_target);
    real_store(at, 1, &log_target, self->log_target);
    for (size_t row = 0; row < entries; row += at.lanes) {
      real_load(at, 1, self->u + row, &now);
      real_load(at, 1, self->new_u + row, &proposed);
      now = real_choose(accepted, proposed, now);
      real_store(at, 1, &now, self->u + row);
      real_load(at, 1, self->gradient + row, &now);
      real_load(at, 1, self->new_gradient + row, &proposed);
      now = real_choose(accepted, proposed, now);
      real_store(at, 1, &now, self->gradient + row);
    }
    if (rate == 0) continue;
    step = real_max(step * real_exp(rate * (chance - ACCEPTANCE)), real_of(STEP_LEAST));
    step = real_choose(real_above(real_of(STEP_MOST), step), step, real_of(STEP_MOST));
    root = real_root(step);
    real_store(at, 1, &step, self->step);
    real_store(at, 1, &root, self->root);
  }
}

static void langevin_swap_states(double **a, double **b) {
  double *kept = *a;
  *a = *b;
  *b = kept;
}

SIMD_CLONES
void langevin_run(Langevin *self, RngLanes rng, int steps, double step_size) {
  const int d = self->d, lanes = self->lanes;
  ASSERT((int)rng.lanes == lanes);
  for (int n = 0; n < lanes; n++) {
    self->step[n] = step_size;
    self->root[n] = sqrt(step_size);
  }
  rng_lanes_normal(&rng, d, self->u);
  evaluate_target(self, self->u, self->gradient, self->log_target);
  for (int k = 0; k < steps; k++) {
    rng_lanes_normal(&rng, d, self->normal);
    if (self->prior.has_density)
      rng_lanes_uniform(&rng, 1, self->uniform);
    else
      rng.position++; /* skips the uniform, which ula does not need */
    for (int i = 0; i < d; i++)
      for (int n = 0; n < lanes; n++) {
        const int at = i * lanes + n;
        const double to =
            self->u[at] + 0.5 * self->step[n] * self->gradient[at] + self->root[n] * self->normal[at];
        self->new_u[at] = to > FURTHEST ? FURTHEST : to < -FURTHEST ? -FURTHEST : to;
      }
    evaluate_target(self, self->new_u, self->new_gradient, self->new_log_target);
    if (self->prior.has_density) {
      langevin_judge(self, 2 * k < steps ? pow(k + 1, -0.6) : 0);
      continue;
    }
    langevin_swap_states(&self->u, &self->new_u);
    langevin_swap_states(&self->gradient, &self->new_gradient);
  }
}

#include "sampler/tilted/langevin.h"

#include "core/arena.h"
#include "core/linalg.h"
#include "core/simd.h"
#include "core/special.h"
#include "sampler/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ACCEPTANCE = 0.574, STEP_LEAST = 1e-10, STEP_MOST = 4;
/* A state that leaves this many standard deviations of the Gaussian has diverged. */
static const double FURTHEST = 1e6;

Status langevin_create_diagonal(Arena *memory, int d, int capacity, Langevin *out) {
  const size_t n = (size_t)capacity, vector = (size_t)d * n;
  *out = (Langevin){.d = d, .capacity = capacity};
  ALLOCATE(memory, out->mean, vector);
  ALLOCATE(memory, out->deviation, vector);
  ALLOCATE(memory, out->stiffness, vector);
  ALLOCATE(memory, out->slope, vector);
  ALLOCATE(memory, out->u, vector);
  ALLOCATE(memory, out->gradient, vector);
  ALLOCATE(memory, out->log_target, n);
  ALLOCATE(memory, out->new_u, vector);
  ALLOCATE(memory, out->new_gradient, vector);
  ALLOCATE(memory, out->new_log_target, n);
  ALLOCATE(memory, out->x, vector);
  ALLOCATE(memory, out->score, vector);
  ALLOCATE(memory, out->step, n);
  ALLOCATE(memory, out->normal, vector);
  ALLOCATE(memory, out->uniform, n);
  ALLOCATE(memory, out->part, vector);
  return STATUS_OK;
}

Status langevin_create(Arena *memory, int d, int capacity, Langevin *out) {
  TRY(langevin_create_diagonal(memory, d, capacity, out));
  ALLOCATE(memory, out->basis, (size_t)d * (size_t)d * (size_t)capacity);
  return STATUS_OK;
}

/* ---- the target */

/* m_0 and v along eigenvector k, of every lane: mean[lanes], variance[lanes]. */
SIMD_CLONES
static void project_moments(int d, int lanes, int k, const double *restrict basis,
                            const double *restrict prior_mean, const double *restrict covariance,
                            double *restrict mean, double *restrict variance) {
  for (int n = 0; n < lanes; n++) mean[n] = variance[n] = 0;
  for (int i = 0; i < d; i++) {
    const double *restrict u_i = basis + (i * d + k) * lanes;
    for (int n = 0; n < lanes; n++) mean[n] += prior_mean[i] * u_i[n];
    for (int j = 0; j < d; j++) {
      const double *restrict u_j = basis + (j * d + k) * lanes;
      const double c = covariance[i * d + j];
      for (int n = 0; n < lanes; n++) variance[n] += c * u_i[n] * u_j[n];
    }
  }
}

void langevin_target(Langevin *self, const LangevinPrior *prior, int lanes, const double *basis,
                     const double *q, const double *b, const double *mean, const double *covariance) {
  const int d = self->d;
  ASSERT(lanes <= self->capacity && !basis == !self->basis);
  self->lanes = lanes;
  self->prior = *prior;
  if (basis) memcpy(self->basis, basis, (size_t)(d * d * lanes) * sizeof *basis);
  for (int k = 0; k < d; k++) {
    double *prior_mean = self->x + k * lanes, *variance = self->score + k * lanes;
    if (basis)
      project_moments(d, lanes, k, basis, mean, covariance, prior_mean, variance);
    else
      for (int n = 0; n < lanes; n++) prior_mean[n] = mean[k], variance[n] = covariance[k];
    for (int n = 0; n < lanes; n++) {
      const int at = k * lanes + n;
      const double v = variance[n], share = 1 / (1 + q[at] * v), square = v * share; /* r^2 = v / (1 + q v) */
      self->mean[at] = special_two_products(square, b[at], share, prior_mean[n]);
      self->deviation[at] = sqrt(square);
      self->stiffness[at] = q[at] * square;
      self->slope[at] = self->deviation[at] * share * (b[at] - q[at] * prior_mean[n]);
    }
  }
}

/* x = U (m + r u), with y[d, n] as scratch. */
static void langevin_place(const Langevin *self, const double *u, double *y, double *x) {
  const int count = self->d * self->lanes;
  double *to = self->basis ? y : x;
  for (int k = 0; k < count; k++) to[k] = self->mean[k] + self->deviation[k] * u[k];
  if (self->basis) linalg_multiply_lanes(self->d, self->lanes, self->basis, y, x);
}

void langevin_positions(const Langevin *self, double *x) { langevin_place(self, self->u, self->score, x); }

/* gradient <- r gradient - q r^2 u + r g; log_target += the tilt. */
SIMD_CLONES
static void add_tilt(int d, int lanes, const double *restrict r, const double *restrict stiffness,
                     const double *restrict slope, const double *restrict u, double *restrict gradient,
                     double *restrict log_target) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      const int at = i * lanes + n;
      const double pull = slope[at] - stiffness[at] * u[at];
      gradient[at] = r[at] * gradient[at] + pull;
      log_target[n] += 0.5 * u[at] * (slope[at] + pull);
    }
}

/* The log target[n] and its gradient[d, n] at u. */
static void evaluate(Langevin *self, const double *u, double *gradient, double *log_target) {
  langevin_place(self, u, self->score, self->x);
  self->prior.at(self->prior.context, self->lanes, self->x, log_target, self->score);
  if (self->basis)
    linalg_multiply_transposed_lanes(self->d, self->lanes, self->basis, self->score, gradient);
  else
    memcpy(gradient, self->score, (size_t)(self->d * self->lanes) * sizeof *gradient);
  add_tilt(self->d, self->lanes, self->deviation, self->stiffness, self->slope, u, gradient, log_target);
}

/* ---- random numbers */

/* out[rows, lanes] of the chosen streams, by runs of neighbours. `part`[rows, lanes] is scratch. */
static void langevin_draw(void (*fill)(RngLanes *, int, double *), LangevinStreams *streams, int rows,
                          double *part, double *out) {
  const int lanes = streams->lanes;
  uint32_t after = streams->rng.position;
  for (int first = 0, count; first < lanes; first += count) {
    const int *lane = streams->lane + first;
    for (count = 1; first + count < lanes && lane[count] == lane[0] + count;) count++;
    RngLanes rng = streams->rng;
    rng.first_lane += (uint32_t)lane[0];
    rng.lanes = (uint32_t)count;
    fill(&rng, rows, part);
    for (int i = 0; i < rows; i++)
      memcpy(out + i * lanes + first, part + i * count, (size_t)count * sizeof *out);
    after = rng.position;
  }
  streams->rng.position = after;
}

/* ---- steps */

SIMD_CLONES
static void langevin_propose(int d, int lanes, const double *restrict step, const double *restrict u,
                             const double *restrict gradient, const double *restrict z,
                             double *restrict out) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      const int at = i * lanes + n;
      const double to = u[at] + 0.5 * step[n] * gradient[at] + sqrt(step[n]) * z[at];
      out[at] = to > FURTHEST ? FURTHEST : to < -FURTHEST ? -FURTHEST : to;
    }
}

/* ratio[lanes]: log of the acceptance ratio; 1/2 sum z^2 - (z + sqrt(e) (gradient + new gradient) / 2)^2 is
 * that of the proposals. */
SIMD_CLONES
static void find_ratio(int d, int lanes, const double *restrict step, const double *restrict log_target,
                       const double *restrict new_log_target, const double *restrict gradient,
                       const double *restrict new_gradient, const double *restrict z,
                       double *restrict ratio) {
  for (int n = 0; n < lanes; n++) ratio[n] = new_log_target[n] - log_target[n];
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      const int at = i * lanes + n;
      const double drift = 0.5 * sqrt(step[n]) * (gradient[at] + new_gradient[at]);
      ratio[n] -= drift * (z[at] + 0.5 * drift);
    }
}

/* Lane n moves to its proposal. */
static void langevin_take(Langevin *self, int n) {
  for (int i = 0; i < self->d; i++) {
    const int at = i * self->lanes + n;
    self->u[at] = self->new_u[at];
    self->gradient[at] = self->new_gradient[at];
  }
  self->log_target[n] = self->new_log_target[n];
}

/* Accept or reject by uniform[n]; `rate` 0 leaves the step sizes. */
static void langevin_judge(Langevin *self, double rate) {
  double *ratio = self->part;
  find_ratio(self->d, self->lanes, self->step, self->log_target, self->new_log_target, self->gradient,
             self->new_gradient, self->normal, ratio);
  for (int n = 0; n < self->lanes; n++) {
    const double accepted = ratio[n] < 0 ? exp(fmax(ratio[n], -700)) : 1;
    if (self->uniform[n] < accepted) langevin_take(self, n);
    const double step = self->step[n] * exp(rate * (accepted - ACCEPTANCE));
    self->step[n] = fmin(fmax(step, STEP_LEAST), STEP_MOST);
  }
}

static void swap(double **a, double **b) {
  double *kept = *a;
  *a = *b, *b = kept;
}

static void langevin_move(Langevin *self, LangevinStreams *streams, double rate) {
  const int d = self->d, lanes = self->lanes;
  langevin_draw(rng_lanes_normal, streams, d, self->part, self->normal);
  langevin_draw(rng_lanes_uniform, streams, 1, self->part, self->uniform);
  langevin_propose(d, lanes, self->step, self->u, self->gradient, self->normal, self->new_u);
  evaluate(self, self->new_u, self->new_gradient, self->new_log_target);
  if (self->prior.has_density) {
    langevin_judge(self, rate);
    return;
  }
  swap(&self->u, &self->new_u);
  swap(&self->gradient, &self->new_gradient);
}

void langevin_run(Langevin *self, LangevinStreams *streams, int steps, double step_size) {
  ASSERT(streams->lanes == self->lanes);
  for (int n = 0; n < self->lanes; n++) self->step[n] = step_size;
  langevin_draw(rng_lanes_normal, streams, self->d, self->part, self->u);
  evaluate(self, self->u, self->gradient, self->log_target);
  for (int k = 0; k < steps; k++) langevin_move(self, streams, 2 * k < steps ? pow(k + 1, -0.6) : 0);
}

double langevin_cost(double d, double lanes, double prior) {
  return cost_share(lanes) * (200 + 60 * d + 20 * d * d + prior);
}

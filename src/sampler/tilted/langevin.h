/* Preconditioned Langevin steps on many lanes at once: MALA (Roberts and Tweedie 1996) and, where only the
 * score of the prior is known, ULA, which takes every proposal.
 *
 * The target of a lane is p(x) exp(b' x - x' A x / 2) with A = U diag(q) U'. In the eigenbasis U, p is taken
 * to have the mean m_0 and the variances v; the Gaussian with that prior has the variances 1 / (q + 1/v) and
 * the mean m. States are kept whitened by it, x = U (m + r u), r^2 = 1 / (q + 1/v): there the tilt is -1/2
 * sum q r^2 u^2 + sum r g u with g = r^2 (b - q m_0) / v, in which nothing cancels, however large q is. One
 * step of size e is
 *
 *   u' = u + e/2 gradient + sqrt(e) normal.
 *
 * Lane last. A step uses d normals and one uniform of each stream; the start d normals. */
#pragma once

#include "core/arena.h"
#include "core/rng.h"
#include "core/status.h"
#include "io/config/config_rows.h"
#include "model/history/evidence.h"

#include <stdbool.h>

/* A prior density: its logarithm[n], up to a constant for each lane, and its gradient score[d, n] at x[d, n].
 * x may be changed, to bring it within reach of the prior. */
typedef struct {
  void (*at)(const void *context, int lanes, double *x, double *log_density, double *score);
  const void *context;
  bool has_density; /* false: log_density is 0, and every proposal is taken */
} LangevinPrior;

typedef struct {
  int d, capacity, lanes; /* n = lanes <= capacity */
  LangevinPrior prior;
  const EvidenceBasis *basis; /* U; not owned; NULL: the identity */
  double *mean, *deviation; /* [d, n], [d, n]: m, r */
  double *stiffness, *slope; /* [d, n]: q r^2, r g */
  double *u, *gradient, *log_target; /* [d, n], [d, n], [n] */
  double *new_u, *new_gradient, *new_log_target;
  double *x, *score; /* [d, n] */
  double *step, *root; /* [n]: e, and its square root */
  double *normal, *uniform, *chance; /* [d, n], [n], [n]: that a proposal is taken */
} Langevin;

/* Rows of the keys `steps` and `step_size`, for the options of a sampler. */
#define LANGEVIN_STEPS_KEY INT("steps", 0, 1000000, "200", "of mala or ula, for each draw")
#define LANGEVIN_STEP_SIZE_KEY                                                                               \
  REAL("step_size", 1e-6, 4, "0.1",                                                                          \
       "of ula, in the variances of the preconditioner; mala begins with it and adapts")

/* Returns the cost of a step of one lane, with a prior that costs so much (sampler.h, `cost`). */
double langevin_cost(double d, double lanes, double prior);

Status langevin_create(Arena *memory, int d, int capacity, Langevin *out);

/* Projects mean[d, n] and variance[d, n] of p along the vectors of a basis, which has one mean[d] and
 * covariance[d, d] for all lanes. */
void langevin_project(int d, int lanes, const EvidenceBasis *basis, const double *of_p,
                      const double *covariance, double *mean, double *variance);
/* Sets the target of n lanes: U, which stays the caller's while steps are taken (NULL: the identity); in that
 * basis q[d, n], b[d, n], and mean m_0[d, n] and variance v[d, n] that p is taken to have. */
void langevin_target(Langevin *self, const LangevinPrior *prior, int lanes, const EvidenceBasis *basis,
                     const double *q, const double *b, const double *mean, const double *variance);
/* Starts every lane from the Gaussian and takes `steps` steps. With a density they are accepted or
 * rejected, and during the first half the size is led to an acceptance of .574 (Roberts and Rosenthal
 * 1998); it then stays. step_size is what each lane begins with. */
void langevin_run(Langevin *self, RngLanes rng, int steps, double step_size);
/* Returns the states, x[d, n]. */
void langevin_positions(const Langevin *self, double *x);

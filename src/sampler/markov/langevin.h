/* Preconditioned Langevin steps on many lanes at once: MALA (Roberts and Tweedie 1996) and, if only the score
 * of the prior is known, ULA, which accepts every proposal.
 *
 * The target of a lane is p(x) exp(b' x - x' A x / 2) with A = U diag(q) U'. In the eigenbasis U, p is
 * assumed to have the mean m_0 and the variances v; for a Gaussian p the target is a Gaussian with the
 * variances 1 / (q + 1/v) and the mean m. States are whitened by it, x = U (m + r u) with r^2 = 1 / (q +
 * 1/v): in u the log of the tilt is -1/2 sum q r^2 u^2 + sum r g u with g = r^2 (b - q m_0) / v, in which
 * nothing cancels, however large q is. One step of size e is
 *
 *   u' = u + e/2 gradient + sqrt(e) normal.
 *
 * Lane last. A step uses d normals and one uniform of each stream; the start uses d normals. */
#pragma once

#include "core/arena.h"
#include "core/rng.h"
#include "core/status.h"
#include "io/config/config_rows.h"
#include "model/history/history.h"

#include <stdbool.h>

/* A prior density: its logarithm[n], up to a constant for each lane, and its gradient score[d, n] at x[d, n].
 * `at` may change x, to bring it within the range of the prior. */
typedef struct {
  void (*at)(const void *context, int lanes, double *x, double *log_density, double *score);
  const void *context;
  bool has_density; /* false: log_density is 0, and every proposal is accepted */
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
  double *normal, *uniform; /* [d, n], [n] */
} Langevin;

/* The keys `steps` and `step_size`, for the options of a sampler. */
#define LANGEVIN_STEPS_KEY INT("steps", 0, 1000000, "200", "steps of mala or ula per draw")
#define LANGEVIN_STEP_SIZE_KEY                                                                               \
  REAL("step_size", 1e-6, 4, "0.1",                                                                          \
       "step size of ula, in units of the preconditioner's variances; mala starts with it and adapts")

Status langevin_create(Arena *memory, int d, int capacity, Langevin *out);

/* Projects p, which has the mean of_p[d] and the covariance[d, d] in all lanes, onto the vectors of a basis:
 * mean[d, n], variance[d, n]. If the basis is the identity, covariance[d] are the variances alone. */
void langevin_project(int d, int lanes, const EvidenceBasis *basis, const double *of_p,
                      const double *covariance, double *mean, double *variance);
/* The tilt in an eigenbasis, and what p is assumed to be there. Not owned. */
typedef struct {
  const EvidenceBasis *basis; /* U, which must outlive the steps; NULL: the identity */
  const double *q, *b; /* [d, n] */
  const double *mean, *variance; /* [d, n]: m_0, v */
} LangevinTilt;

/* Sets the target of n lanes. */
void langevin_target(Langevin *self, const LangevinPrior *prior, int lanes, const LangevinTilt *tilt);
/* Starts every lane from the Gaussian and takes `steps` steps. With a density proposals are accepted or
 * rejected. The step size of each lane begins as step_size; with a density it adapts to an acceptance rate of
 * 0.574 (Roberts and Rosenthal 1998) during the first half, and then stays fixed. */
void langevin_run(Langevin *self, RngLanes rng, int steps, double step_size);
/* Writes the states to x[d, n]. */
void langevin_positions(const Langevin *self, double *x);

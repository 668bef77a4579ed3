/* Step sizes of the samplers that move along the gradient of a potential U (potential.h).
 *
 * step_rule `eta_t`: h / (eta t) with t the number of observations, the rule that works with the VITS paper's
 * grid search (h / eta diverges). With `eta: auto` the precision of one reward takes the place of eta.
 * `lambda_max` (default): h / L with h <= 1/2, where L bounds the largest eigenvalue of the Hessian. L is
 * computed once per round, not at every point where a gradient is taken, because a chain whose step h(theta)
 * depends on its position settles at exp(-U) / h(theta), however small h is.
 *
 * VITS is stable for a = h lambda_max < 1, Langevin for a < 2. A step that would be unstable at the point
 * where it is taken is shortened to a = 1/2; a step that would move phi' theta so far that the Hessian says
 * little about the path is shortened too (potential_trust). Under `lambda_max`, whose steps are as long as
 * stability allows, both are part of the rule, and so is recomputing C of VITS-II; under `eta_t` they count
 * as fallbacks. */
#pragma once

#include "sampler/gradient/potential.h"

#define STEP_KEYS                                                                                            \
  {INT("steps", 1, 100000, "10", "updates after each observation (K_t)")},                                   \
      {REAL("step_size", 1e-9, 1e3, "auto", "h; auto: 0.4 with lambda_max, 0.01 with eta_t"),                \
       .words = "auto"},                                                                                     \
  {                                                                                                          \
    WORD("step_rule", "lambda_max",                                                                          \
         "step h / (eta t) after t observations, or h / L with L a bound on the largest eigenvalue of the "  \
         "Hessian, where h above 0.5 counts as 0.5"),                                                        \
        .words = "eta_t lambda_max"                                                                          \
  }

typedef struct {
  int steps; /* K_t */
  bool by_curvature; /* step_rule lambda_max */
  double size; /* h */
  double limit; /* a stays below it */
  double *bound; /* [n]: L */
  double *checked; /* [n] */
  double *shortened; /* [n]: 1 where the step was shortened */
  double *trial; /* [d, n] */
  double *scratch; /* [3, d, d, n]; NULL with a network */
} StepSize;

Status step_size_create(Arena *memory, const SamplerSetup *setup, int capacity, double limit, StepSize *out);

/* Prepares for the lanes and evidence that the potential has been moved to. L is taken at reference[d, n]
 * (potential_ceiling). */
void step_size_begin(StepSize *step, Potential *potential, const double *reference);
/* Returns the operations that step_size_begin needs for a quadratic potential in d dimensions
 * (SamplerOps.operations): two squares of a symmetric matrix, or none. */
double step_size_operations(const StepSize *step, int d);
/* The point where a step is taken, and what it must not overtake. */
typedef struct {
  const double *gradient; /* [d, n] */
  const double *hessian; /* [d, d, n]: h lambda_max of it stays below the limit; NULL if L is enough */
  /* F[d, d, n]: h lambda_max of F'F stays below 1; NULL if there is none. A cheap bound on that lambda_max,
   * [n] (core/linalg/linalg_lanes.h). */
  const double *factor, *factor_bound;
} StepPoint;

/* Chooses h[n] at a point, for the lanes of the potential's view. */
void step_size_choose(StepSize *step, Potential *potential, const StepPoint *at, double *h,
                      int64_t *fallbacks);

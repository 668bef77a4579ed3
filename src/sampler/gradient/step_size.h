/* Step sizes of the samplers that move along the gradient of a potential U (potential.h).
 *
 * step_rule `eta_t`: h / (eta t), t the number of observations, which is what the VITS paper's grid search
 * works with (h / eta diverges). With `eta: auto` the precision of one reward stands for eta. `lambda_max`
 * (default): h / L, h <= 1/2, L a bound on the largest eigenvalue of the Hessian, taken once a round and not
 * at the points where gradients are: a chain whose step h(theta) depends on where it is settles at exp(-U) /
 * h(theta), however small h.
 *
 * VITS is stable for a = h lambda_max < 1, Langevin for a < 2. A step that would leave the stable region at
 * the point where it is taken is shortened to a = 1/2; so is one that would move phi' theta so far that the
 * Hessian there says little about the way (potential_trust). Under `lambda_max`, whose steps are as long as
 * is stable, both belong to the rule, and so does a C of VITS-II that has to be computed again; under
 * `eta_t` they are fallbacks, and counted. */
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
  double limit; /* a is below it */
  double *bound; /* [n]: L */
  double *checked; /* [n] */
  double *shortened; /* [n]: 1 where a step was */
  double *trial; /* [d, n] */
  double *scratch; /* [3, d, d, n]; NULL with a network */
} StepSize;

Status step_size_create(Arena *memory, const SamplerSetup *setup, int capacity, double limit, StepSize *out);

/* Begins again after the potential was moved to other lanes or evidence. L is taken at reference[d, n]
 * (potential_ceiling). */
void step_size_begin(StepSize *step, Potential *potential, const double *reference);
/* Chooses h[n] for the lanes of the potential's view at a point with this gradient[d, n]. With hessian[d,
 * d, n], that of the point: h lambda_max stays below the limit; NULL: L is enough. With factor[d, d, n], h
 * lambda_max of F'F stays below 1, given a cheap bound[n] of that (core/matrix_lanes.h); NULL: none. */
void step_size_choose(StepSize *step, Potential *potential, const double *gradient, const double *hessian,
                      const double *factor, const double *factor_bound, double *h, int64_t *fallbacks);

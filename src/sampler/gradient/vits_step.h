/* One update of Gaussians q = N(mu, B B') towards the target exp(-U): a step of gradient descent on the
 * Kullback-Leibler divergence in Wasserstein geometry (VITS paper, Algorithms 2 and 3; Lambert et al. 2022).
 *
 *     mu <- mu - h g                                  g, A: estimates of E_q[grad U] and E_q[Hessian of U]
 *     B  <- (I - h A) B + h B^-T                      VITS-I
 *     B  <- (I - h A) B + h C'                        VITS-II, with C near B^-1
 *     C  <- C (I - h (C'C - A))
 *
 * In VITS-I C is B^-1. Since B^-T = C'C B, its update of B is B <- S B with S = I + h (C'C - A), which is
 * positive definite as long as h lambda_max(A) < 1, and so C <- C S^-1: half an inverse and a product, less
 * than half the cost of the inverse of B. Only rounding moves this C away from B^-1.
 *
 * In VITS-II C drifts from B^-1 by the order of h^2 per update, and unaided it returns only as fast as q
 * moves. Every 10 updates one iteration C <- C (2I - BC) brings the C of either version back.
 *
 * Draws are mu + B eps, so the covariance is B B' (the paper's text has B'B, which differs once B is not
 * symmetric). VITS-I and VITS-II take g and A at a single draw. A controlled g has C' eps subtracted, which
 * has mean 0 and is what grad U(mu + B eps) - grad U(mu) tends to as q converges, so that the mean keeps
 * little of the noise of single draws.
 *
 * The Hessian-free version uses E[eps (grad U(mu + B eps))'] = B' E[Hessian]. It differs from the paper's
 * plain average over draws in two ways and is just as unbiased: the directions eps_m come in sets of d
 * orthogonal ones (random lengths keep each of them standard normal), and two control variates are
 * subtracted, the gradient at mu and the linear function C' eps, which the gradient would be if q were the
 * target:
 *
 *     A = C' (C + 1/M sum_m eps_m r_m'), symmetrised,  r_m = grad U(mu + B eps_m) - grad U(mu) - C' eps_m
 *     g = 1/M sum_m (grad U(mu + B eps_m) - C' eps_m)
 *
 * For quadratic U the error therefore vanishes as q converges.
 *
 * N lanes, lane last. A lane is one Gaussian; only the potential knows which run it belongs to. */
#pragma once

#include "sampler/gradient/step_size.h"

typedef enum { VITS_ONE, VITS_TWO, VITS_HESSIAN_FREE } VitsKind;

/* Not owned. */
typedef struct {
  double *mean; /* [d, n]: mu */
  double *root; /* [d, d, n]: B */
  double *inverse; /* [d, d, n]: C; in VITS-I, B^-1 */
} VitsGaussian;

typedef struct {
  VitsKind kind;
  int d, samples; /* M */
  bool controlled; /* g of VITS-I and II */
  StepSize step;
  double *theta, *gradient, *h; /* [d, n], [d, n], [n] */
  double *hessian; /* [d, d, n]: A */
  double *excess, *product; /* [d, d, n]: C'C - A; scratch for products */
  double *spread, *scratch; /* [d, n]: the variances of B B'; for linalg_kernel_invert */
  double *lengths; /* [d, n]: of a set of directions */
  /* Hessian-free, [d, d, n] for a set of eps_m: these, mu + B eps_m, grad U there, and C' eps_m. */
  double *directions, *points, *gradients, *linear;
  double *eps, *at_mean; /* [d, n]: eps, grad U(mu) */
  double *dot; /* [n] */
} VitsStep;

/* Creates the state of updates of up to `capacity` lanes at once. Reads the option `samples` (Hessian-free)
 * or `gradient`, and the keys of step_size.h. */
Status vits_step_create(Arena *memory, VitsKind kind, const SamplerSetup *setup, int capacity, VitsStep *out);

/* Computes work->excess = C'C - A and work->dot[n], a bound on the largest eigenvalue of C'C. */
void vits_step_excess(VitsStep *work, int lanes, const double *hessian, VitsGaussian q);
/* Moves B and C by a step of length h[n] along A[d, d, n], and updates `spread`; called after
 * vits_step_excess. If VITS-I has one large matrix, its C is left for the next step to compute. */
void vits_step_move(VitsStep *work, int lanes, const double *hessian, VitsGaussian q);

/* Makes all updates of round rng->round, for the lanes of the potential's view. VITS-I and II use d normals
 * of every stream per update, the Hessian-free version d per sample. */
void vits_step_round(VitsStep *work, Potential *potential, VitsGaussian q, RngLanes *rng, int64_t *fallbacks);

/* Returns the operations of the updates of a round on a quadratic potential (SamplerOps.operations). */
double vits_step_operations(const VitsStep *work);

/* Sets lanes first .. last - 1 of n to the Gaussian that updates start from (potential.h). */
void vits_start(const Potential *potential, int lanes, int first, int last, VitsGaussian q);

/* Computes theta[d, n] = mu + B eps[d, n]. */
void vits_place(int d, int lanes, VitsGaussian q, const double *eps, double *theta);
/* Estimates A[d, d, n] and g[d, n] of the Hessian-free version, into work->hessian and work->gradient. */
void vits_step_estimate(VitsStep *work, Potential *potential, VitsGaussian q, RngLanes *rng);

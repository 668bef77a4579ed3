/* Where the flow of a quadratic tilt ends, and how strongly log-concave nu_T* is there (Bruna and Han, Tilted
 * transport, Theorem 2). This decides whether the baseline has an easy start.
 *
 * Let l and m be the largest and the smallest eigenvalue of Q; then e^-2T* = l / (1 + l). Along the
 * eigenvectors of l the tilt has closed in on one point; in the other directions -log nu_T* has the Hessian
 * -Hess log p_T* + diag(q_T*), whose smallest eigenvalue is at least (by the steps that lead to Theorem 2)
 *
 *   (1 + l) (l / (l - m) - l chi),
 *
 * where chi = sup_x |Cov[X | X + w / sqrt(l) = x]| is the susceptibility of the prior at l. */
#pragma once

#include "model/denoiser/denoiser_chain.h"
#include "model/mixture/mixture.h"

enum { TILT_END_POINTS = 17 /* of a segment, both ends included */ };

typedef struct {
  int d, free; /* directions in which nu_T* is not one point: the first eigenvectors */
  double smallest, largest; /* m, l */
  double *basis, *q, *b; /* [d, d], [d], [d]: of Q in its eigenbasis, q ascending */
  double *start, *x; /* [d, 2], [d, n] for n = TILT_END_POINTS */
  double *eps, *jacobian, *scratch; /* [d, n], [d, d, n], [d, n] */
  double *hessian, *vectors, *eigenvalues; /* [d, d], [d, d], [d] */
} TiltEnd;

Status tilt_end_create(Arena *memory, int d, TiltEnd *out);

/* Sets the evidence precision[d, d] = Q and vector[d] = b. */
Status tilt_end_set(TiltEnd *self, const double *precision, const double *vector);

/* Returns alpha of a chain whose only stage is T*; 0 without evidence, because the flow then has no end. */
static inline double tilt_end_alpha(const TiltEnd *self) { return self->largest / (1 + self->largest); }

/* Computes out[lanes]: the smallest eigenvalue at x[d, lanes], lanes <= TILT_END_POINTS; INFINITY if nu_T* is
 * one point. Here and below `chain` has one stage, with that alpha, is not standardised, and is exact. */
Status tilt_end_curvature(TiltEnd *self, const Chain *chain, int lanes, const double *x, double *out);

/* Draws x from nu_T* given the posterior draw theta: out[i stride] from theta[i n], i < d, and d normals.
 * With left = 1 - q / l, x is e^-T* N(left theta + b / l, left / l) along each eigenvector. */
void tilt_end_draw(TiltEnd *self, int n, const double *theta, Rng *rng, int stride, double *out);

/* Finds the least such eigenvalue on segments between draws from nu_T*, made from the posterior draws
 * theta[d, n], n >= 2: the first and second, third and fourth, ..., at most `pairs` segments. If no segment
 * has a point with a negative eigenvalue, the density is log-concave where its mass is. */
Status tilt_end_least(TiltEnd *self, const Chain *chain, int pairs, int n, const double *theta, Rng rng,
                      double *out);

/* Returns the bound of Theorem 2 (above), which holds at every x, for a prior with this susceptibility. */
double tilt_end_bound(const TiltEnd *self, double susceptibility);
/* Returns the largest possible susceptibility of mu * N(0, delta I) if |Cov mu'| <= share R^2 for every mu'
 * on the support of mu, whose diameter is R. The paper has share 1; 1/4 is also valid (Popoviciu), and two
 * points attain it. NAN unless all components have the covariance delta I. */
double tilt_end_susceptibility(const TiltEnd *self, const Mixture *prior, double share);

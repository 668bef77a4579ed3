/* Iteratively reweighted least squares (DiffTS paper, Algorithm 1; McCullagh and Nelder 1989): the mode of a
 * Gaussian prior N(P^-1 h, P^-1) times the likelihood of a history that keeps rows, for many lanes at once.
 *
 * This is Newton's method. A pass over the history gives the gradient g and the precision Lambda of the log
 * likelihood at the current point z, so the evidence there is the Gaussian (Lambda, b = g + Lambda z), and
 * the step is p = (P + Lambda)^-1 (h - P z + g). Usually each step takes one pass.
 *
 * Safeguard. Let R = M max |phi' p| over the observations, with M the self_concordance of the likelihood.
 * Along p the curvature changes at most by the factor e^R, so that (Sun and Tran-Dinh 2019, Generalized
 * self-concordant functions) a step of length a gains at least delta^2 (a - (e^(R a) - R a - 1) / R^2),
 * delta^2 = p' (P + Lambda) p. The full step is taken without a trial if R <= IRLS_FULL_STEP, where it gains
 * at least delta^2 / 10. Beyond that, a = log(1 + R) / R maximises the bound, but this is pessimistic with
 * long features and far from the mode, as it moves phi' z by at most log(1 + R). So the maximum along p is
 * then searched for between that length and the full step, by bisection on the slope of the log posterior
 * with one pass per trial, until R times the bracket is at most IRLS_FULL_STEP; the lower end is taken. The
 * log posterior is concave, so it never falls, and separable data, long features and distant starts are as
 * safe as any others.
 *
 * Stopping rule. After a full step with R <= 1/2 the remaining delta, the distance to the mode in posterior
 * standard deviations, is at most e^(R/2) (e^R - 1 - R) / R delta <= R e^R delta / 2. The first step for
 * which this is at most the tolerance is the last; the precision is the one from before this step, which is
 * the mode's up to the factor e^R. A Gaussian likelihood has M = 0: one pass, and the closed form. A lane
 * that has not converged after IRLS_PASSES stays where it is and counts as a fallback; so does a lane that
 * gets stuck earlier, because its step is not finite, or because R times the spacing of doubles is above
 * IRLS_FULL_STEP, so that no bracket can be narrow enough. Lanes that have stopped wait unchanged for the
 * others; nothing about a lane depends on the others. */
#pragma once

#include "model/history/history.h"

#include <stdint.h>

#define IRLS_FULL_STEP 1.5
enum { IRLS_PASSES = 200 };

typedef struct {
  int d, capacity; /* most lanes of a call */
  double tolerance;
  double *gradient, *step, *trial; /* [d, n] */
  double *factor; /* [d, d, n]: Cholesky factor of P + Lambda */
  double *reach, *decrement; /* [n]: R, delta^2 */
  double *slope, *length, *low, *high; /* [n]: of the log posterior along p at the trial; a; its bracket */
  bool *settled, *stuck, *idle; /* [n] */
  int *jitters; /* [n] */
} Irls;

/* Gaussians N(P^-1 h, P^-1), one for each of n lanes. */
typedef struct {
  const double *precision, *vector; /* P[d, d, n], h[d, n] */
} PriorLanes;

/* Creates room for `capacity` lanes; none are needed if the likelihood is conjugate (likelihood_rows). */
Status irls_create(Arena *memory, int d, int capacity, double tolerance, Irls *out);

/* Solves for the lanes of the view, with the prior in its coordinates. `evidence` is what to start from,
 * either that of a similar problem or 0: z starts at the mode under it. It becomes the evidence at the mode,
 * and mode[d, lanes] = (P + Lambda)^-1 (h + b). The Cholesky factor of P + Lambda, the precision of the
 * Laplace approximation, is left in irls->factor[d, d, lanes]. Lanes that did not converge, and pivots that
 * were jittered, are added to fallbacks[B]. */
void irls_solve(Irls *irls, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence, double *mode,
                int64_t *fallbacks);

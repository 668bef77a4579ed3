/* The core computation of LaplaceDPS, in a separate header so that it can be tested: a product of two
 * Gaussians for a chunk of lanes (laplace_product.h). With a likelihood that is not conjugate (Theorem 4 of
 * the DiffTS paper) it is the product of the conditional prior and the diffused likelihood by the Laplace
 * approximation. */
#pragma once

#include "core/status.h"
#include "model/history/irls.h"

/* The evidence of n lanes, lane last, in the chain's coordinates of a clean sample, s / sqrt(alpha_bar). */
typedef struct {
  int d, lanes;
  /* [d, d, n], [d, n]. For a conjugate likelihood `precision` becomes Q in the order in which a stage reads
   * it (laplace_product_begin). */
  double *precision, *vector;
  double *basis, *eigenvalue; /* [d, d, n], [d, n]: Q and l, Lambda = Q diag(l) Q' */
  double *rotated; /* [d, n]: c = Q' b; one decomposition serves all stages */
  double *scratch; /* [4, d] vectors of lanes: of laplace_product_draw */
  /* For a likelihood that is not conjugate; `precision` and `vector` are the evidence of the last stage,
   * where IRLS starts next, `basis` and `eigenvalue` belong to that of the first stage. */
  bool whole; /* the evidence is the log likelihood itself */
  bool started; /* false: the next product is the first of a chain */
  Irls irls;
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n] */
  double *mode; /* [d, n] */
  double *half, *congruent; /* [d, d, n]: Lambda Q, Q' Lambda Q of this stage's evidence Lambda */
} LaplaceEvidence;

/* Creates evidence of up to `capacity` lanes, and what laplace_dps_glm_product needs for up to `rows` of them
 * (likelihood_rows). */
Status laplace_dps_evidence_create(Arena *memory, int d, int capacity, int rows, LaplaceEvidence *out);

/* What a stage knows without the evidence: the conditional prior N(mu, v I), and the noise of the state. */
typedef struct {
  double v, alpha_bar;
  const double *mu; /* [d, n] */
} LaplaceStage;

/* Draws s[d, n], with the standard normals z[d, n], from the Laplace approximation of N(s; mu, v I) times the
 * likelihood of s / sqrt(alpha_bar), v > 0. The root of the covariance is Q L^-T with Q the eigenvectors of
 * the first stage's evidence and L L' = Q' (precision) Q: if the evidence does not change from stage to
 * stage, as with a Gaussian likelihood, this is the root that laplace_product_draw uses. z is overwritten.
 * Fallbacks are counted as in irls_solve. */
void laplace_dps_glm_product(LaplaceEvidence *evidence, const HistoryView *view, const LaplaceStage *stage,
                             double *z, double *s, int64_t *fallbacks);

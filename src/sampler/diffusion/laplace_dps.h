/* The core computation of LaplaceDPS, in a separate header so that it can be tested: a product of two
 * Gaussians for a chunk of lanes. */
#pragma once

#include "core/real.h"
#include "model/history/irls.h"

/* The evidence of n lanes in the eigenbasis of its precision, Lambda = Q diag(l) Q' and c = Q' b: one
 * decomposition serves all stages. Lane last. */
typedef struct {
  int d, lanes;
  double *precision, *vector; /* [d, d, n], [d, n]: scratch of the decomposition */
  double *basis; /* [d, d, n]: Q */
  double *eigenvalue; /* [d, n]: l */
  double *rotated; /* [d, n]: c */
  Real *vectors; /* scratch of laplace_dps_product */
} LaplaceEvidence;

Status laplace_dps_evidence_create(Arena *memory, int d, LaplaceEvidence *out);

/* Draws s[d, n], with the standard normals z[d, n], from the product of the conditional prior N(mu, v I) and
 * the diffused evidence, of precision Lambda / alpha_bar and vector b / sqrt(alpha_bar): Equations 7 and 8.
 * Without evidence the draw is that of the conditional prior bit for bit; with v = 0, up to rounding. s may
 * alias mu. */
void laplace_dps_product(const LaplaceEvidence *evidence, double v, double alpha_bar, const double *mu,
                         const double *z, double *s);

/* ---- Theorem 4 of the DiffTS paper for a chunk of lanes: a stage of LaplaceDPS with a likelihood that is
 * not conjugate, the product of the conditional prior and the diffused likelihood by the Laplace
 * approximation. */

/* n lanes, lane last, in the chain's coordinates of a clean sample, s / sqrt(alpha_bar). */
typedef struct {
  int d;
  bool started;
  Irls irls;
  double *precision, *vector; /* [d, d, n], [d, n]: the evidence of the last stage, where IRLS starts next */
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n] */
  double *mode; /* [d, n] */
  double *basis, *eigenvalue; /* [d, d, n], [d, n]: Q and l of the first stage's evidence */
  double *half, *rotated; /* [d, d, n]: Lambda Q, Q' Lambda Q of this stage's evidence Lambda */
} LaplaceGlm;

Status laplace_dps_glm_create(Arena *memory, int d, int lanes, LaplaceGlm *out);

/* Forgets the evidence: the next product is the first of a chain. */
void laplace_dps_glm_begin(LaplaceGlm *glm, int lanes);

/* Draws s[d, n], with the standard normals z[d, n], from the Laplace approximation of N(s; mu, v I) times the
 * likelihood of s / sqrt(alpha_bar), v > 0. The root of the covariance is Q L^-T with Q the eigenvectors of
 * the first stage's evidence and L L' = Q' (precision) Q: if the evidence does not change from stage to
 * stage, as with a Gaussian likelihood, this is the root that laplace_dps_product uses. z is overwritten.
 * Fallbacks are counted as in irls_solve. */
void laplace_dps_glm_product(LaplaceGlm *glm, const HistoryView *view, double v, double alpha_bar,
                             const double *mu, double *z, double *s, int64_t *fallbacks);

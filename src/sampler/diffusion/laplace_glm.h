/* Theorem 4 of the DiffTS paper for a chunk of lanes: a stage of LaplaceDPS with a likelihood that is not
 * conjugate, the product of the conditional prior and the diffused likelihood by the Laplace
 * approximation. */
#ifndef SAMPLER_DIFFUSION_LAPLACE_GLM_H
#define SAMPLER_DIFFUSION_LAPLACE_GLM_H

#include "core/arena.h"
#include "model/irls.h"

/* n lanes, lane last, in the chain's coordinates of a clean sample, s / sqrt(alpha_bar). */
typedef struct {
  int d;
  bool started;
  Irls irls;
  double *precision, *vector; /* [d, d, n], [d, n]: the evidence of the last stage, where IRLS starts next */
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n] */
  double *mode; /* [d, n] */
  double *basis, *eigenvalue; /* [d, d, n], [d, n]: Q and l of the first stage's evidence */
  double *rotated; /* [d, d, n] */
  double *column; /* [2, d, n] */
} LaplaceGlm;

Status laplace_glm_create(Arena *memory, int d, int lanes, LaplaceGlm *out);

/* Forget the evidence: the next product is the first of a chain. */
void laplace_glm_begin(LaplaceGlm *glm, int lanes);

/* s[d, n] is drawn, with the standard normals z[d, n], from the Laplace approximation of N(s; mu, v I) times
 * the likelihood of s / sqrt(alpha_bar), v > 0. The root of the covariance is Q L^-T with Q the eigenvectors
 * of the first stage's evidence and L L' = Q' (precision) Q: where the evidence does not change from stage to
 * stage, and so for a Gaussian likelihood, it is the root that laplace_dps_product takes. z is overwritten.
 * Fallbacks as in irls_solve. */
void laplace_glm_product(LaplaceGlm *glm, const HistoryView *view, double v, double alpha_bar,
                         const double *mu, double *z, double *s, int64_t *fallbacks);

#endif

/* The one computation of LaplaceDPS, apart so that it can be tested: a product of two Gaussians for a chunk
 * of lanes. */
#ifndef SAMPLER_DIFFUSION_LAPLACE_DPS_H
#define SAMPLER_DIFFUSION_LAPLACE_DPS_H

#include "core/arena.h"
#include "core/real.h"
#include "core/status.h"

/* The evidence of n lanes in the eigenbasis of its precision, Lambda = Q diag(l) Q' and c = Q' b: one
 * decomposition serves all stages. Lane last. */
typedef struct {
  int d, lanes;
  double *precision; /* [d, d, n]: Lambda */
  double *vector; /* [d, n]: b */
  double *basis; /* [d, d, n]: Q */
  double *eigenvalue; /* [d, n]: l */
  double *rotated; /* [d, n]: c */
  Real *vectors; /* scratch of laplace_dps_product */
} LaplaceEvidence;

Status laplace_evidence_create(Arena *memory, int d, LaplaceEvidence *out);

/* Q, l and c from Lambda and b. */
void laplace_evidence_decompose(LaplaceEvidence *evidence);

/* Draws s[d, n], with the standard normals z[d, n], from the product of the conditional prior N(mu, v I) and
 * the diffused evidence, of precision Lambda / alpha_bar and vector b / sqrt(alpha_bar): Equations 7 and 8.
 * Without evidence it is the conditional prior, to the bit; with v = 0, to rounding. s may be mu. */
void laplace_dps_product(const LaplaceEvidence *evidence, double v, double alpha_bar, const double *mu,
                         const double *z, double *s);

#endif

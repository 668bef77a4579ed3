/* A mixture of mean-field Gaussians q = sum_m pi_m N(mu_m, diag(v_m)), fitted to the target exp(-U) of
 * potential.h by ascent on a lower bound F of the evidence lower bound E_q[-U] + H(q):
 *
 *     F = sum_m pi_m e_m - sum_m pi_m log sum_j pi_j N(mu_m; mu_j, diag(v_m + v_j)).
 *
 * The second sum is the lower bound on the entropy of a mixture by Jensen's inequality (Huber et al. 2008;
 * Gershman, Hoffman and Blei 2012, Nonparametric variational inference, equation 6). For one component it is
 * the entropy up to a constant, and F is the mean-field bound itself.
 *
 * e_m is E[-U] under component m up to a constant: in closed form for a Gaussian prior and Gaussian rewards;
 * other rewards enter through u = phi' theta, normal under a component, by Gauss-Hermite quadrature; and a
 * mixture prior sum_c f_c by Jensen's inequality as log sum_c exp E[log f_c].
 *
 * A step updates each component in turn and then the weights. A component goes from (mu, v) towards
 *
 *     mu + H^-1 (-E[grad U] + s_mu / pi_m),    v_i = 2 v_i s_i / (pi_m H_ii),      H = E[Hessian of U]
 *
 * with (s_mu, s) the derivatives of the entropy bound with respect to mu and v (v_i geometrically); the
 * weights go to pi_m exp(dF / dpi_m), normalised. Both directions lead upwards; they are halved until F is
 * not lower than before, so that F never falls. For one component and quadratic U = theta' P theta / 2 -
 * theta' b the first step arrives at the mean-field solution mu = P^-1 b, v_i = 1 / P_ii. */
#ifndef SAMPLER_GRADIENT_VTS_BOUND_H
#define SAMPLER_GRADIENT_VTS_BOUND_H

#include "core/arena.h"
#include "sampler/gradient/potential.h"

enum { VTS_NODES = 12, VTS_COMPONENTS = 16, VTS_HALVINGS = 12 };
#define VTS_LEAST_WEIGHT 1e-8 /* of a component */

/* Of one run; not owned. */
typedef struct {
  int components, d; /* M */
  double *weight; /* [M] */
  double *mean, *variance; /* [M, d] */
} VtsMixture;

typedef struct {
  const Potential *potential; /* not owned */
  int run; /* of the history of the potential's view */
  double node[VTS_NODES], node_weight[VTS_NODES];
  double *precision, *vector; /* [d, d], [d]: the quadratic part of U */
  /* Scratch. */
  double *gradient, *hessian, *factor; /* [d], [d, d], [d, d] */
  double *entropy_mean, *entropy_variance; /* [d] */
  double *step, *growth; /* [d]: of mu, of log v */
  double *old_mean, *old_variance; /* [d] */
  double *phi; /* [rows, d], of rows that are taken at once */
} VtsBound;

Status vts_bound_create(Arena *memory, const Potential *potential, VtsBound *out);

/* From here on the target is that of a run among those of the potential's view (one draw for each). */
void vts_bound_at(VtsBound *bound, int run);
/* F at q. */
double vts_bound_value(VtsBound *bound, const VtsMixture *q);
/* One step; returns F after it. Jittered factorisations are added to *fallbacks. */
double vts_bound_step(VtsBound *bound, VtsMixture *q, int64_t *fallbacks);

#endif

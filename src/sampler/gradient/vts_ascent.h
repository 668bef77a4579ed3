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
 * where (s_mu, s) are the derivatives of the entropy bound with respect to mu and v, and v_i moves
 * geometrically; the weights move towards pi_m exp(dF / dpi_m), normalised. F rises at first in both cases; a
 * step is halved until F is not lower than before, so that F never falls. With one component and quadratic U
 * = theta' P theta / 2 - theta' b the first step reaches the mean-field solution mu = P^-1 b, v_i = 1 / P_ii.
 *
 * Eight runs are processed side by side. Each halves its own steps, and rests once its bound no longer
 * rises. */
#pragma once

#include "core/real.h"
#include "sampler/gradient/potential.h"

enum { VTS_NODES = 12, VTS_COMPONENTS = 16, VTS_HALVINGS = 12 };
#define VTS_LEAST_WEIGHT 1e-8 /* of a component */

/* q of eight runs; not owned. */
typedef struct {
  Real *weight; /* [M] */
  Real *mean, *variance; /* [M, d] */
} VtsMixture;

/* The parts of the entropy of q: log N(mu_m; mu_j, diag(v_m + v_j)); log sum_j pi_j N(same); the bound. */
typedef struct {
  Real overlap[VTS_COMPONENTS][VTS_COMPONENTS], density[VTS_COMPONENTS], value;
} VtsEntropy;

typedef struct {
  const Potential *potential; /* not owned */
  int d, components; /* M */
  double node[VTS_NODES], node_weight[VTS_NODES];
  /* The runs: `count` of them from `first` on, and the number of rows of the longest history. */
  int first, count, rows;
  VtsMixture q;
  Real *energy; /* [M] */
  Real *image; /* [M, d]: the last P mu */
  VtsEntropy entropy;
  Real value; /* F */
  Real jitters; /* factorisations that were jittered */
  /* U: its quadratic part; H = E[Hessian], which is P if U is quadratic; the inverse of the Cholesky factor
   * of H. */
  Real *precision, *vector, *hessian, *root; /* [d, d], [d], [d, d], [d, d] */
  bool fixed_hessian; /* U is quadratic: hessian is the array precision, and root is found once */
  /* The direction of the component that moves, and where it was before. */
  Real *step, *growth; /* [d]: of mu, of log v */
  Real *old_mean, *old_variance; /* [d] */
  Real *column, *phi, *share; /* scratch: [d], [d], [components of the prior] */
} VtsAscent;

Status vts_ascent_create(Arena *memory, const Potential *potential, int components, VtsAscent *out);

/* Takes at most `steps` steps, while each raises F by more than `enough`, for the runs first, first + 1, ..
 * of the potential's view (one draw each): eight, or what is left of them. Sets self->value to F, and adds
 * the jittered factorisations of each run to fallbacks[run]. */
void vts_ascend(VtsAscent *self, const VtsMixture *q, int first, int steps, double enough,
                int64_t *fallbacks);

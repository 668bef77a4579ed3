#include "sampler/gradient/vts_bound.h"

#include "core/arena.h"
#include "core/linalg.h"
#include "core/quadrature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, CELLS = ROWS * VTS_NODES };

static const double FARTHEST = 300; /* |u|: expectations of exp(u) stay finite */

Status vts_bound_create(Arena *memory, const Potential *potential, VtsBound *out) {
  const size_t d = (size_t)potential->d;
  *out = (VtsBound){.potential = potential};
  ALLOCATE(memory, out->precision, d * d);
  ALLOCATE(memory, out->vector, d);
  ALLOCATE(memory, out->gradient, d);
  ALLOCATE(memory, out->hessian, d * d);
  ALLOCATE(memory, out->factor, d * d);
  ALLOCATE(memory, out->entropy_mean, d);
  ALLOCATE(memory, out->entropy_variance, d);
  ALLOCATE(memory, out->step, d);
  ALLOCATE(memory, out->growth, d);
  ALLOCATE(memory, out->old_mean, d);
  ALLOCATE(memory, out->old_variance, d);
  ALLOCATE(memory, out->phi, ROWS * d);
  return quadrature_hermite(VTS_NODES, out->node, out->node_weight);
}

void vts_bound_at(VtsBound *bound, int run) {
  const Potential *potential = bound->potential;
  const int d = potential->d, lanes = potential->view.lanes, n = run - potential->view.first;
  ASSERT(potential->view.draws == 1 && n >= 0 && n < lanes);
  bound->run = run;
  for (int i = 0; i < d * d; i++) bound->precision[i] = potential->precision[i * lanes + n];
  for (int i = 0; i < d; i++) bound->vector[i] = potential->vector[i * lanes + n];
}

/* ---- e_m: the three parts of E[-U] under N(mean, diag(variance)). With `gradient` those of E[grad U],
 * E[Hessian of U] are added to it and to `hessian`. */

static double quadratic_part(const VtsBound *bound, const double *mean, const double *variance,
                             double *gradient, double *hessian) {
  const int d = bound->potential->d;
  double energy = 0;
  for (int i = 0; i < d; i++) {
    double image = 0;
    for (int j = 0; j < d; j++) image += bound->precision[i * d + j] * mean[j];
    energy += mean[i] * (bound->vector[i] - 0.5 * image) - 0.5 * bound->precision[i * d + i] * variance[i];
    if (gradient) gradient[i] += image - bound->vector[i];
  }
  if (gradient)
    for (int i = 0; i < d * d; i++) hessian[i] += bound->precision[i];
  return energy;
}

/* E[log f_c], f_c the weight times the density of a component of the prior. */
static double component_energy(const Mixture *prior, int c, const double *mean, const double *variance) {
  const int d = prior->d;
  const double *centre = prior->mean + c * d, *precision = prior->precision + (size_t)c * (size_t)(d * d);
  double energy = prior->log_norm[c];
  for (int i = 0; i < d; i++) {
    double image = 0;
    for (int j = 0; j < d; j++) image += precision[i * d + j] * (mean[j] - centre[j]);
    energy -= 0.5 * (image * (mean[i] - centre[i]) + precision[i * d + i] * variance[i]);
  }
  return energy;
}

static double prior_part(const VtsBound *bound, const double *mean, const double *variance, double *gradient,
                         double *hessian) {
  const Mixture *prior = bound->potential->prior->mixture;
  const int d = prior->d;
  const double weight = bound->potential->prior_weight;
  double top = -INFINITY, sum = 0;
  for (int c = 0; c < prior->components; c++) top = fmax(top, component_energy(prior, c, mean, variance));
  for (int c = 0; c < prior->components; c++) sum += exp(component_energy(prior, c, mean, variance) - top);
  for (int c = 0; gradient && c < prior->components; c++) {
    const double *precision = prior->precision + (size_t)c * (size_t)(d * d);
    const double share = weight * exp(component_energy(prior, c, mean, variance) - top) / sum;
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) {
        gradient[i] += share * precision[i * d + j] * (mean[j] - prior->mean[c * d + j]);
        hessian[i * d + j] += share * precision[i * d + j];
      }
  }
  return weight * (top + log(sum));
}

/* Rows of the run from `first` on, [ROWS, NODES]: rewards, and u at every node; phi goes to bound->phi. */
static void place_nodes(const VtsBound *bound, const double *mean, const double *variance, int first,
                        int rows, double *y, double *u) {
  const History *history = bound->potential->view.history;
  for (int r = 0; r < rows; r++) {
    double middle = 0, square = 0, *phi = bound->phi + r * history->d;
    const double reward = history_observation(history, bound->run, first + r, 1, phi);
    for (int i = 0; i < history->d; i++) {
      middle += phi[i] * mean[i];
      square += phi[i] * phi[i] * variance[i];
    }
    const double deviation = sqrt(square);
    for (int k = 0; k < VTS_NODES; k++) {
      y[r * VTS_NODES + k] = reward;
      u[r * VTS_NODES + k] = fmax(-FARTHEST, fmin(FARTHEST, middle + deviation * bound->node[k]));
    }
  }
}

static void vts_bound_add_row(int d, const double *phi, double slope, double curvature, double *gradient,
                              double *hessian) {
  for (int i = 0; i < d; i++) {
    gradient[i] -= slope * phi[i];
    for (int j = 0; j < d; j++) hessian[i * d + j] -= curvature * phi[i] * phi[j];
  }
}

static double rows_part(const VtsBound *bound, const double *mean, const double *variance, double *gradient,
                        double *hessian) {
  const History *history = bound->potential->view.history;
  const Likelihood *likelihood = history->likelihood;
  const double weight = bound->potential->likelihood_weight * history->temper;
  const int total = history_observations(history, bound->run);
  double energy = 0, y[CELLS], u[CELLS], deviance[CELLS], slope[CELLS], curvature[CELLS];
  for (int first = 0; first < total; first += ROWS) {
    const int rows = total - first < ROWS ? total - first : ROWS;
    place_nodes(bound, mean, variance, first, rows, y, u);
    likelihood->ops->deviance(likelihood, rows * VTS_NODES, y, u, deviance);
    for (int k = 0; k < rows * VTS_NODES; k++)
      energy -= 0.5 * weight * bound->node_weight[k % VTS_NODES] * deviance[k];
    if (!gradient) continue;
    likelihood->ops->derivatives(likelihood, rows * VTS_NODES, y, u, slope, curvature);
    for (int r = 0; r < rows; r++) {
      double first_order = 0, second_order = 0;
      for (int k = 0; k < VTS_NODES; k++) {
        first_order += weight * bound->node_weight[k] * slope[r * VTS_NODES + k];
        second_order += weight * bound->node_weight[k] * curvature[r * VTS_NODES + k];
      }
      vts_bound_add_row(history->d, bound->phi + r * history->d, first_order, second_order, gradient,
                        hessian);
    }
  }
  return energy;
}

static double energy_of(const VtsBound *bound, const double *mean, const double *variance, double *gradient,
                        double *hessian) {
  const Potential *potential = bound->potential;
  const size_t d = (size_t)potential->d;
  if (gradient) {
    memset(gradient, 0, d * sizeof *gradient);
    memset(hessian, 0, d * d * sizeof *hessian);
  }
  double energy = quadratic_part(bound, mean, variance, gradient, hessian);
  if (!potential->closed_prior) energy += prior_part(bound, mean, variance, gradient, hessian);
  if (!potential->conjugate) energy += rows_part(bound, mean, variance, gradient, hessian);
  return energy;
}

/* ---- the entropy bound */

typedef struct {
  double overlap[VTS_COMPONENTS][VTS_COMPONENTS]; /* log N(mu_m; mu_j, diag(v_m + v_j)) */
  double density[VTS_COMPONENTS]; /* log sum_j pi_j N(mu_m; mu_j, diag(v_m + v_j)) */
  double value;
} Entropy;

static double log_overlap(const VtsMixture *q, int m, int j) {
  double log_density = 0;
  for (int i = 0; i < q->d; i++) {
    const double variance = q->variance[m * q->d + i] + q->variance[j * q->d + i];
    const double gap = q->mean[m * q->d + i] - q->mean[j * q->d + i];
    log_density -= 0.5 * (log(2 * M_PI * variance) + gap * gap / variance);
  }
  return log_density;
}

static Entropy entropy_of(const VtsMixture *q) {
  Entropy out = {.value = 0};
  for (int m = 0; m < q->components; m++) {
    double top = -INFINITY, sum = 0;
    for (int j = 0; j < q->components; j++) {
      out.overlap[m][j] = log_overlap(q, m, j);
      top = fmax(top, out.overlap[m][j]);
    }
    for (int j = 0; j < q->components; j++) sum += q->weight[j] * exp(out.overlap[m][j] - top);
    out.density[m] = top + log(sum);
    out.value -= q->weight[m] * out.density[m];
  }
  return out;
}

/* Derivatives with respect to mu_m and v_m, divided by pi_m. */
static void entropy_slopes(const VtsMixture *q, const Entropy *entropy, int m, double *mean,
                           double *variance) {
  const int d = q->d;
  memset(mean, 0, (size_t)d * sizeof *mean);
  memset(variance, 0, (size_t)d * sizeof *variance);
  for (int j = 0; j < q->components; j++) {
    double share = q->weight[j] * exp(entropy->overlap[m][j] - entropy->density[m]);
    if (j != m) share += q->weight[j] * exp(entropy->overlap[m][j] - entropy->density[j]);
    for (int i = 0; i < d; i++) {
      const double gap = q->mean[m * d + i] - q->mean[j * d + i];
      const double total = q->variance[m * d + i] + q->variance[j * d + i];
      mean[i] += share * gap / total;
      if (j == m)
        variance[i] += share / total; /* its variance counts twice */
      else
        variance[i] += 0.5 * share * (1 - gap * gap / total) / total;
    }
  }
}

/* ---- steps */

double vts_bound_value(VtsBound *bound, const VtsMixture *q) {
  double value = entropy_of(q).value;
  for (int m = 0; m < q->components; m++)
    value += q->weight[m] * energy_of(bound, q->mean + m * q->d, q->variance + m * q->d, NULL, NULL);
  return value;
}

/* The way of component m: bound->step and bound->growth. Both make F rise at first: H is positive definite,
 * and growth_i has the sign of dF / dv_i. */
static void aim(VtsBound *bound, const VtsMixture *q, const Entropy *entropy, int m, int64_t *fallbacks) {
  const int d = q->d;
  int jitters = 0;
  energy_of(bound, q->mean + m * d, q->variance + m * d, bound->gradient, bound->hessian);
  entropy_slopes(q, entropy, m, bound->entropy_mean, bound->entropy_variance);
  memcpy(bound->factor, bound->hessian, (size_t)(d * d) * sizeof *bound->factor);
  for (int i = 0; i < d; i++) {
    const double ratio = 2 * bound->entropy_variance[i] / bound->hessian[i * d + i];
    bound->step[i] = bound->entropy_mean[i] - bound->gradient[i];
    bound->growth[i] = log(ratio > 0 ? fmax(1e-4, fmin(1e4, ratio)) : 0.1);
  }
  linalg_cholesky_lanes(d, 1, bound->factor, &jitters);
  linalg_solve_lanes(d, 1, bound->factor, bound->step);
  *fallbacks += jitters;
}

/* Component m along its way; energy[m] and *value follow. */
static void move_component(VtsBound *bound, VtsMixture *q, int m, double *energy, double *value,
                           int64_t *fallbacks) {
  const size_t d = (size_t)q->d;
  double *mean = q->mean + (size_t)m * d, *variance = q->variance + (size_t)m * d, length = 1;
  const Entropy before = entropy_of(q);
  aim(bound, q, &before, m, fallbacks);
  memcpy(bound->old_mean, mean, d * sizeof *mean);
  memcpy(bound->old_variance, variance, d * sizeof *variance);
  for (int k = 0; k < VTS_HALVINGS; k++, length *= 0.5) {
    for (size_t i = 0; i < d; i++) {
      mean[i] = bound->old_mean[i] + length * bound->step[i];
      variance[i] = bound->old_variance[i] * exp(length * bound->growth[i]);
    }
    const double reached = energy_of(bound, mean, variance, NULL, NULL);
    const double after = *value + q->weight[m] * (reached - energy[m]) + entropy_of(q).value - before.value;
    if (!isfinite(after) || after < *value) continue;
    energy[m] = reached, *value = after;
    return;
  }
  memcpy(mean, bound->old_mean, d * sizeof *mean);
  memcpy(variance, bound->old_variance, d * sizeof *variance);
}

static double weighted_energy(const VtsMixture *q, const double *energy) {
  double sum = entropy_of(q).value;
  for (int m = 0; m < q->components; m++) sum += q->weight[m] * energy[m];
  return sum;
}

static void move_weights(VtsMixture *q, const double *energy, double *value) {
  const int components = q->components;
  double old[VTS_COMPONENTS], slope[VTS_COMPONENTS], top = -INFINITY, length = 1;
  const Entropy entropy = entropy_of(q);
  memcpy(old, q->weight, (size_t)components * sizeof *old);
  for (int m = 0; m < components; m++) {
    slope[m] = energy[m] - entropy.density[m];
    for (int k = 0; k < components; k++)
      slope[m] -= q->weight[k] * exp(entropy.overlap[k][m] - entropy.density[k]);
    top = fmax(top, slope[m]);
  }
  for (int k = 0; k < VTS_HALVINGS; k++, length *= 0.5) {
    double sum = 0;
    for (int m = 0; m < components; m++) {
      q->weight[m] = fmax(VTS_LEAST_WEIGHT, old[m] * exp(length * (slope[m] - top)));
      sum += q->weight[m];
    }
    for (int m = 0; m < components; m++) q->weight[m] /= sum;
    const double after = weighted_energy(q, energy);
    if (!isfinite(after) || after < *value) continue;
    *value = after;
    return;
  }
  memcpy(q->weight, old, (size_t)components * sizeof *old);
}

double vts_bound_step(VtsBound *bound, VtsMixture *q, int64_t *fallbacks) {
  double energy[VTS_COMPONENTS] = {0};
  ASSERT(q->components <= VTS_COMPONENTS);
  for (int m = 0; m < q->components; m++)
    energy[m] = energy_of(bound, q->mean + m * q->d, q->variance + m * q->d, NULL, NULL);
  double value = weighted_energy(q, energy);
  for (int m = 0; m < q->components; m++) move_component(bound, q, m, energy, &value, fallbacks);
  if (q->components > 1) move_weights(q, energy, &value);
  return value;
}

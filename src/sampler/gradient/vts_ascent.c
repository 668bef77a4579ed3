#include "sampler/gradient/vts_ascent.h"

#include "core/linalg/linalg_real.h"
#include "core/linalg/quadrature.h"

static const double FARTHEST = 300; /* largest |u|, so that expectations of exp(u) stay finite */

Status vts_ascent_create(Arena *memory, const Potential *potential, int components, VtsAscent *out) {
  const size_t d = (size_t)potential->d,
               prior_components = potential->closed_prior ? 0 : (size_t)potential->prior->mixture->components;
  *out = (VtsAscent){.potential = potential, .d = potential->d, .components = components};
  ALLOCATE_ARRAYS(memory, d * d, &out->precision, &out->root);
  out->fixed_hessian = potential_has_fixed_hessian(potential);
  if (out->fixed_hessian)
    out->hessian = out->precision;
  else
    ALLOCATE(memory, out->hessian, d * d);
  ALLOCATE(memory, out->energy, components);
  ALLOCATE(memory, out->image, (size_t)components * d);
  ALLOCATE_ARRAYS(memory, d, &out->vector, &out->step, &out->column, &out->phi, &out->growth, &out->old_mean,
                  &out->old_variance);
  ALLOCATE(memory, out->share, prior_components);
  return quadrature_hermite(VTS_NODES, out->node, out->node_weight);
}

/* ---- e_m: E[-U] under component m, the sum of a quadratic part, a bound for the prior, and the rows. With
 * `slopes` their gradients are added to `step`, and their Hessians subtracted from `hessian`. */

/* Returns a lower bound on E_q[log p(theta)] under Gaussian m, times the weight of the prior: the logarithm
 * of sum_c exp(E_q[log w_c N(theta; mu_c, Sigma_c)]), by Jensen's inequality. With `slopes` its derivatives
 * go into step and hessian. */
static Real log_prior_bound(const VtsAscent *at, int m, bool slopes) {
  const Mixture *prior = at->potential->prior->mixture;
  const int d = at->d;
  const double weight = at->potential->prior_weight;
  const Real *mean = at->q.mean + m * d, *variance = at->q.variance + m * d;
  Real top = real_of(-INFINITY), sum = {0};
  for (int c = 0; c < prior->components; c++) {
    const double *centre = prior->mean + c * d, *precision = mixture_precision(prior, c);
    Real energy = real_of(prior->log_norm[c]); /* E[log w_c N(theta; mu_c, Sigma_c)] */
    for (int i = 0; i < d; i++) {
      Real image = {0};
      for (int j = 0; j < d; j++) image += precision[i * d + j] * (mean[j] - centre[j]);
      energy -= 0.5 * (image * (mean[i] - centre[i]) + precision[i * d + i] * variance[i]);
    }
    at->share[c] = energy;
    top = real_max(energy, top);
  }
  for (int c = 0; c < prior->components; c++) {
    at->share[c] = real_exp(at->share[c] - top);
    sum += at->share[c];
  }
  const Real bound = weight * (top + real_log(sum));
  if (!slopes) return bound;
  for (int c = 0; c < prior->components; c++) {
    const double *centre = prior->mean + c * d, *precision = mixture_precision(prior, c);
    const Real share = weight * at->share[c] / sum;
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) {
        at->step[i] -= share * precision[i * d + j] * (mean[j] - centre[j]);
        at->hessian[i * d + j] += share * precision[i * d + j];
      }
  }
  return bound;
}

/* Loads phi of one row of every run and returns the rewards. *present is 0 in runs without such a row. */
static Real vts_ascent_load_row(const VtsAscent *at, int row, Real *present) {
  const History *history = at->potential->view.history;
  Real reward = {0};
  *present = (Real){0};
  memset(at->phi, 0, (size_t)at->d * sizeof *at->phi);
  for (int n = 0; n < at->count; n++) {
    if (row >= history_observations(history, at->first + n)) continue;
    reward[n] = history_observation(history, at->first + n, row, VECTOR_LANES, (double *)at->phi + n);
    (*present)[n] = 1;
  }
  return reward;
}

/* Returns the energy of the rows, whose u = phi' theta is normal under the component. */
static Real vts_ascent_rows_energy(const VtsAscent *at, int m, bool slopes) {
  const int d = at->d;
  const History *history = at->potential->view.history;
  const Likelihood *likelihood = history->likelihood;
  const Real *mean = at->q.mean + m * d, *variance = at->q.variance + m * d;
  Real energy = {0}, y[VTS_NODES], u[VTS_NODES], deviance[VTS_NODES], slope[VTS_NODES], curvature[VTS_NODES];
  for (int row = 0; row < at->rows; row++) {
    Real present, middle = {0}, square = {0}, sum = {0}, first = {0}, second = {0};
    const Real reward = vts_ascent_load_row(at, row, &present);
    const Real weight = at->potential->likelihood_weight * history->temper * present;
    for (int i = 0; i < d; i++) {
      middle += at->phi[i] * mean[i];
      square += at->phi[i] * at->phi[i] * variance[i];
    }
    square = real_root(square);
    for (int k = 0; k < VTS_NODES; k++) {
      y[k] = reward;
      u[k] = real_within(FARTHEST, middle + square * at->node[k]);
    }
    likelihood->ops->deviance(likelihood, VTS_NODES * VECTOR_LANES, (double *)y, (double *)u,
                              (double *)deviance);
    for (int k = 0; k < VTS_NODES; k++) sum += at->node_weight[k] * deviance[k];
    energy += -0.5 * weight * sum;
    if (!slopes) continue;
    likelihood->ops->derivatives(likelihood, VTS_NODES * VECTOR_LANES, (double *)y, (double *)u,
                                 (double *)slope, (double *)curvature);
    for (int k = 0; k < VTS_NODES; k++) {
      first += weight * at->node_weight[k] * slope[k];
      second += weight * at->node_weight[k] * curvature[k];
    }
    for (int i = 0; i < d; i++) {
      at->step[i] += first * at->phi[i];
      for (int j = 0; j <= i; j++) at->hessian[i * d + j] -= second * at->phi[i] * at->phi[j];
    }
  }
  return energy;
}

static Real vts_ascent_energy(const VtsAscent *at, int m) {
  const int d = at->d;
  const Real *mean = at->q.mean + m * d, *variance = at->q.variance + m * d;
  Real *image = at->image + m * d, energy = {0};
  linalg_real_multiply(d, at->precision, mean, image);
  for (int i = 0; i < d; i++) {
    const Real spread = 0.5 * at->precision[i * d + i] * variance[i];
    energy += mean[i] * (at->vector[i] - 0.5 * image[i]) - (spread + 0.0);
  }
  if (!at->potential->closed_prior) energy += log_prior_bound(at, m, false);
  return energy + vts_ascent_rows_energy(at, m, false);
}

/* ---- the bound */

/* Computes the log of the overlap of component m with every j. Each logarithm is taken of the product of a
 * few variances, which is far from overflow and underflow. */
static void vts_ascent_find_overlaps(VtsAscent *at, int m) {
  enum { TOGETHER = 4 };
  const int d = at->d;
  const Real *mean = at->q.mean + m * d, *variance = at->q.variance + m * d;
  for (int j = 0; j < at->components; j++) {
    const Real *other_mean = at->q.mean + j * d, *other_variance = at->q.variance + j * d;
    Real sum = {0};
    for (int first = 0; first < d; first += TOGETHER) {
      Real product = real_of(1);
      for (int i = first; i < d && i < first + TOGETHER; i++) {
        const Real total = variance[i] + other_variance[i], gap = mean[i] - other_mean[i];
        product *= 2 * M_PI * total;
        sum += gap * gap / total;
      }
      sum += real_log(product);
    }
    at->entropy.overlap[m][j] = at->entropy.overlap[j][m] = -0.5 * sum;
  }
}

/* Computes densities and bound from the overlaps. */
static void vts_ascent_find_entropy(VtsAscent *at) {
  VtsEntropy *entropy = &at->entropy;
  entropy->value = (Real){0};
  for (int m = 0; m < at->components; m++) {
    Real top = entropy->overlap[m][0], sum = {0};
    for (int j = 1; j < at->components; j++) top = real_max(entropy->overlap[m][j], top);
    for (int j = 0; j < at->components; j++) sum += at->q.weight[j] * real_exp(entropy->overlap[m][j] - top);
    entropy->density[m] = top + real_log(sum);
    entropy->value -= at->q.weight[m] * entropy->density[m];
  }
}

static Real vts_ascent_bound(const VtsAscent *at) {
  Real value = at->entropy.value;
  for (int m = 0; m < at->components; m++) value += at->q.weight[m] * at->energy[m];
  return value;
}

/* ---- steps */

static void vts_ascent_factorise(VtsAscent *at, Mask active) {
  Real bad = {0};
  memcpy(at->root, at->hessian, (size_t)(at->d * at->d) * sizeof *at->root);
  linalg_real_cholesky(at->d, at->root, at->column, &bad);
  linalg_real_invert_triangle(at->d, at->root, at->column);
  at->jitters += real_choose(active, bad, real_of(0));
}

/* Finds the direction of component m: step = H^-1 (s_mu / pi_m - E[grad U]), growth = log of the ratio of new
 * to old variances. Along both F rises at first: H is positive definite, and growth_i has the sign of dF /
 * dv_i. */
static void vts_ascent_aim_component(VtsAscent *at, int m, Mask active) {
  const int d = at->d;
  const Real *mean = at->q.mean + m * d, *variance = at->q.variance + m * d;
  for (int i = 0; i < d; i++) {
    at->step[i] = at->vector[i] - at->image[m * d + i];
    at->growth[i] = (Real){0};
  }
  if (!at->fixed_hessian) {
    memcpy(at->hessian, at->precision, (size_t)(d * d) * sizeof *at->hessian);
    if (!at->potential->closed_prior) log_prior_bound(at, m, true);
    vts_ascent_rows_energy(at, m, true);
    vts_ascent_factorise(at, active);
  }
  for (int j = 0; j < at->components; j++) {
    Real share = real_exp(at->entropy.overlap[m][j] - at->entropy.density[m]);
    if (j != m) share += real_exp(at->entropy.overlap[m][j] - at->entropy.density[j]);
    share *= at->q.weight[j];
    for (int i = 0; i < d; i++) {
      const Real gap = mean[i] - at->q.mean[j * d + i], total = variance[i] + at->q.variance[j * d + i];
      const Real part = share / total;
      at->step[i] += part * gap;
      at->growth[i] += j == m ? part : 0.5 * part * (1 - gap * gap / total); /* with itself, twice */
    }
  }
  linalg_real_lower(d, at->root, at->step, at->column);
  linalg_real_lower_transposed(d, at->root, at->column, at->step);
  for (int i = 0; i < d; i++) {
    const Real ratio = 2 * at->growth[i] / at->hessian[i * d + i];
    const Real inside =
        real_max(real_of(1e-4), real_choose(real_above(ratio, real_of(1e4)), real_of(1e4), ratio));
    at->growth[i] = real_log(real_choose(real_above(ratio, real_of(0)), inside, real_of(0.1)));
  }
}

/* Halves the lengths of the runs whose F falls, down to 0 after VTS_HALVINGS tries. Returns whether there are
 * none. A run whose length stays will get the same numbers again. */
static bool vts_ascent_halve_lengths(const VtsAscent *at, Real after, int tries, Real *length) {
  const Mask kept = (*length == 0) | (~(after < at->value) & (after > -INFINITY) & (after < INFINITY));
  const Real shorter = tries + 1 < VTS_HALVINGS ? 0.5 * *length : (Real){0};
  *length = real_choose(kept, *length, shorter);
  return real_everywhere(kept);
}

/* Moves component m along its direction, all the way or by a share `length` at which F does not fall; a
 * length of 0 puts it back exactly where it was. */
static void vts_ascent_move_component(VtsAscent *at, int m, Mask active) {
  const int d = at->d;
  const size_t bytes = (size_t)d * sizeof(Real);
  Real *mean = at->q.mean + m * d, *variance = at->q.variance + m * d;
  const Real before = at->entropy.value;
  Real length = real_choose(active, real_of(1), real_of(0)), energy, after;
  vts_ascent_aim_component(at, m, active);
  memcpy(at->old_mean, mean, bytes);
  memcpy(at->old_variance, variance, bytes);
  for (int tries = 0;; tries++) {
    const Mask still = length == 0;
    for (int i = 0; i < d; i++) {
      const Real to = at->old_mean[i] + length * at->step[i];
      const Real wide = at->old_variance[i] * real_exp(length * at->growth[i]);
      mean[i] = real_choose(still, at->old_mean[i], to);
      variance[i] = real_choose(still, at->old_variance[i], wide);
    }
    energy = vts_ascent_energy(at, m);
    vts_ascent_find_overlaps(at, m);
    vts_ascent_find_entropy(at);
    after = at->value + at->q.weight[m] * (energy - at->energy[m]) + at->entropy.value - before;
    if (vts_ascent_halve_lengths(at, after, tries, &length)) break;
  }
  at->energy[m] = energy;
  at->value = real_choose(length != 0, after, at->value);
}

/* Multiplies every pi_m by exp(length slope_m), with a length at which F does not fall, and normalises; where
 * the length is 0, the weights stay. */
static void vts_ascent_move_weights(VtsAscent *at, Mask active) {
  const VtsEntropy *entropy = &at->entropy;
  Real old[VTS_COMPONENTS], slope[VTS_COMPONENTS], top = real_of(-INFINITY), after;
  Real length = real_choose(active, real_of(1), real_of(0));
  for (int m = 0; m < at->components; m++) {
    old[m] = at->q.weight[m];
    slope[m] = at->energy[m] - entropy->density[m];
    for (int k = 0; k < at->components; k++)
      slope[m] -= at->q.weight[k] * real_exp(entropy->overlap[k][m] - entropy->density[k]);
    top = real_max(slope[m], top);
  }
  for (int m = 0; m < at->components; m++) slope[m] -= top;
  for (int tries = 0;; tries++) {
    Real sum = {0};
    for (int m = 0; m < at->components; m++) {
      at->q.weight[m] = real_max(real_of(VTS_LEAST_WEIGHT), old[m] * real_exp(length * slope[m]));
      sum += at->q.weight[m];
    }
    for (int m = 0; m < at->components; m++)
      at->q.weight[m] = real_choose(length == 0, old[m], at->q.weight[m] / sum);
    vts_ascent_find_entropy(at);
    after = vts_ascent_bound(at);
    if (vts_ascent_halve_lengths(at, after, tries, &length)) break;
  }
  at->value = real_choose(length != 0, after, at->value);
}

/* ---- runs */

/* Returns the number of rows of the longest history of these runs; 0 if the potential has them all in its
 * evidence. */
static int vts_ascent_longest(const Potential *potential, int first, int count) {
  int longest = 0;
  if (potential->conjugate) return 0;
  for (int n = 0; n < count; n++) {
    const int rows = history_observations(potential->view.history, first + n);
    longest = rows > longest ? rows : longest;
  }
  return longest;
}

static void vts_ascent_begin(VtsAscent *at, const VtsMixture *q, int first) {
  const Potential *potential = at->potential;
  const HistoryView *view = &potential->view;
  const RealLanes runs = real_at((size_t)(first - view->first), (size_t)view->lanes);
  const int d = at->d, components = at->components, count = (int)runs.count;
  ASSERT(view->draws == 1 && first >= view->first && first < view->first + view->lanes);
  at->q = *q;
  at->first = first;
  at->count = count;
  at->jitters = (Real){0};
  real_load(runs, d * d, potential->precision, at->precision);
  real_load(runs, d, potential->vector, at->vector);
  real_pad(count, d * d, at->precision);
  real_pad(count, d, at->vector);
  real_pad(count, components, q->weight);
  real_pad(count, components * d, q->mean);
  real_pad(count, components * d, q->variance);
  at->rows = vts_ascent_longest(potential, first, count);
  if (at->fixed_hessian) vts_ascent_factorise(at, ~(Mask){0});
  for (int m = 0; m < components; m++) {
    at->energy[m] = vts_ascent_energy(at, m);
    vts_ascent_find_overlaps(at, m);
  }
  vts_ascent_find_entropy(at);
  at->value = vts_ascent_bound(at);
}

void vts_ascend(VtsAscent *self, const VtsMixture *q, int first, int steps, double enough,
                int64_t *fallbacks) {
  Mask active = ~(Mask){0};
  Real before = real_of(-INFINITY);
  vts_ascent_begin(self, q, first);
  for (int k = 0; k < steps && !real_everywhere(~active); k++) {
    self->value = vts_ascent_bound(self);
    for (int m = 0; m < self->components; m++) vts_ascent_move_component(self, m, active);
    if (self->components > 1) vts_ascent_move_weights(self, active);
    active &= ~(self->value - before <= enough);
    before = self->value;
  }
  for (int n = 0; n < self->count; n++) fallbacks[first + n] += (int64_t)self->jitters[n];
}

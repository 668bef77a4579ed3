#include "model/history/tilted_moments.h"

#include "core/real.h"

#include <stdlib.h>

enum { NODES = 2 * TILTED_PAIRS + 1 };
static const double STEP = 0.45, WIDE_STEP = 0.9;

/* Standard deviations of u up to which WIDE_STEP leaves an error of 3e-8: with clicks, and with counts, whose
 * likelihood bends faster. */
static const double NARROW = 1.25, COUNTED_NARROW = 0.6;

/* Computes weight[pairs + 1] of nodes that are `distance` apart; returns h, which gives them variance 1. */
static double likelihood_node_weights(int pairs, double distance, double *weight) {
  double mass = 0, square = 0;
  for (int k = 0; k <= pairs; k++) {
    const double z = distance * k, both = k > 0 ? 2 : 1;
    weight[k] = exp(-0.5 * z * z);
    mass += both * weight[k];
    square += both * weight[k] * z * z;
  }
  for (int k = 0; k <= pairs; k++) weight[k] /= mass;
  return distance / sqrt(square / mass);
}

void tilted_moments_nodes(TiltedNodes *out) {
  *out = (TiltedNodes){0};
  out->step = likelihood_node_weights(TILTED_PAIRS, STEP, out->weight);
  out->wide_step = likelihood_node_weights(TILTED_FEW, WIDE_STEP, out->few_weight);
}

/* Sums over 2 pairs + 1 nodes for VECTOR_LANES cells, in units of the standard deviation, from odds =
 * exp(-w), where w is the mean in the direction of the reward, and ratio = exp(-h s): sigma(w +- k h s) = 1 /
 * (1 + odds ratio^+-k). */
INLINE void click_sums(const int pairs, double step, const double *weights, Real odds, Real ratio,
                       Real sums[3]) {
  const Real zero = {0}, one = real_of(1);
  Real power = ratio;
  Real sum = weights[0] / (one + odds), moment = zero, square = zero;
  for (int k = 1; k <= pairs; k++) {
    const double z = k * step, weight = weights[k];
    const Real above = one + odds * power, below = power + odds, inverse = weight / (above * below);
    const Real up = below * inverse, down = power * above * inverse;
    sum += up + down;
    moment += z * (up - down);
    square += z * z * (up + down);
    power *= ratio;
  }
  sums[0] = sum, sums[1] = moment / sum, sums[2] = square / sum;
}

/* Sums over the few nodes for cells that are `narrow`, and over all nodes for the others. */
INLINE void click_moments(const TiltedNodes *nodes, Mask narrow, Real odds, Real ratio, Real sums[3]) {
  Real few[3] = {{0}}, all[3] = {{0}};
  const bool none = real_everywhere(~narrow), every = real_everywhere(narrow);
  if (!none) click_sums(TILTED_FEW, nodes->wide_step, nodes->few_weight, odds, ratio, few);
  if (!every) click_sums(TILTED_PAIRS, nodes->step, nodes->weight, odds, ratio, all);
  for (int k = 0; k < 3; k++) sums[k] = every ? few[k] : none ? all[k] : real_choose(narrow, few[k], all[k]);
}

/* Standard deviation of u above which the logistic distribution is replaced by the normal one of the same
 * variance, pi^2 / 3: its fourth cumulant is 0.8% of the squared variance of both together, and nodes would
 * be too far apart. */
static const double WIDE = 6;

/* Tilts one cell in closed form: sigma(w) ~ Phi(w sqrt(3) / pi). */
static void likelihood_tilt_widely(double sign, double mean, double variance, double *log_mass, double *move,
                                   double *shrink) {
  const double total = variance + M_PI * M_PI / 3, t = sign * mean / sqrt(total), far = 30;
  /* phi(t) / Phi(t), for t below and above -far. */
  const double mills = t < -far ? -t / (1 - 1 / (t * t) + 3 / pow(t, 4))
                                : exp(-0.5 * t * t) / sqrt(2 * M_PI) / (0.5 * erfc(-t / M_SQRT2));
  *log_mass = t < -far ? -0.5 * t * t - log(sqrt(2 * M_PI) * mills) : log(0.5 * erfc(-t / M_SQRT2));
  *move = sign * variance * mills / sqrt(total);
  *shrink = 1 - variance * mills * (t + mills) / total;
}

/* Largest |m| in use: beyond it, a reward that m speaks against gets the probability that it has here. */
static const double FAR = 300;

SIMD_CLONES
void tilted_moments_of_clicks(const TiltedNodes *nodes, const TiltedCells *cells, double *log_mass,
                              double *move, double *shrink) {
  for (int from = 0; from < cells->n; from += VECTOR_LANES) {
    const int left = cells->n - from, count = left < VECTOR_LANES ? left : VECTOR_LANES;
    double sign[VECTOR_LANES], deviation[VECTOR_LANES], exponent[2 * VECTOR_LANES];
    int64_t few[VECTOR_LANES]; /* the lanes of a vector can only be written through memory or one by one */
    Real odds, ratio, sums[3];
    Mask narrow;
    for (int i = 0; i < VECTOR_LANES; i++) {
      const int k = from + (i < count ? i : 0);
      sign[i] = 2 * cells->y[k] - 1;
      deviation[i] = sqrt(cells->variance[k]);
      few[i] = deviation[i] <= NARROW ? -1 : 0;
      const double h = deviation[i] <= NARROW ? nodes->wide_step : nodes->step, w = -sign[i] * cells->mean[k],
                   s = -h * deviation[i];
      exponent[i] = w > FAR ? FAR : w < -FAR ? -FAR : w;
      exponent[VECTOR_LANES + i] = s < -FAR ? -FAR : s;
    }
    for (int i = 0; i < 2 * VECTOR_LANES; i++) exponent[i] = special_exp_inside(exponent[i]);
    memcpy(&odds, exponent, sizeof odds);
    memcpy(&ratio, exponent + VECTOR_LANES, sizeof ratio);
    memcpy(&narrow, few, sizeof narrow);
    click_moments(nodes, narrow, odds, ratio, sums);
    sums[0] = real_log(sums[0]);
    for (int i = 0; i < count; i++) {
      log_mass[from + i] = sums[0][i];
      move[from + i] = sign[i] * deviation[i] * sums[1][i];
      shrink[from + i] = sums[2][i] - sums[1][i] * sums[1][i];
      if (deviation[i] > WIDE)
        likelihood_tilt_widely(sign[i], cells->mean[from + i], cells->variance[from + i], &log_mass[from + i],
                               &move[from + i], &shrink[from + i]);
    }
  }
}

/* Cells from .. from + VECTOR_LANES - 1 of any likelihood; past the last cell, copies of the first of
 * them. */
typedef struct {
  double y[VECTOR_LANES], counts[VECTOR_LANES], mean[VECTOR_LANES], variance[VECTOR_LANES];
  double centre[VECTOR_LANES], spread[VECTOR_LANES], deviation[VECTOR_LANES];
  double log_mass[VECTOR_LANES], move[VECTOR_LANES], shrink[VECTOR_LANES];
} TiltedGroup;

static void likelihood_load_cells(const TiltedCells *cells, int from, int count, const double *centre,
                                  const double *spread, TiltedGroup *out) {
  for (int i = 0; i < VECTOR_LANES; i++) {
    const int k = from + (i < count ? i : 0);
    out->y[i] = cells->y[k], out->counts[i] = cells->counts[k];
    out->mean[i] = cells->mean[k], out->variance[i] = cells->variance[k];
    out->centre[i] = centre[k], out->spread[i] = spread[k];
    out->deviation[i] = sqrt(spread[k]);
  }
}

/* Computes u[2 pairs + 1, VECTOR_LANES] at the nodes, and repeats y for each. */
SIMD_CLONES
static void likelihood_place_nodes(int pairs, double step, const TiltedGroup *group, double *restrict u,
                                   double *restrict y) {
  for (int k = 0; k <= 2 * pairs; k++)
    for (int i = 0; i < VECTOR_LANES; i++) {
      u[k * VECTOR_LANES + i] = group->centre[i] + (k - pairs) * step * group->deviation[i];
      y[k * VECTOR_LANES + i] = group->y[i];
    }
}

/* Sums over the nodes, from their u and deviances. */
SIMD_CLONES
static void likelihood_sum_nodes(int pairs, double step, const double *weights, const double *restrict u,
                                 double *restrict deviance, TiltedGroup *restrict group) {
  double top[VECTOR_LANES], mass[VECTOR_LANES] = {0}, first[VECTOR_LANES] = {0}, second[VECTOR_LANES] = {0};
  for (int i = 0; i < VECTOR_LANES; i++) top[i] = -INFINITY;
  for (int k = 0; k <= 2 * pairs; k++)
    for (int i = 0; i < VECTOR_LANES; i++) {
      const double z = (k - pairs) * step, off = u[k * VECTOR_LANES + i] - group->mean[i];
      double *x = &deviance[k * VECTOR_LANES + i];
      *x = 0.5 * (z * z - group->counts[i] * *x - off * off / group->variance[i]);
      top[i] = *x > top[i] ? *x : top[i];
    }
  for (int k = 0; k <= 2 * pairs; k++) {
    const double z = (k - pairs) * step, own = weights[abs(k - pairs)];
    for (int i = 0; i < VECTOR_LANES; i++) {
      const double weight = own * special_exp(deviance[k * VECTOR_LANES + i] - top[i]);
      mass[i] += weight, first[i] += weight * z, second[i] += weight * z * z;
    }
  }
  for (int i = 0; i < VECTOR_LANES; i++) {
    first[i] /= mass[i], second[i] /= mass[i];
    group->log_mass[i] = top[i];
    group->move[i] = group->centre[i] - group->mean[i] + group->deviation[i] * first[i];
    group->shrink[i] = group->spread[i] / group->variance[i] * (second[i] - first[i] * first[i]);
  }
  for (int i = 0; i < VECTOR_LANES; i++)
    group->log_mass[i] += log(mass[i]) + 0.5 * log(group->spread[i] / group->variance[i]);
}

/* Finds the moments of a group with the few nodes, or with all. */
static void likelihood_tilt_group(const TiltedNodes *nodes, bool few, const Likelihood *likelihood,
                                  TiltedGroup *group) {
  const int pairs = few ? TILTED_FEW : TILTED_PAIRS;
  const double step = few ? nodes->wide_step : nodes->step;
  double u[NODES * VECTOR_LANES], y[NODES * VECTOR_LANES], deviance[NODES * VECTOR_LANES];
  likelihood_place_nodes(pairs, step, group, u, y);
  likelihood->ops->deviance(likelihood, (2 * pairs + 1) * VECTOR_LANES, y, u, deviance);
  likelihood_sum_nodes(pairs, step, few ? nodes->few_weight : nodes->weight, u, deviance, group);
}

void tilted_moments(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                    const double *centre, const double *spread, double *log_mass, double *move,
                    double *shrink) {
  for (int from = 0; from < cells->n; from += VECTOR_LANES) {
    const int left = cells->n - from, count = left < VECTOR_LANES ? left : VECTOR_LANES;
    TiltedGroup group[2];
    int narrow = 0;
    likelihood_load_cells(cells, from, count, centre, spread, &group[0]);
    for (int i = 0; i < VECTOR_LANES; i++) narrow += group[0].deviation[i] <= COUNTED_NARROW;
    group[1] = group[0];
    if (narrow < VECTOR_LANES) likelihood_tilt_group(nodes, false, likelihood, &group[0]);
    if (narrow > 0) likelihood_tilt_group(nodes, true, likelihood, &group[1]);
    for (int i = 0; i < count; i++) {
      const TiltedGroup *own = &group[group[0].deviation[i] <= COUNTED_NARROW];
      log_mass[from + i] = own->log_mass[i];
      move[from + i] = own->move[i];
      shrink[from + i] = own->shrink[i];
    }
  }
}

#include "model/history/history_tilted.h"

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

void history_tilted_nodes(TiltedNodes *out) {
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
void history_tilted_moments_of_clicks(const TiltedNodes *nodes, const TiltedCells *cells,
                                      TiltedMoments *out) {
  const Real sign = 2 * cells->y - 1, deviation = real_root(cells->variance);
  const Mask narrow = ~real_above(deviation, real_of(NARROW));
  const Real h = real_choose(narrow, real_of(nodes->wide_step), real_of(nodes->step)),
             odds = real_exp(real_within(FAR, -sign * cells->mean)),
             ratio = real_exp(real_max(real_of(-FAR), -h * deviation));
  Real sums[3];
  click_moments(nodes, narrow, odds, ratio, sums);
  *out = (TiltedMoments){real_log(sums[0]), sign * deviation * sums[1], sums[2] - sums[1] * sums[1]};
  for (int n = 0; n < VECTOR_LANES; n++) {
    double wide[3];
    if (!(deviation[n] > WIDE)) continue;
    likelihood_tilt_widely(sign[n], cells->mean[n], cells->variance[n], &wide[0], &wide[1], &wide[2]);
    out->log_mass[n] = wide[0], out->move[n] = wide[1], out->shrink[n] = wide[2];
  }
}

/* Computes the exponents of the weights from u[k, n] and the deviances in exponent[k, n]; `top`, the largest;
 * and the sums over nodes of weight, weight z and weight z^2, divided by exp(top). Loops over lanes: AVX2
 * takes half the time for them, since gcc splits vectors of eight badly. */
SIMD_CLONES
static void likelihood_sum_nodes(int pairs, double step, const double *weights, const double *restrict u,
                                 const TiltedCells *cells, double *restrict exponent, Real *out_top,
                                 Real out_sums[3]) {
  double mean[VECTOR_LANES], counts[VECTOR_LANES], variance[VECTOR_LANES], top[VECTOR_LANES];
  double sums[3][VECTOR_LANES] = {{0}};
  memcpy(mean, &cells->mean, sizeof mean);
  memcpy(counts, &cells->counts, sizeof counts);
  memcpy(variance, &cells->variance, sizeof variance);
  for (int n = 0; n < VECTOR_LANES; n++) top[n] = -INFINITY;
  for (int k = 0; k <= 2 * pairs; k++)
    for (int n = 0; n < VECTOR_LANES; n++) {
      const double z = (k - pairs) * step, off = u[k * VECTOR_LANES + n] - mean[n];
      double *x = &exponent[k * VECTOR_LANES + n];
      *x = 0.5 * (z * z - counts[n] * *x - off * off / variance[n]);
      top[n] = *x > top[n] ? *x : top[n];
    }
  for (int k = 0; k <= 2 * pairs; k++) {
    const double z = (k - pairs) * step, own = weights[abs(k - pairs)];
    for (int n = 0; n < VECTOR_LANES; n++) {
      const double weight = own * special_exp(exponent[k * VECTOR_LANES + n] - top[n]);
      sums[0][n] += weight, sums[1][n] += weight * z, sums[2][n] += weight * z * z;
    }
  }
  memcpy(out_top, top, sizeof top);
  memcpy(out_sums, sums, sizeof sums);
}

/* Finds the moments with the few nodes, or with all. */
SIMD_CLONES
static void likelihood_tilt_cells(const TiltedNodes *nodes, bool few, const Likelihood *likelihood,
                                  const TiltedCells *cells, const Real *centre, const Real *spread,
                                  TiltedMoments *out) {
  const int pairs = few ? TILTED_FEW : TILTED_PAIRS;
  const double step = few ? nodes->wide_step : nodes->step,
               *weights = few ? nodes->few_weight : nodes->weight;
  const Real deviation = real_root(*spread), ratio = *spread / cells->variance;
  Real u[NODES], y[NODES], deviance[NODES], top, sums[3];
  for (int k = 0; k <= 2 * pairs; k++) {
    u[k] = *centre + (k - pairs) * step * deviation;
    y[k] = cells->y;
  }
  likelihood->ops->deviance(likelihood, (2 * pairs + 1) * VECTOR_LANES, (double *)y, (double *)u,
                            (double *)deviance);
  likelihood_sum_nodes(pairs, step, weights, (double *)u, cells, (double *)deviance, &top, sums);
  const Real first = sums[1] / sums[0], second = sums[2] / sums[0];
  for (int n = 0; n < VECTOR_LANES; n++) out->log_mass[n] = top[n] + (log(sums[0][n]) + 0.5 * log(ratio[n]));
  out->move = *centre - cells->mean + deviation * first;
  out->shrink = ratio * (second - first * first);
}

SIMD_CLONES
void history_tilted_moments(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                            const Real *centre, const Real *spread, TiltedMoments *out) {
  TiltedMoments all = {.log_mass = {0}}, few = all;
  const Mask narrow = ~real_above(real_root(*spread), real_of(COUNTED_NARROW));
  if (!real_everywhere(narrow)) likelihood_tilt_cells(nodes, false, likelihood, cells, centre, spread, &all);
  if (!real_everywhere(~narrow)) likelihood_tilt_cells(nodes, true, likelihood, cells, centre, spread, &few);
  out->log_mass = real_choose(narrow, few.log_mass, all.log_mass);
  out->move = real_choose(narrow, few.move, all.move);
  out->shrink = real_choose(narrow, few.shrink, all.shrink);
}

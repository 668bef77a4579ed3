#include "model/history/tilted_moments.h"

#include "core/real.h"
#include "core/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 2 * TILTED_PAIRS + 1 };
static const double STEP = 0.45;

void tilted_moments_nodes(TiltedNodes *out) {
  double mass = 0, square = 0;
  for (int k = 0; k <= TILTED_PAIRS; k++) {
    const double z = STEP * k, both = k > 0 ? 2 : 1;
    out->weight[k] = exp(-0.5 * z * z);
    mass += both * out->weight[k];
    square += both * out->weight[k] * z * z;
  }
  for (int k = 0; k <= TILTED_PAIRS; k++) out->weight[k] /= mass;
  out->step = STEP / sqrt(square / mass);
}

/* Adds up the nodes for VECTOR_LANES cells, in units of the standard deviation, from odds = exp(-w), w the
 * mean in the direction of the reward, and ratio = exp(-h s): sigma(w +- k h s) = 1 / (1 + odds
 * ratio^+-k). */
INLINE void click_sums(const TiltedNodes *nodes, Real odds, Real ratio, Real *mass, Real *first,
                       Real *second) {
  const Real zero = {0}, one = real_of(1);
  Real power = ratio;
  Real sum = nodes->weight[0] / (one + odds), moment = zero, square = zero;
  for (int k = 1; k <= TILTED_PAIRS; k++) {
    const double z = k * nodes->step, weight = nodes->weight[k];
    const Real above = one + odds * power, below = power + odds, inverse = weight / (above * below);
    const Real up = below * inverse, down = power * above * inverse;
    sum += up + down;
    moment += z * (up - down);
    square += z * z * (up + down);
    power *= ratio;
  }
  *mass = sum, *first = moment / sum, *second = square / sum;
}

/* Standard deviations of u from which on the logistic distribution counts as the normal one of its variance,
 * pi^2 / 3, in whose place it stands: its fourth cumulant is 6e-4 of theirs together, and nodes would be too
 * far apart. */
static const double WIDE = 6;

/* Tilts one cell in closed form: sigma(w) ~ Phi(w sqrt(3) / pi). */
static void tilt_widely(double sign, double mean, double variance, double *log_mass, double *move,
                        double *shrink) {
  const double total = variance + M_PI * M_PI / 3, t = sign * mean / sqrt(total), far = 30;
  /* phi(t) / Phi(t), t below and above -far. */
  const double mills = t < -far ? -t / (1 - 1 / (t * t) + 3 / pow(t, 4))
                                : exp(-0.5 * t * t) / sqrt(2 * M_PI) / (0.5 * erfc(-t / M_SQRT2));
  *log_mass = t < -far ? -0.5 * t * t - log(sqrt(2 * M_PI) * mills) : log(0.5 * erfc(-t / M_SQRT2));
  *move = sign * variance * mills / sqrt(total);
  *shrink = 1 - variance * mills * (t + mills) / total;
}

/* Beyond this |m| a reward in whose disfavour it is has a probability that counts as this one's. */
static const double FAR = 300;

SIMD_CLONES
void tilted_moments_of_clicks(const TiltedNodes *nodes, const TiltedCells *cells, double *log_mass,
                              double *move, double *shrink) {
  for (int from = 0; from < cells->n; from += VECTOR_LANES) {
    const int left = cells->n - from, count = left < VECTOR_LANES ? left : VECTOR_LANES;
    double sign[VECTOR_LANES], deviation[VECTOR_LANES], exponent[2 * VECTOR_LANES];
    Real odds, ratio, mass, first, second;
    for (int i = 0; i < VECTOR_LANES; i++) {
      const int k = from + (i < count ? i : 0);
      sign[i] = 2 * cells->y[k] - 1;
      deviation[i] = sqrt(cells->variance[k]);
      const double w = -sign[i] * cells->mean[k], s = -nodes->step * deviation[i];
      exponent[i] = w > FAR ? FAR : w < -FAR ? -FAR : w;
      exponent[VECTOR_LANES + i] = s < -FAR ? -FAR : s;
    }
    for (int i = 0; i < 2 * VECTOR_LANES; i++) exponent[i] = special_exp_inside(exponent[i]);
    memcpy(&odds, exponent, sizeof odds);
    memcpy(&ratio, exponent + VECTOR_LANES, sizeof ratio);
    click_sums(nodes, odds, ratio, &mass, &first, &second);
    mass = real_log(mass);
    for (int i = 0; i < count; i++) {
      log_mass[from + i] = mass[i];
      move[from + i] = sign[i] * deviation[i] * first[i];
      shrink[from + i] = second[i] - first[i] * first[i];
      if (deviation[i] > WIDE)
        tilt_widely(sign[i], cells->mean[from + i], cells->variance[from + i], &log_mass[from + i],
                    &move[from + i], &shrink[from + i]);
    }
  }
}

/* Computes the log of the integrand over N(centre, spread) at all nodes, value[NODES, lanes], and its
 * largest[lanes]. */
static void integrand(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                      int from, int lanes, const double *centre, const double *spread, double *value,
                      double *largest) {
  double u[NODES * VECTOR_LANES], y[NODES * VECTOR_LANES];
  for (int k = 0; k < NODES; k++)
    for (int i = 0; i < lanes; i++) {
      u[k * lanes + i] = centre[from + i] + (k - TILTED_PAIRS) * nodes->step * sqrt(spread[from + i]);
      y[k * lanes + i] = cells->y[from + i];
    }
  likelihood->ops->deviance(likelihood, NODES * lanes, y, u, value);
  for (int k = 0; k < NODES; k++)
    for (int i = 0; i < lanes; i++) {
      const double z = (k - TILTED_PAIRS) * nodes->step, off = u[k * lanes + i] - cells->mean[from + i];
      double *x = &value[k * lanes + i];
      *x = 0.5 * (z * z - cells->counts[from + i] * *x - off * off / cells->variance[from + i]);
      largest[i] = k > 0 ? fmax(largest[i], *x) : *x;
    }
}

void tilted_moments(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                    const double *centre, const double *spread, double *log_mass, double *move,
                    double *shrink) {
  for (int from = 0; from < cells->n; from += VECTOR_LANES) {
    const int left = cells->n - from, lanes = left < VECTOR_LANES ? left : VECTOR_LANES;
    double value[NODES * VECTOR_LANES], largest[VECTOR_LANES];
    integrand(nodes, likelihood, cells, from, lanes, centre, spread, value, largest);
    for (int i = 0; i < lanes; i++) {
      const double deviation = sqrt(spread[from + i]), variance = cells->variance[from + i];
      double mass = 0, first = 0, second = 0;
      for (int k = 0; k < NODES; k++) {
        const double z = (k - TILTED_PAIRS) * nodes->step,
                     weight = nodes->weight[abs(k - TILTED_PAIRS)] * exp(value[k * lanes + i] - largest[i]);
        mass += weight, first += weight * z, second += weight * z * z;
      }
      first /= mass, second /= mass;
      log_mass[from + i] = log(mass) + largest[i] + 0.5 * log(spread[from + i] / variance);
      move[from + i] = centre[from + i] - cells->mean[from + i] + deviation * first;
      shrink[from + i] = spread[from + i] / variance * (second - first * first);
    }
  }
}

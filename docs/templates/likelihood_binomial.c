/* Binomial rewards: the number of successes among five trials, each with probability p = 1 / (1 + e^-u)
 * (McCullagh and Nelder 1989, Section 4.1). With e = e^-|u| <= 1 nothing below can overflow or cancel. */
#include "core/special.h"
#include "model/history/likelihood.h"

#include <math.h>

enum { TRIALS = 5 };

/* Computes p and 1 - p. */
static void chances(double u, double *success, double *failure) {
  const double e = special_exp_inside(-fmin(fabs(u), 700)), larger = 1 / (1 + e);
  *success = u >= 0 ? larger : e * larger;
  *failure = u >= 0 ? e * larger : larger;
}

/* Returns y u - m log(1 + e^u). */
static double kernel(double y, double u) {
  const double rest = TRIALS * special_log1p(special_exp_inside(-fmin(fabs(u), 700)));
  return (u < 0 ? y * u : (y - TRIALS) * u) - rest;
}

static bool binomial_admits(double y) { return y >= 0 && y <= TRIALS && y == floor(y); }

static void binomial_mean(const Likelihood *likelihood, int n, const double *u, double *mean) {
  (void)likelihood;
  for (int i = 0; i < n; i++) {
    double success, failure;
    chances(u[i], &success, &failure);
    mean[i] = TRIALS * success;
  }
}

static double binomial_log_likelihood(const Likelihood *likelihood, double y, double u) {
  (void)likelihood;
  return lgamma(TRIALS + 1) - lgamma(y + 1) - lgamma(TRIALS - y + 1) + kernel(y, u);
}

static void binomial_derivatives(const Likelihood *likelihood, int n, const double *y, const double *u,
                                 double *slope, double *curvature) {
  (void)likelihood;
  for (int i = 0; i < n; i++) {
    double success, failure;
    chances(u[i], &success, &failure);
    slope[i] = y[i] * failure - (TRIALS - y[i]) * success;
    curvature[i] = -TRIALS * success * failure;
  }
}

/* Computes the deviances: the largest value of y u - m log(1 + e^u) is y log(y / m) + (m - y) log(1 - y / m).
 */
static void binomial_deviance(const Likelihood *likelihood, int n, const double *y, const double *u,
                              double *deviance) {
  (void)likelihood;
  for (int i = 0; i < n; i++) {
    const double rest = TRIALS - y[i];
    const double best =
        (y[i] > 0 ? y[i] * log(y[i] / TRIALS) : 0) + (rest > 0 ? rest * log(rest / TRIALS) : 0);
    deviance[i] = fmax(0, 2 * (best - kernel(y[i], u[i])));
  }
}

/* Draws a reward by inversion. */
static double binomial_sample(const Likelihood *likelihood, double u, double uniform, double normal) {
  (void)normal;
  int y = 0;
  while (y < TRIALS && (uniform -= exp(binomial_log_likelihood(likelihood, y, u))) > 0) y++;
  return y;
}

const LikelihoodOps likelihood_binomial = {.name = "binomial",
                                           .summary = "reward the number of successes among five trials",
                                           .reference = "McCullagh and Nelder 1989, Section 4.1",
                                           .self_concordance = 1, /* m p (1 - p) |1 - 2 p| */
                                           .rewards = "a count 0 to 5",
                                           .admits = binomial_admits,
                                           .mean = binomial_mean,
                                           .log_likelihood = binomial_log_likelihood,
                                           .derivatives = binomial_derivatives,
                                           .deviance = binomial_deviance,
                                           .sample = binomial_sample};

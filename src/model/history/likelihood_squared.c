/* Rewards of which only the square of u is seen, as in phase retrieval: y = u^2 + sigma e. Then log p(y | u)
 * is -1/2 ((y - u^2) / sigma)^2 - log sigma - 1/2 log 2 pi. It has two peaks, so that nothing can be built on
 * its curvature; the one here leaves out y - u^2, as Gauss and Newton do. */
#include "core/special.h"
#include "model/history/likelihood.h"

#include <math.h>

static bool squared_admits(double y) { return isfinite(y); }

static void squared_mean(const Likelihood *likelihood, int n, const double *u, double *mean) {
  (void)likelihood;
  for (int i = 0; i < n; i++) mean[i] = u[i] * u[i];
}

static double squared_average(const Likelihood *likelihood, double center, double deviation) {
  (void)likelihood;
  return center * center + deviation * deviation;
}

static double squared_log_likelihood(const Likelihood *likelihood, double y, double u) {
  const double residual = (y - u * u) / likelihood->noise;
  return -0.5 * residual * residual - log(likelihood->noise) - 0.5 * log(2 * M_PI);
}

SIMD_CLONES
static void squared_derivatives(const Likelihood *likelihood, int n, const double *restrict y,
                                const double *restrict u, double *restrict slope,
                                double *restrict curvature) {
  const double inverse_variance = 1 / (likelihood->noise * likelihood->noise);
  for (int i = 0; i < n; i++) {
    slope[i] = 2 * inverse_variance * u[i] * (y[i] - u[i] * u[i]);
    curvature[i] = -4 * inverse_variance * u[i] * u[i];
  }
}

/* Computes the deviance; with y < 0 the best u is 0. */
SIMD_CLONES
static void squared_deviance(const Likelihood *likelihood, int n, const double *restrict y,
                             const double *restrict u, double *restrict deviance) {
  const double inverse_variance = 1 / (likelihood->noise * likelihood->noise);
  for (int i = 0; i < n; i++) {
    const double square = u[i] * u[i], residual = y[i] - square;
    deviance[i] = inverse_variance * (y[i] < 0 ? square * (square - 2 * y[i]) : residual * residual);
  }
}

static double squared_draw(const Likelihood *likelihood, double u, double uniform, double normal) {
  (void)uniform;
  return u * u + likelihood->noise * normal;
}

const LikelihoodOps likelihood_squared = {.name = "squared",
                                          .summary = "reward (phi' theta)^2 plus Gaussian noise",
                                          .reference = "BIPSDA, arXiv:2503.03007",
                                          .self_concordance = INFINITY,
                                          .noisy = true,
                                          .rewards = "any number",
                                          .admits = squared_admits,
                                          .mean = squared_mean,
                                          .average = squared_average,
                                          .log_likelihood = squared_log_likelihood,
                                          .derivatives = squared_derivatives,
                                          .deviance = squared_deviance,
                                          .sample = squared_draw};

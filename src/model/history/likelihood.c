/* The likelihood families. */
#include "model/history/likelihood.h"

#include "core/real.h"
#include "model/history/likelihoods.h"

#include <float.h>

/* Returns the mean reward under a Gaussian by the trapezoidal rule: points are `step` <= 1/2 standard
 * deviations apart, which is accurate as long as g is smooth at that distance. */
static double likelihood_average_over(const Likelihood *likelihood, double step, double center,
                                      double deviation) {
  const double reach = 8.5; /* the weight beyond is 2e-17 */
  enum { MOST = 1 + 2 * 136 };
  double u[MOST], mean[MOST], sum = 0, total = 0;
  const int points = (int)(reach / step), count = 1 + 2 * points;
  ASSERT(count <= MOST);
  for (int k = 0; k < count; k++) u[k] = center + deviation * step * (k - points);
  likelihood->ops->mean(likelihood, count, u, mean);
  for (int k = 0; k < count; k++) {
    const double z = step * (k - points), weight = exp(-0.5 * z * z);
    sum += weight * mean[k];
    total += weight;
  }
  return sum / total;
}

double likelihood_best(const Likelihood *likelihood, double y) {
  const double anywhere = 0;
  double deviance;
  likelihood->ops->deviance(likelihood, 1, &y, &anywhere, &deviance);
  return likelihood->ops->log_likelihood(likelihood, y, anywhere) + 0.5 * deviance;
}

/* ---- Gaussian: y = u + sigma e, log p(y | u) = -1/2 ((y - u) / sigma)^2 - log sigma - 1/2 log 2 pi. */

static bool likelihood_gaussian_admits(double y) { return isfinite(y); }
static void gaussian_mean(const Likelihood *likelihood, int n, const double *u, double *mean) {
  (void)likelihood;
  memcpy(mean, u, (size_t)n * sizeof *mean);
}
static double gaussian_log_likelihood(const Likelihood *likelihood, double y, double u) {
  double residual = (y - u) / likelihood->noise;
  return -0.5 * residual * residual - log(likelihood->noise) - 0.5 * log(2 * M_PI);
}
SIMD_CLONES
static void gaussian_derivatives(const Likelihood *likelihood, int n, const double *restrict y,
                                 const double *restrict u, double *restrict slope,
                                 double *restrict curvature) {
  const double inverse_variance = 1 / (likelihood->noise * likelihood->noise);
  for (int i = 0; i < n; i++) {
    slope[i] = inverse_variance * (y[i] - u[i]);
    curvature[i] = -inverse_variance;
  }
}
SIMD_CLONES
static void gaussian_deviance(const Likelihood *likelihood, int n, const double *restrict y,
                              const double *restrict u, double *restrict deviance) {
  const double inverse_variance = 1 / (likelihood->noise * likelihood->noise);
  for (int i = 0; i < n; i++) deviance[i] = inverse_variance * (y[i] - u[i]) * (y[i] - u[i]);
}
static double likelihood_draw_gaussian(const Likelihood *likelihood, double u, double uniform,
                                       double normal) {
  (void)uniform;
  return u + likelihood->noise * normal;
}

const LikelihoodOps likelihood_gaussian = {.name = "gaussian",
                                           .summary = "reward phi' theta plus Gaussian noise",
                                           .reference = "DiffTS, equation 1",
                                           .quadratic = true,
                                           .self_concordance = 0,
                                           .noisy = true,
                                           .rewards = "any number",
                                           .admits = likelihood_gaussian_admits,
                                           .mean = gaussian_mean,
                                           .log_likelihood = gaussian_log_likelihood,
                                           .derivatives = gaussian_derivatives,
                                           .deviance = gaussian_deviance,
                                           .sample = likelihood_draw_gaussian};

/* ---- Logistic: P(y = 1) = 1 / (1 + e^-u). With e = e^-|u| <= 1 nothing below can overflow or cancel. */

/* Returns -|u|, but not less than -700, where e is already negligible next to 1. */
static inline double logistic_exponent(double u) {
  double size = fabs(u);
  return size < 700 ? -size : -700;
}

static bool logistic_admits(double y) { return y == 0 || y == 1; }
static inline double logistic_chance(double u) {
  double e = special_exp_inside(logistic_exponent(u));
  return (u >= 0 ? 1 : e) / (1 + e);
}
static void logistic_mean(const Likelihood *likelihood, int n, const double *u, double *mean) {
  (void)likelihood;
  for (int i = 0; i < n; i++) mean[i] = logistic_chance(u[i]);
}
/* Returns -log p = log(1 + e^u) - y u. */
static inline double logistic_loss(double y, double u) {
  double loss = special_log1p(special_exp_inside(logistic_exponent(u)));
  return u < 0 ? loss - y * u : loss + (1 - y) * u;
}
static double logistic_log_likelihood(const Likelihood *likelihood, double y, double u) {
  (void)likelihood;
  return -logistic_loss(y, u);
}
SIMD_CLONES
static void logistic_derivatives(const Likelihood *likelihood, int n, const double *restrict y,
                                 const double *restrict u, double *restrict slope,
                                 double *restrict curvature) {
  (void)likelihood;
  for (int from = 0; from < n; from += REAL_LANES) {
    int count = n - from < REAL_LANES ? n - from : REAL_LANES;
    double e[REAL_LANES] = {0};
    for (int i = 0; i < count; i++) e[i] = logistic_exponent(u[from + i]);
    real_exp_many(e);
    for (int i = 0; i < count; i++) {
      double larger = 1 / (1 + e[i]), smaller = e[i] * larger;
      slope[from + i] = y[from + i] - (u[from + i] >= 0 ? larger : smaller);
      curvature[from + i] = -larger * smaller;
    }
  }
}
/* Returns the mean reward under a Gaussian at least 1 wide: a convolution of its distribution function and
 * g', by the trapezoidal rule. The poles of g' at +-i pi leave an error of about exp(-2 pi^2 / step). */
static double logistic_average_wide(double center, double deviation) {
  const double step = 0.5;
  double sum = 0;
  for (int k = -72; k <= 72; k++) {
    const double u = step * k, chance = logistic_chance(u);
    sum += chance * (1 - chance) * 0.5 * erfc((u - center) / (deviation * M_SQRT2));
  }
  return step * sum;
}
static double logistic_average(const Likelihood *likelihood, double center, double deviation) {
  return deviation < 1 ? likelihood_average_over(likelihood, 0.5, center, deviation)
                       : logistic_average_wide(center, deviation);
}
SIMD_CLONES
static void logistic_deviance(const Likelihood *likelihood, int n, const double *restrict y,
                              const double *restrict u, double *restrict deviance) {
  (void)likelihood;
  for (int i = 0; i < n; i++) deviance[i] = 2 * logistic_loss(y[i], u[i]);
}
static double likelihood_draw_logistic(const Likelihood *likelihood, double u, double uniform,
                                       double normal) {
  (void)likelihood;
  (void)normal;
  return uniform < logistic_chance(u) ? 1 : 0;
}

const LikelihoodOps likelihood_logistic = {.name = "logistic",
                                           .summary =
                                               "reward 1 with probability 1 / (1 + exp(-phi' theta)), else 0",
                                           .reference = "DiffTS, Section 2.2",
                                           .self_concordance = 1, /* p (1 - p) |1 - 2 p| <= p (1 - p) */
                                           .binary = true,
                                           .rewards = "0 or 1",
                                           .admits = logistic_admits,
                                           .mean = logistic_mean,
                                           .average = logistic_average,
                                           .log_likelihood = logistic_log_likelihood,
                                           .derivatives = logistic_derivatives,
                                           .deviance = logistic_deviance,
                                           .sample = likelihood_draw_logistic};

/* ---- Poisson: a count with rate e^v, v = u + log_exposure. Beyond RATE_LIMIT the rate stays constant at
 * 6e34, which fits into a float, so that sums of products of rates are finite. */

static const double RATE_LIMIT = 80;

static inline double poisson_rate(double v) { return special_exp(v > RATE_LIMIT ? RATE_LIMIT : v); }

static bool poisson_admits(double y) { return isfinite(y) && y >= 0 && y <= 0x1p53 && y == floor(y); }
static void poisson_mean(const Likelihood *likelihood, int n, const double *u, double *mean) {
  for (int i = 0; i < n; i++) mean[i] = poisson_rate(u[i] + likelihood->log_exposure);
}
static double poisson_average(const Likelihood *likelihood, double center, double deviation) {
  return poisson_rate(center + likelihood->log_exposure + 0.5 * deviation * deviation);
}
static double poisson_log_likelihood(const Likelihood *likelihood, double y, double u) {
  const double v = u + likelihood->log_exposure;
  return y * v - poisson_rate(v) - lgamma(y + 1);
}
SIMD_CLONES
static void poisson_derivatives(const Likelihood *likelihood, int n, const double *restrict y,
                                const double *restrict u, double *restrict slope,
                                double *restrict curvature) {
  const double log_exposure = likelihood->log_exposure;
  for (int i = 0; i < n; i++) {
    double rate = poisson_rate(u[i] + log_exposure);
    slope[i] = y[i] - rate;
    curvature[i] = -rate;
  }
}
/* Counts above which the terms of the deviance are so large that their difference has few digits left. */
static const double LARGE_COUNT = 1e6;

/* Computes the deviance, at least 0: rounding can leave a difference of large numbers below zero. The largest
 * value of y v - e^v is y log y - y. */
static void poisson_deviance(const Likelihood *likelihood, int n, const double *y, const double *u,
                             double *deviance) {
  for (int i = 0; i < n; i++) {
    const double v = u[i] + likelihood->log_exposure, best = y[i] > 0 ? y[i] * log(y[i]) - y[i] : 0;
    if (y[i] > LARGE_COUNT) {
      const double off = v - log(y[i]), limited = fmin(v, RATE_LIMIT) - log(y[i]);
      deviance[i] = fmax(0, 2 * y[i] * (expm1(limited) - off));
      continue;
    }
    deviance[i] = fmax(0, 2 * (best - (y[i] * v - poisson_rate(v))));
  }
}
/* Draws by inversion up to a rate of 500. Above that, rounds the normal number with the Cornish-Fisher
 * correction for skewness, which makes the distribution function accurate to 1e-4. */
static double likelihood_draw_poisson(const Likelihood *likelihood, double u, double uniform, double normal) {
  double rate = poisson_rate(u + likelihood->log_exposure);
  if (rate > 500) return fmax(0, floor(rate + sqrt(rate) * normal + (normal * normal - 1) / 6 + 0.5));
  double probability = exp(-rate), left = uniform - probability;
  int y = 0;
  while (left > 0 && (y < rate || probability > DBL_EPSILON)) {
    probability *= rate / ++y;
    left -= probability;
  }
  return y;
}

const LikelihoodOps likelihood_poisson = {.name = "poisson",
                                          .summary = "reward a count of mean exp(phi' theta)",
                                          .reference = "McCullagh and Nelder 1989, Section 6.2",
                                          .self_concordance = 1, /* e^u is its own derivative */
                                          .rewards = "a count 0, 1, 2, ...",
                                          .admits = poisson_admits,
                                          .mean = poisson_mean,
                                          .average = poisson_average,
                                          .log_likelihood = poisson_log_likelihood,
                                          .derivatives = poisson_derivatives,
                                          .deviance = poisson_deviance,
                                          .sample = likelihood_draw_poisson};

static const LikelihoodOps *const families[] = {
#define LIKELIHOOD_ENTRY(name) &likelihood_##name,
    LIKELIHOOD_LIST(LIKELIHOOD_ENTRY)
#undef LIKELIHOOD_ENTRY
};

void likelihood_average(const Likelihood *likelihood, int n, const double *center, const double *deviation,
                        double *average) {
  const LikelihoodOps *ops = likelihood->ops;
  if (likelihood_is_linear(likelihood)) {
    memmove(average, center, (size_t)n * sizeof *average);
    return;
  }
  for (int i = 0; i < n; i++)
    average[i] = ops->average ? ops->average(likelihood, center[i], deviation[i])
                              : likelihood_average_over(likelihood, 0x1p-4, center[i], deviation[i]);
}

const LikelihoodOps *likelihood_family(int index) {
  return index >= 0 && index < (int)(sizeof families / sizeof *families) ? families[index] : NULL;
}

const LikelihoodOps *likelihood_find(const char *name) {
  for (int i = 0; likelihood_family(i); i++)
    if (strcmp(likelihood_name(i), name) == 0) return likelihood_family(i);
  return NULL;
}

const char *likelihood_name(int index) {
  const LikelihoodOps *family = likelihood_family(index);
  return family ? family->name : NULL;
}

/* The likelihood families: every function of the registry against finite differences, sums over all rewards,
 * and each other. */
#include "harness.h"

#include "core/rng.h"
#include "model/history/likelihood.h"

#include <string.h>

#define WALK_FAMILIES(likelihood)                                                                            \
  Likelihood likelihood = {.noise = 0.7};                                                                    \
  for (int index_ = 0; (likelihood.ops = likelihood_family(index_)); index_++)

static void derivatives(const Likelihood *likelihood, double y, double u, double *slope, double *curvature) {
  likelihood->ops->derivatives(likelihood, 1, &y, &u, slope, curvature);
}

static double log_likelihood(const Likelihood *likelihood, double y, double u) {
  return likelihood->ops->log_likelihood(likelihood, y, u);
}

static double mean_at(const Likelihood *likelihood, double u) {
  double mean;
  likelihood->ops->mean(likelihood, 1, &u, &mean);
  return mean;
}

static void test_registry(void) {
  int count = 0;
  WALK_FAMILIES(likelihood) {
    CU_ASSERT_PTR_EQUAL(likelihood_find(likelihood.ops->name), likelihood.ops);
    CU_ASSERT_STRING_EQUAL(likelihood_name(count), likelihood.ops->name);
    CU_ASSERT(strlen(likelihood.ops->summary) > 0 && strlen(likelihood.ops->reference) > 0);
    CU_ASSERT(strlen(likelihood.ops->rewards) > 0);
    CU_ASSERT_EQUAL(likelihood_is_conjugate(&likelihood),
                    likelihood.ops->self_concordance == 0); /* quadratic, and only then */
    count++;
  }
  CU_ASSERT(count >= 3);
  CU_ASSERT_PTR_NULL(likelihood_find("gausian"));
  CU_ASSERT_PTR_NULL(likelihood_name(count));
  CU_ASSERT_PTR_NULL(likelihood_family(-1));
}

static void test_admits(void) {
  const double values[] = {0, 1, 2, 0.5, -1, 0x1p60, INFINITY};
  const char *expected[][2] = {{"gaussian", "1111110"}, {"logistic", "1100000"}, {"poisson", "1110000"}};
  for (int f = 0; f < 3; f++)
    for (int k = 0; k < 7; k++)
      CU_ASSERT_EQUAL(likelihood_find(expected[f][0])->admits(values[k]), expected[f][1][k] == '1');
}

/* Checks derivatives by central differences, which are off by h^2 / 6 times a third derivative of the size of
 * the values, and by rounding over h. */
static void test_derivatives(void) {
  const double h = 1e-4;
  WALK_FAMILIES(likelihood) {
    for (double u = -4.25; u <= 4.5; u += 0.5)
      for (double y = 0; y <= 3; y++) {
        double slope, curvature, low[2], high[2];
        if (!likelihood.ops->admits(y)) continue;
        derivatives(&likelihood, y, u, &slope, &curvature);
        derivatives(&likelihood, y, u - h, &low[0], &low[1]);
        derivatives(&likelihood, y, u + h, &high[0], &high[1]);
        double difference = log_likelihood(&likelihood, y, u + h) - log_likelihood(&likelihood, y, u - h);
        CHECK_NEAR(slope, difference / (2 * h), 1e-8 * (1 + fabs(slope)));
        CHECK_NEAR(curvature, (high[0] - low[0]) / (2 * h), 1e-8 * (1 + fabs(curvature)));
        CU_ASSERT(curvature < 0);
        double third = fabs(high[1] - low[1]) / (2 * h);
        CU_ASSERT(third <= likelihood.ops->self_concordance * fabs(curvature) * (1 + 1e-6) + 1e-9);
      }
  }
}

/* Checks log p(y | u) = (y u - A(u)) / scale + a function of y: the mean is A'(u). */
static void test_mean_is_derivative_of_log_partition(void) {
  const double h = 1e-4;
  WALK_FAMILIES(likelihood) {
    double scale = likelihood_is_conjugate(&likelihood) ? likelihood.noise * likelihood.noise : 1;
    for (double u = -4; u <= 4; u += 0.5) {
      double y = 1, low = y * (u - h) / scale - log_likelihood(&likelihood, y, u - h),
             high = y * (u + h) / scale - log_likelihood(&likelihood, y, u + h);
      double mean = mean_at(&likelihood, u);
      CHECK_NEAR(mean, scale * (high - low) / (2 * h), 1e-7 * (1 + fabs(mean)));
    }
  }
}

/* Checks that probabilities of all rewards, or densities by the trapezoidal rule (exact to rounding here),
 * add up to 1, and that rewards weighted by them add up to the mean. */
static void test_normalisation(void) {
  WALK_FAMILIES(likelihood) {
    const bool counts = !likelihood.ops->admits(0.5);
    const double step = counts ? 1 : 0.05;
    for (double u = -3; u <= 3; u += 0.75) {
      double total = 0, first = 0;
      for (int k = counts ? 0 : -400; k <= 400; k++) {
        double y = k * step;
        if (!likelihood.ops->admits(y)) continue;
        double density = step * exp(log_likelihood(&likelihood, y, u));
        total += density, first += y * density;
      }
      CHECK_NEAR(total, 1, 1e-12);
      CHECK_NEAR(first, mean_at(&likelihood, u), 1e-11);
    }
  }
}

/* Checks that the deviance is twice the distance to the best u, by the values on a fine grid around it; 0 at
 * the best. */
static void test_deviance(void) {
  WALK_FAMILIES(likelihood) {
    for (double y = 0; y <= 3; y++) {
      if (!likelihood.ops->admits(y)) continue;
      double best = -INFINITY;
      for (int k = -40000; k <= 40000; k++) best = fmax(best, log_likelihood(&likelihood, y, k * 1e-3));
      for (double u = -4; u <= 4; u += 0.25) {
        double deviance;
        likelihood.ops->deviance(&likelihood, 1, &y, &u, &deviance);
        /* The grid is at most 5e-4 off, where the log likelihood is below its peak by less than 1e-6. */
        CHECK_NEAR(deviance, 2 * (best - log_likelihood(&likelihood, y, u)), 2e-6);
        CU_ASSERT(deviance >= 0);
      }
    }
  }
}

/* Checks that arrays of every length give what single numbers give (blocks and their remainders), up to
 * contraction. */
static void test_arrays(void) {
  enum { N = 75 };
  double y[N], u[N], slope[N], curvature[N], deviance[N];
  Rng rng = {.key = rng_key(3, RNG_TEST)};
  rng_normal(&rng, N, u);
  for (int i = 0; i < N; i++) y[i] = i % 2, u[i] *= 3;
  WALK_FAMILIES(likelihood)
  for (int n = 1; n <= N; n += 2) {
    for (int i = 0; i < N; i++) slope[i] = curvature[i] = deviance[i] = -99;
    likelihood.ops->derivatives(&likelihood, n, y, u, slope, curvature);
    likelihood.ops->deviance(&likelihood, n, y, u, deviance);
    for (int i = 0; i < n; i++) {
      double one[3];
      derivatives(&likelihood, y[i], u[i], &one[0], &one[1]);
      likelihood.ops->deviance(&likelihood, 1, &y[i], &u[i], &one[2]);
      CHECK_NEAR(slope[i], one[0], 1e-14 * (1 + fabs(one[0])));
      CHECK_NEAR(curvature[i], one[1], 1e-14 * (1 + fabs(one[1])));
      CHECK_NEAR(deviance[i], one[2], 1e-13 * (1 + fabs(one[2])));
    }
    if (n < N) CU_ASSERT(slope[n] == -99 && curvature[n] == -99 && deviance[n] == -99);
  }
}

/* Checks that everything is finite, of the right sign, and raises no exception (harness_run traps them) up to
 * |u| = 1000. */
static void test_far_out(void) {
  const double sizes[] = {0, 1e-300, 1e-8, 30, 99, 101, 499, 700, 708.5, 709.5, 745, 999, 1000};
  const double uniforms[] = {1e-17, 0.5, 1 - 0x1p-53}, normals[] = {-8.5, 0, 8.5};
  WALK_FAMILIES(likelihood)
  for (int k = 0; k < 26; k++) {
    double u = k < 13 ? sizes[k] : -sizes[k - 13];
    CU_ASSERT(isfinite(mean_at(&likelihood, u)));
    for (double y = 0; y <= 1; y++) {
      double slope, curvature, deviance;
      derivatives(&likelihood, y, u, &slope, &curvature);
      likelihood.ops->deviance(&likelihood, 1, &y, &u, &deviance);
      CU_ASSERT(isfinite(slope) && isfinite(curvature) && curvature <= 0);
      CU_ASSERT(isfinite(log_likelihood(&likelihood, y, u)));
      CU_ASSERT(isfinite(deviance) && deviance >= 0);
    }
    for (int i = 0; i < 9; i++)
      CU_ASSERT(
          likelihood.ops->admits(likelihood.ops->sample(&likelihood, u, uniforms[i / 3], normals[i % 3])) ||
          u > 36); /* a count above 2^53 = e^36.7 */
  }
}

/* Checks tails to full relative accuracy, where 1 - g(u) would cancel. */
static void test_logistic_tails(void) {
  Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  double slope, curvature;
  CHECK_NEAR(log_likelihood(&likelihood, 1, 40) / -exp(-40), 1, 1e-14);
  CHECK_NEAR(log_likelihood(&likelihood, 0, 40), -40, 1e-14);
  derivatives(&likelihood, 0, -40, &slope, &curvature);
  CHECK_NEAR(slope / -exp(-40), 1, 1e-14);
  CHECK_NEAR(curvature / -exp(-40), 1, 1e-14);
}

/* Checks the mean and, through the score, the variance of samples: within 5 standard errors. */
static void test_samples(void) {
  enum { N = 20000 };
  static double uniform[N], normal[N];
  WALK_FAMILIES(likelihood)
  for (double u = -2; u <= 7; u += 0.5) { /* a rate of e^7 > 500: beyond inversion */
    Rng rng = {.key = rng_key(1, RNG_TEST), .run = (uint32_t)(2 * u + 10)};
    double mean = 0, square = 0, expected = mean_at(&likelihood, u), slope, curvature;
    rng_uniform(&rng, N, uniform);
    rng_normal(&rng, N, normal);
    for (int i = 0; i < N; i++) {
      double reward = likelihood.ops->sample(&likelihood, u, uniform[i], normal[i]),
             error = reward - expected;
      CU_ASSERT(likelihood.ops->admits(reward));
      mean += error / N, square += error * error / N;
    }
    /* Fisher information is the variance of the score, (y - g(u)) / scale, and minus the curvature. */
    double scale = likelihood_is_conjugate(&likelihood) ? likelihood.noise * likelihood.noise : 1;
    derivatives(&likelihood, 1, u, &slope, &curvature);
    double variance = -curvature * scale * scale;
    CHECK_NEAR(mean, 0, 5 * sqrt(variance / N));
    /* The variance of (y - g)^2 is at most (2 + 1 / variance) variance^2 for these families. */
    CHECK_NEAR(square, variance, 5 * variance * sqrt((2 + 1 / variance) / N));
  }
}

/* Checks mean rewards under a Gaussian by a fine trapezoidal rule over the Gaussian, relative to the mean;
 * and that they agree on both sides of the width at which the way of summing changes. */
static void test_average(void) {
  const double widths[] = {0, 0.01, 0.3, 0.9, 1, 1.5, 4};
  WALK_FAMILIES(likelihood)
  for (double center = -9; center <= 6; center += 1.5)
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
      const double step = 0x1p-8;
      double sum = 0, total = 0, average;
      for (double z = -12; z <= 12; z += step) {
        sum += exp(-0.5 * z * z) * mean_at(&likelihood, center + widths[w] * z);
        total += exp(-0.5 * z * z);
      }
      likelihood_average(&likelihood, 1, &center, &widths[w], &average);
      CHECK_NEAR(average, sum / total, 1e-9 * fabs(sum / total) + 1e-11);
    }
}

/* Checks that an exposure of 5 is the same as log 5 more in u, in every function of counts; no other rewards
 * have one. */
static void test_exposure(void) {
  const Likelihood plain = {.ops = likelihood_find("poisson"), .noise = 1};
  const double deviation = 0.7, more = log(5.0);
  Likelihood exposed = plain;
  exposed.log_exposure = more;
  WALK_FAMILIES(likelihood)
  CU_ASSERT_EQUAL(likelihood_has_exposure(&likelihood), likelihood.ops == plain.ops);
  for (double y = 0; y <= 4e6; y = 20 * y + 1)
    for (double u = -3; u <= 4; u += 0.5) {
      const double v = u + more;
      double slope[2], curvature[2], deviance[2], average[2];
      derivatives(&exposed, y, u, &slope[0], &curvature[0]);
      derivatives(&plain, y, v, &slope[1], &curvature[1]);
      plain.ops->deviance(&exposed, 1, &y, &u, &deviance[0]);
      plain.ops->deviance(&plain, 1, &y, &v, &deviance[1]);
      likelihood_average(&exposed, 1, &u, &deviation, &average[0]);
      likelihood_average(&plain, 1, &v, &deviation, &average[1]);
      CU_ASSERT(slope[0] == slope[1] && curvature[0] == curvature[1] && deviance[0] == deviance[1]);
      CHECK_NEAR(average[0], average[1], 1e-14 * average[1]);
      CU_ASSERT(mean_at(&exposed, u) == mean_at(&plain, v));
      CU_ASSERT(log_likelihood(&exposed, y, u) == log_likelihood(&plain, y, v));
      CU_ASSERT(plain.ops->sample(&exposed, u, 0.3, 0.2) == plain.ops->sample(&plain, v, 0.3, 0.2));
    }
}

/* Checks squares with noise: slopes by central differences, the density by its sums over all rewards, the
 * deviance by the best u, and the average by two numbers that have the mean and the deviation. */
static void test_squared(void) {
  const Likelihood squared = {.ops = &likelihood_squared, .noise = 0.7};
  const double h = 1e-4, step = 0.05;
  CU_ASSERT(likelihood_has_noise(&squared) && !likelihood_is_concave(&squared) &&
            !likelihood_is_conjugate(&squared));
  CU_ASSERT(likelihood_noise(&squared) == 1);
  for (double u = -3; u <= 3; u += 0.75) {
    double total = 0, first = 0, average;
    for (double y = -2; y <= 9; y++) {
      double slope, curvature, deviance;
      const double difference = log_likelihood(&squared, y, u + h) - log_likelihood(&squared, y, u - h),
                   best = log_likelihood(&squared, y, sqrt(fmax(y, 0)));
      derivatives(&squared, y, u, &slope, &curvature);
      squared.ops->deviance(&squared, 1, &y, &u, &deviance);
      CHECK_NEAR(slope, difference / (2 * h), 1e-6 * (1 + fabs(slope)));
      CHECK_NEAR(deviance, 2 * (best - log_likelihood(&squared, y, u)), 1e-10 * (1 + deviance));
      CHECK_NEAR(likelihood_best(&squared, y), best, 1e-10 * (1 + fabs(best)));
      CU_ASSERT(curvature <= 0 && deviance >= 0);
    }
    for (int k = -400; k <= 400; k++) {
      const double y = k * step, density = step * exp(log_likelihood(&squared, y, u));
      total += density;
      first += y * density;
    }
    CHECK_NEAR(total, 1, 1e-12);
    CHECK_NEAR(first, mean_at(&squared, u), 1e-11);
    likelihood_average(&squared, 1, &u, &h, &average);
    CHECK_NEAR(average, 0.5 * (mean_at(&squared, u - h) + mean_at(&squared, u + h)), 1e-12);
    CHECK_NEAR(squared.ops->sample(&squared, u, 0.3, 2), u * u + 1.4, 1e-12);
  }
}

/* Checks the normal density, at its peak and one standard deviation away. */
static void test_gaussian(void) {
  Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 2};
  CHECK_NEAR(log_likelihood(&likelihood, 3, 3), log(0.3989422804014327 / 2), 1e-15);
  CHECK_NEAR(log_likelihood(&likelihood, 5, 3), log(0.24197072451914337 / 2), 1e-15);
  CHECK_NEAR(likelihood.ops->sample(&likelihood, 1, 0.5, -1.5), -2, 1e-15);
  CU_ASSERT(likelihood_is_conjugate(&likelihood));
}

int main(void) {
  CU_TestInfo tests[] = {
      {"registry", test_registry},
      {"rewards admitted", test_admits},
      {"derivatives and self-concordance", test_derivatives},
      {"mean is the derivative of the log partition", test_mean_is_derivative_of_log_partition},
      {"normalisation and mean", test_normalisation},
      {"deviance", test_deviance},
      {"arrays of any length", test_arrays},
      {"far out", test_far_out},
      {"logistic tails", test_logistic_tails},
      {"moments of samples", test_samples},
      {"mean rewards under a Gaussian", test_average},
      {"exposure of counts", test_exposure},
      {"squares with noise", test_squared},
      {"Gaussian density", test_gaussian},
      CU_TEST_INFO_NULL};
  return harness_run("likelihood", tests);
}

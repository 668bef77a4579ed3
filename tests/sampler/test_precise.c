/* Evidence far more precise than the prior: samplers of the exact posterior are right without a fallback, and
 * every other one is right and counts one for each draw that is not its own. The truth comes from formulas of
 * this file. */
#include "harness.h"

#include "library/thompson.h"
#include "sampler/methods.h"
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

enum { D = 2, DRAWS = 1000, ROWS = 20 };

typedef struct {
  int components;
  double weight[2], mean[2 * D], covariance[2 * D * D];
} Belief;

typedef struct {
  double mean[D], sd[D];
} Moments;

static const Belief shifted = {1, {1}, {1, 0}, {0.1, 0, 0, 0.1}}, standard = {1, {1}, {0, 0}, {1, 0, 0, 1}},
                    two = {2, {0.5, 0.5}, {1, 0, 0, 1}, {0.1, 0, 0, 0.1, 0.1, 0, 0, 0.1}};

/* Takes n observations (x, y) with that noise; computes the moments of DRAWS draws, and returns their
 * fallbacks. */
static int64_t draw(const Belief *belief, const char *sampler, double noise, int n, const double *x,
                    const double *y, Moments *out) {
  static double theta[DRAWS * D];
  char options[40];
  thompson_prior *prior;
  thompson_posterior *posterior;
  snprintf(options, sizeof options, "noise=%g", noise);
  CU_ASSERT_EQUAL_FATAL(thompson_prior_from_mixture(belief->components, D, belief->weight, belief->mean,
                                                    belief->covariance, &prior),
                        0);
  if (thompson_posterior_new(prior, sampler, "gaussian", options, 1, &posterior)) {
    thompson_prior_close(prior);
    return -1; /* does not fit */
  }
  CU_ASSERT_EQUAL(thompson_observe(posterior, n, x, y), 0);
  const int64_t before = thompson_fallbacks(posterior); /* of states that follow the observations */
  CU_ASSERT_EQUAL(thompson_draw(posterior, DRAWS, theta), 0);
  const int64_t fallbacks = thompson_fallbacks(posterior) - before;
  int arm;
  CU_ASSERT_EQUAL(thompson_choose(posterior, 1, x, &arm), 0);
  if (noise <= 1e-8) CU_ASSERT_EQUAL(thompson_fallbacks(posterior) - before, fallbacks + (fallbacks > 0));
  for (int i = 0; i < D; i++) {
    double sum = 0, squares = 0;
    for (int k = 0; k < DRAWS; k++) sum += theta[k * D + i];
    for (int k = 0; k < DRAWS; k++) squares += pow(theta[k * D + i] - sum / DRAWS, 2);
    out->mean[i] = sum / DRAWS, out->sd[i] = sqrt(squares / DRAWS);
  }
  thompson_posterior_free(posterior), thompson_prior_close(prior);
  return fallbacks;
}

/* Tells whether the mean is within 5 standard errors, and the standard deviation, whose own is sd / sqrt(2
 * M), within 8%. */
static bool is_right(const Moments *truth, const Moments *found) {
  bool right = true;
  for (int i = 0; i < D; i++)
    right = right && fabs(found->mean[i] - truth->mean[i]) < 5 * truth->sd[i] / sqrt(DRAWS) &&
            fabs(found->sd[i] / truth->sd[i] - 1) < 5 / sqrt(2.0 * DRAWS);
  return right;
}

/* Conditions on x = (1, 2) observed five times with y = 1: x' theta = 1 up to the noise, which is negligible
 * here. Given that, a component N(m, v I) is N(m + x (1 - x' m) / 5, v (I - x x' / 5)), with the weight of
 * N(1; x' m, 5 v). */
static void condition(const Belief *belief, Moments *out) {
  double total = 0, square[D] = {0};
  *out = (Moments){{0}, {0}};
  for (int c = 0; c < belief->components; c++) {
    const double *m = belief->mean + c * D, v = belief->covariance[c * D * D], miss = 1 - m[0] - 2 * m[1];
    const double w = belief->weight[c] * exp(-miss * miss / (10 * v)) / sqrt(v);
    for (int i = 0; i < D; i++) {
      const double x = i + 1, mean = m[i] + x * miss / 5;
      out->mean[i] += w * mean, square[i] += w * (mean * mean + v * (1 - x * x / 5));
    }
    total += w;
  }
  for (int i = 0; i < D; i++) {
    out->mean[i] /= total;
    out->sd[i] = sqrt(square[i] / total - out->mean[i] * out->mean[i]);
  }
}

static const double repeated[5 * D] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, ones[5] = {1, 1, 1, 1, 1};

static void test_little_noise(void) {
  static const Belief *const beliefs[] = {&shifted, &standard, &two};
  static const double noises[] = {1e-3, 1e-6, 1e-8, 1e-9, 1e-12};
  for (int b = 0; b < 3; b++)
    for (int k = 0; k < 5; k++)
      for (int s = 0; sampler_method(s); s++) {
        const SamplerOps *method = sampler_method(s);
        Moments truth, found;
        condition(beliefs[b], &truth);
        const int64_t fallbacks = draw(beliefs[b], method->name, noises[k], 5, repeated, ones, &found);
        if (fallbacks < 0 || (method->exact && fallbacks == 0 && is_right(&truth, &found))) continue;
        const bool well =
            !method->exact && (noises[k] > 1e-8 || (fallbacks == DRAWS && is_right(&truth, &found)));
        CU_ASSERT_TRUE(well);
        if (!well)
          printf("%s, belief %d, noise %g: mean %g %g, sd %g %g, %d fallbacks\n", method->name, b, noises[k],
                 found.mean[0], found.mean[1], found.sd[0], found.sd[1], (int)fallbacks);
      }
}

/* Checks two time stamps in seconds, 100 s apart, and one observation a day: precise about the sum of theta,
 * but about their difference only as far as the two are apart. In the coordinates s and e of sum and
 * difference over the root of 2, with features a and b, the posterior under N(0, I) in long double. */
static void test_time_stamps(void) {
  double x[ROWS * D], y[ROWS];
  long double aa = 1, ab = 0, bb = 1, ay = 0, by = 0;
  for (int n = 0; n < ROWS; n++) {
    x[n * D] = 1.7e9 + 86400.0 * n, x[n * D + 1] = x[n * D] - 2 - n % 3;
    y[n] = n % 2 ? 0.5 : -0.25;
    const long double a = ((long double)x[n * D] + (long double)x[n * D + 1]) / sqrtl(2);
    const long double b = ((long double)x[n * D] - (long double)x[n * D + 1]) / sqrtl(2);
    aa += a * a, ab += a * b, bb += b * b, ay += a * y[n], by += b * y[n];
  }
  const long double det = aa * (bb - ab * ab / aa), s = (bb * ay - ab * by) / det,
                    e = (aa * by - ab * ay) / det;
  const long double sd = sqrtl((aa + bb + 2 * ab) / (2 * det)), other = sqrtl((aa + bb - 2 * ab) / (2 * det));
  const Moments truth = {{(double)((s + e) / sqrtl(2)), (double)((s - e) / sqrtl(2))},
                         {(double)other, (double)sd}};
  static const char *const methods[] = {"ts", "mixts", "exact", "localised", "tilted", "mala"};
  for (int i = 0; i < 6; i++) {
    Moments found;
    const int64_t fallbacks = draw(&standard, methods[i], 1, ROWS, x, y, &found);
    CU_ASSERT_TRUE(is_right(&truth, &found));
    CU_ASSERT_EQUAL(fallbacks, i < 3 ? 0 : DRAWS);
    printf("%s: mean %g %g (%g %g), sd %g %g (%g %g), %d fallbacks\n", methods[i], found.mean[0],
           found.mean[1], truth.mean[0], truth.mean[1], found.sd[0], found.sd[1], truth.sd[0], truth.sd[1],
           (int)fallbacks);
  }
}

/* Checks that each draw that is replaced is one fallback, however many there are at a time, and that agents,
 * whose evidence is loaded for every choice, count them too. */
static void test_count(void) {
  enum { MOST = 100, CHOICES = 7 };
  static const int counts[] = {1, 5, MOST};
  double theta[MOST * D];
  int arm;
  const int id = 0;
  thompson_prior *prior;
  thompson_posterior *posterior;
  thompson_agents *agents;
  CU_ASSERT_EQUAL_FATAL(
      thompson_prior_from_mixture(1, D, standard.weight, standard.mean, standard.covariance, &prior), 0);
  CU_ASSERT_EQUAL_FATAL(thompson_posterior_new(prior, "localised", "gaussian", "noise=1e-9", 1, &posterior),
                        0);
  CU_ASSERT_EQUAL(thompson_observe(posterior, 5, repeated, ones), 0);
  for (int i = 0; i < 3; i++) {
    const int64_t before = thompson_fallbacks(posterior);
    CU_ASSERT_EQUAL(thompson_draw(posterior, counts[i], theta), 0);
    CU_ASSERT_EQUAL(thompson_fallbacks(posterior) - before, counts[i]);
  }
  CU_ASSERT_EQUAL_FATAL(thompson_agents_new(prior, 1, "localised", "gaussian", "noise=1e-9", 1, &agents), 0);
  CU_ASSERT_EQUAL(thompson_agents_observe(agents, 1, &id, repeated, ones), 0);
  for (int i = 0; i < CHOICES; i++)
    CU_ASSERT_EQUAL(thompson_agents_choose(agents, 1, &id, 1, repeated, 0, &arm), 0);
  CU_ASSERT_EQUAL(thompson_agents_fallbacks(agents), CHOICES);
  thompson_agents_free(agents), thompson_posterior_free(posterior), thompson_prior_close(prior);
}

int main(void) {
  CU_TestInfo tests[] = {{"little noise", test_little_noise},
                         {"time stamps", test_time_stamps},
                         {"one for each draw", test_count},
                         CU_TEST_INFO_NULL};
  return harness_run("precise", tests);
}

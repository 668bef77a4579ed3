/* The exact sampler: rejection against closed forms, quadrature and importance sampling; calibration over
 * worlds drawn from the prior. */
#include "core/arena.h"
#include "plane_fixture.h"

#include "model/mixture/mixture_density.h"
#include "problem/problem_theta.h"
#include "sampler/exact/envelope.h"

/* ---- priors that can only be sampled and evaluated */

static void bare_sample(const Prior *prior, RngLanes *rng, double *theta) {
  mixture_sample(prior->state, rng, theta);
}
static void bare_log_density(const Prior *prior, int lanes, const double *theta, double *out) {
  mixture_log_density(prior->state, lanes, theta, out);
}
static const PriorOps BARE_OPS = {.name = "bare", .sample = bare_sample, .log_density = bare_log_density};

/* Returns the mixture without saying that it is one: the exact sampler must use the density. */
static Prior bare_prior(Mixture *mixture) { return (Prior){.ops = &BARE_OPS, .d = 2, .state = mixture}; }

static ThetaSource source_of(const char *name) {
  ThetaSource source;
  CHECK_OK(problem_theta_create(problem_theta_find(name), 0, NULL, 0.2, 5, &source));
  return source;
}

/* ---- worlds */

/* Makes `runs` runs with theta* from the source (streams from `first_run` on) and n observations of arms
 * uniform in the disc; theta_star[2, runs] may be NULL. The likelihood must outlive the history. */
static History world(Arena *memory, const ThetaSource *source, const Likelihood *likelihood,
                     uint32_t first_run, int runs, int n, double *theta_star) {
  double *theta = fixture_new(2 * (size_t)runs, sizeof *theta),
         *phi = fixture_new(2 * (size_t)runs, sizeof *phi), *y = fixture_new((size_t)runs, sizeof *y);
  History history;
  CHECK_OK(history_create(memory, 2, runs, likelihood, &history));
  CHECK_OK(history_reserve(&history, n));
  problem_theta_draw(source, RNG_THETA, 0, first_run, runs, theta);
  for (int l = 0; l < n; l++) {
    for (int b = 0; b < runs; b++) {
      Rng rng = fixture_rng(first_run + (uint32_t)b, 5000 + (uint32_t)l);
      double u[3], z;
      rng_uniform(&rng, 3, u);
      rng_normal(&rng, 1, &z);
      phi[b] = sqrt(u[0]) * cos(2 * M_PI * u[1]), phi[runs + b] = sqrt(u[0]) * sin(2 * M_PI * u[1]);
      double mean = phi[b] * theta[b] + phi[runs + b] * theta[runs + b];
      y[b] = likelihood->ops->sample(likelihood, mean, u[2], z);
    }
    history_record(&history, NULL, phi, y);
  }
  if (theta_star) memcpy(theta_star, theta, 2 * (size_t)runs * sizeof *theta);
  free(theta), free(phi), free(y);
  return history;
}

/* Computes log p(y | theta) of run b straight from the rows or the evidence. */
static double log_likelihood(const History *history, int b, double x, double y) {
  const Likelihood *likelihood = history->likelihood;
  if (likelihood_is_conjugate(likelihood)) {
    double p[4], v[2];
    history_evidence(&(HistoryView){history, 1, b, 1, NULL, NULL}, p, v);
    return x * v[0] + y * v[1] - 0.5 * (x * x * p[0] + 2 * x * y * p[1] + y * y * p[3]);
  }
  double sum = 0;
  for (int l = 0; l < history->rounds; l++) {
    double phi[2], reward = history_observation(history, b, l, 1, phi);
    sum += likelihood->ops->log_likelihood(likelihood, reward, x * phi[0] + y * phi[1]);
  }
  return sum;
}

/* ---- against the closed form */

/* Checks that the mean over draws of the probability that a draw belongs to component c is its weight w. Such
 * a probability has at most the variance w (1 - w): 5 standard errors. */
static void check_weights(const PlanePosterior *exact, int components, int stride, int draws,
                          const double *x) {
  for (int c = 0; c < components; c++) {
    double sum = 0;
    for (int m = 0; m < draws; m++) {
      double share = 0, own = 0;
      for (int k = 0; k < components; k++) {
        const double *v = exact->covariance[k], determinant = v[0] * v[3] - v[1] * v[2];
        double a = x[m] - exact->mean[k][0], b = x[stride + m] - exact->mean[k][1];
        double density = exact->weight[k] / sqrt(determinant) *
                         exp(-0.5 * (a * a * v[3] - 2 * a * b * v[1] + b * b * v[0]) / determinant);
        share += density;
        if (k == c) own = density;
      }
      sum += share > 0 ? own / share / draws : 0;
    }
    CHECK_NEAR(sum, exact->weight[c],
               5 * sqrt(exact->weight[c] * fmax(1 - exact->weight[c], 0) / draws) + 1e-9);
  }
}

/* Checks the closed form with 10 000 draws, which determine a mean to 0.05 of a standard deviation and a
 * variance to 7%. */
static void test_closed_form(void) {
  SCRATCH_ARENA(memory);
  static const char *const priors[] = {"gm_cross", "gm_rays", "gm_triangles"};
  static const struct {
    int n;
    double noise;
  } data[] = {{0, 1}, {1, 1}, {1, 0.1}, {3, 0.01}, {20, 1}, {1000, 0.1}, {1000, 0.001}};
  enum { DRAWS = 10000, RUNS = 2 };
  for (size_t p = 0; p < sizeof priors / sizeof *priors; p++)
    for (size_t k = 0; k < sizeof data / sizeof *data; k++) {
      ThetaSource source = source_of(priors[p]);
      Prior prior = bare_prior(&source.mixture);
      const Likelihood likelihood = fixture_likelihood(data[k].noise);
      History history = world(&memory, &source, &likelihood, 40, RUNS, data[k].n, NULL);
      int64_t fallbacks[RUNS];
      double *theta = fixture_draw(sampler_find("exact"), &prior, &history, 40, DRAWS, 0, NULL, fallbacks);
      for (int b = 0; b < RUNS; b++) {
        double lambda[4], vector[2];
        history_evidence(&(HistoryView){&history, 1, b, 1, NULL, NULL}, lambda, vector);
        PlanePosterior exact = plane_posterior(&source.mixture, lambda, vector);
        CU_ASSERT_EQUAL(fallbacks[b], 0);
        fixture_check_moments(2, RUNS, DRAWS, b, theta, exact.total_mean, exact.total_covariance, 5);
        check_weights(&exact, source.mixture.components, RUNS * DRAWS, DRAWS, theta + b * DRAWS);
      }
      free(theta);
      problem_theta_destroy(&source);
    }
}

/* Checks that with a prior that says it is a mixture, and Gaussian rewards, the draws are those of mixts. */
static void test_delegation(void) {
  SCRATCH_ARENA(memory);
  ThetaSource source = source_of("gm_rays");
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(problem_theta_prior(&memory, &source, &fit, &prior));
  const Likelihood likelihood = fixture_likelihood(1);
  History history = world(&memory, &source, &likelihood, 0, 3, 5, NULL);
  double *one = fixture_draw(sampler_find("exact"), &prior, &history, 0, 4, 0, NULL, NULL);
  double *two = fixture_draw(sampler_find("mixts"), &prior, &history, 0, 4, 0, NULL, NULL);
  CU_ASSERT(memcmp(one, two, 24 * sizeof *one) == 0);
  free(one), free(two);
  problem_theta_destroy(&source);
}

/* ---- against quadrature: the rectangle rule on [-9, 9]^2 with cells of 0.025, a quarter of the standard
 * deviation of the narrowest ridge; the edges of H lie between cells. Draws of a mixture and of a swirl under
 * likelihoods without a closed form; 5 standard errors of 8000 draws. */
static void quadrature(const Prior *prior, const History *history, int b, double *mean, double *covariance) {
  enum { CELLS = 720 };
  double *value = fixture_new((size_t)CELLS * CELLS, sizeof *value);
  double x[2 * CELLS], total = 0, second[4] = {0}, top = -INFINITY;
  for (int i = 0; i < CELLS; i++) {
    double *row = value + i * CELLS;
    for (int j = 0; j < CELLS; j++)
      x[j] = -9 + 18 * (j + 0.5) / CELLS, x[CELLS + j] = -9 + 18 * (i + 0.5) / CELLS;
    prior->ops->log_density(prior, CELLS, x, row);
    for (int j = 0; j < CELLS; j++) {
      row[j] = row[j] > -30 ? row[j] + log_likelihood(history, b, x[j], x[CELLS + j]) : -INFINITY;
      top = fmax(top, row[j]);
    }
  }
  mean[0] = mean[1] = 0;
  for (int k = 0; k < CELLS * CELLS; k++) {
    double p = exp(fmax(value[k] - top, -700)), at[2] = {x[k % CELLS], x[k / CELLS]};
    total += p;
    for (int i = 0; i < 2; i++) mean[i] += p * at[i];
    for (int i = 0; i < 4; i++) second[i] += p * at[i / 2] * at[i % 2];
  }
  for (int i = 0; i < 2; i++) mean[i] /= total;
  for (int i = 0; i < 4; i++) covariance[i] = second[i] / total - mean[i / 2] * mean[i % 2];
  free(value);
}

static void test_quadrature(void) {
  SCRATCH_ARENA(memory);
  static const char *const priors[] = {"cross", "gm_rays", "swirl", "H"};
  static const char *const likelihoods[] = {"logistic", "poisson"};
  enum { DRAWS = 8000 };
  for (size_t p = 0; p < sizeof priors / sizeof *priors; p++)
    for (int k = 0; k < 2; k++) {
      ThetaSource source = source_of(priors[p]);
      PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
      const Likelihood likelihood = {.ops = likelihood_find(likelihoods[k]), .noise = 1};
      History history = world(&memory, &source, &likelihood, 7, 1, 12, NULL);
      Prior prior;
      int64_t fallbacks;
      double mean[2], covariance[4];
      CHECK_OK(problem_theta_prior(&memory, &source, &fit, &prior));
      double *theta = fixture_draw(sampler_find("exact"), &prior, &history, 7, DRAWS, 0, NULL, &fallbacks);
      CU_ASSERT_EQUAL(fallbacks, 0);
      quadrature(&prior, &history, 0, mean, covariance);
      fixture_check_moments(2, 1, DRAWS, 0, theta, mean, covariance, 5);
      free(theta);
      problem_theta_destroy(&source);
    }
}

/* ---- against importance sampling: the prior's own samples, weighted by the likelihood. Means, within 5
 * standard errors of both together. */
static void test_importance_sampling(void) {
  SCRATCH_ARENA(memory);
  static const char *const priors[] = {"rays", "triangles", "swirl", "H", "corners"};
  enum { SAMPLES = 100000, DRAWS = 8000, MOMENTS = 5 };
  double *point = fixture_new(2 * SAMPLES, sizeof *point);
  for (size_t p = 0; p < sizeof priors / sizeof *priors; p++)
    for (int n = 1; n <= 4; n += 3) {
      ThetaSource source = source_of(priors[p]);
      Prior prior;
      const Likelihood likelihood = fixture_likelihood(0.5);
      History history = world(&memory, &source, &likelihood, 3, 1, n, NULL);
      CHECK_OK(problem_theta_prior(&memory, &source, NULL, &prior));
      double *theta = fixture_draw(sampler_find("exact"), &prior, &history, 3, DRAWS, 0, NULL, NULL);
      RngLanes rng = {
          .key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 6000, .draws = SAMPLES, .lanes = SAMPLES};
      prior.ops->sample(&prior, &rng, point);
      double total = 0, squares = 0, sum[MOMENTS] = {0}, square[MOMENTS] = {0}, found[MOMENTS] = {0};
      for (int s = 0; s < SAMPLES; s++) {
        double x = point[s], y = point[SAMPLES + s], f[MOMENTS] = {x, y, x * x, x * y, y * y};
        double w = exp(log_likelihood(&history, 0, x, y));
        total += w, squares += w * w;
        for (int k = 0; k < MOMENTS; k++) sum[k] += w * f[k], square[k] += w * f[k] * f[k];
      }
      for (int m = 0; m < DRAWS; m++) {
        double x = theta[m], y = theta[DRAWS + m], f[MOMENTS] = {x, y, x * x, x * y, y * y};
        for (int k = 0; k < MOMENTS; k++) found[k] += f[k] / DRAWS;
      }
      for (int k = 0; k < MOMENTS; k++) {
        double mean = sum[k] / total, variance = square[k] / total - mean * mean,
               effective = total * total / squares;
        CHECK_NEAR(found[k], mean, 5 * sqrt(variance / effective + variance / DRAWS));
      }
      free(theta);
      problem_theta_destroy(&source);
    }
  free(point);
}

/* ---- calibration: with theta* drawn from the prior and data from the model, the rank of theta* among DRAWS
 * exact draws is uniform along any direction (Talts et al. 2018). Chi-squared with 15 degrees of freedom,
 * level 1e-4. */
static void test_calibration(void) {
  SCRATCH_ARENA(memory);
  static const struct {
    const char *prior, *likelihood;
    int n;
    double noise;
  } worlds[] = {{"rays", "gaussian", 5, 0.5},   {"rays", "logistic", 10, 1},
                {"swirl", "gaussian", 3, 0.05}, {"corners", "gaussian", 1000, 0.1},
                {"cross", "logistic", 40, 1},   {"gm_rays", "poisson", 3, 1}};
  enum { RUNS = 400, DRAWS = 15, DIRECTIONS = 2 };
  double *star = fixture_new(2 * RUNS, sizeof *star);
  for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
    ThetaSource source = source_of(worlds[w].prior);
    PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
    const Likelihood likelihood = {.ops = likelihood_find(worlds[w].likelihood), .noise = worlds[w].noise};
    History history = world(&memory, &source, &likelihood, 100, RUNS, worlds[w].n, star);
    Prior prior;
    CHECK_OK(problem_theta_prior(&memory, &source, &fit, &prior));
    double *theta = fixture_draw(sampler_find("exact"), &prior, &history, 100, DRAWS, 0, NULL, NULL);
    for (int k = 0; k < DIRECTIONS; k++) {
      const double along = k == 0 ? 0.8 : -0.6, across = k == 0 ? 0.6 : 0.8, expected = RUNS / (DRAWS + 1.0);
      double count[DRAWS + 1] = {0}, chi = 0;
      for (int b = 0; b < RUNS; b++) {
        int rank = 0;
        for (int m = b * DRAWS; m < (b + 1) * DRAWS; m++)
          rank +=
              along * theta[m] + across * theta[RUNS * DRAWS + m] < along * star[b] + across * star[RUNS + b];
        count[rank]++;
      }
      for (int r = 0; r <= DRAWS; r++) chi += (count[r] - expected) * (count[r] - expected) / expected;
      if (chi >= 44.3) printf("\n    %s, %s: chi-squared %.1f\n", worlds[w].prior, worlds[w].likelihood, chi);
      CU_ASSERT(chi < 44.3);
    }
    free(theta);
    problem_theta_destroy(&source);
  }
  free(star);
}

/* ---- cost and failure */

/* Checks that proposals per draw, and cells, stay few however narrow the posterior: at most 4, and 1500. */
static void test_envelope(void) {
  SCRATCH_ARENA(memory);
  static const struct {
    const char *prior, *likelihood;
    int n;
    double noise;
  } worlds[] = {
      {"cross", "gaussian", 0, 1},         {"rays", "gaussian", 0, 1},    {"swirl", "gaussian", 1, 0.1},
      {"rays", "gaussian", 2, 0.1},        {"cross", "gaussian", 200, 1}, {"gm_rays", "gaussian", 1000, 0.1},
      {"swirl", "gaussian", 10000, 0.001}, {"cross", "logistic", 100, 1}, {"H", "poisson", 50, 1}};
  enum { PROPOSALS = 4000 };
  for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
    ThetaSource source = source_of(worlds[w].prior);
    PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
    const Likelihood likelihood = {.ops = likelihood_find(worlds[w].likelihood), .noise = worlds[w].noise};
    History history = world(&memory, &source, &likelihood, 9, 1, worlds[w].n, NULL);
    Prior prior;
    Envelope envelope;
    CHECK_OK(problem_theta_prior(&memory, &source, &fit, &prior));
    int64_t fallbacks = 0;
    CHECK_OK(envelope_create(&memory, &prior, &likelihood, &envelope));
    CU_ASSERT_TRUE(envelope_build(&envelope, &history, 0, &fallbacks));
    CU_ASSERT_EQUAL(fallbacks, 0);
    Rng rng = fixture_rng(0, 7000);
    double taken = 0, above = 0;
    for (int p = 0; p < PROPOSALS; p++) {
      double u[3], x[2], bound, density, l;
      rng_uniform(&rng, 3, u);
      envelope_draw(&envelope, u, x, &bound);
      prior.ops->log_density(&prior, 1, x, &density);
      envelope_log_likelihood(&envelope, 1, x, &l, NULL);
      taken += density > -INFINITY ? exp(fmin(density + l - bound, 0)) : 0;
      above += density + l > bound + 0.05;
    }
    CU_ASSERT(taken > PROPOSALS / 4.0);
    CU_ASSERT(envelope.count < 1500);
    /* The envelope is a bound, except at the tip of the swirl and at kinks smaller than a cell. */
    CU_ASSERT(above < 0.002 * PROPOSALS);
    problem_theta_destroy(&source);
  }
}

/* Checks data far outside the prior. A Gaussian prior is cut at the edge of its box, which is counted; a
 * uniform prior gives the closest corner of its support. */
static void test_disagreement(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 10 };
  const Likelihood likelihood = fixture_likelihood(0.1);
  double phi[2] = {1, 0}, y = 100;
  for (int uniform = 0; uniform < 2; uniform++) {
    ThetaSource source = source_of(uniform ? "rays" : "gaussian");
    Prior exact, bare = bare_prior(&source.mixture);
    History history = world(&memory, &source, &likelihood, 0, 1, 0, NULL);
    int64_t fallbacks;
    if (uniform) CHECK_OK(problem_theta_prior(&memory, &source, NULL, &exact));
    history_record(&history, NULL, phi, &y);
    double *theta = fixture_draw(sampler_find("exact"), uniform ? &exact : &bare, &history, 0, DRAWS, 0, NULL,
                                 &fallbacks);
    CU_ASSERT_EQUAL(fallbacks, uniform ? 0 : DRAWS);
    /* Mean 100, sd 0.1: the density falls by a factor of e^-970 for each 0.1 to the left of the tip at 3. */
    for (int m = 0; m < DRAWS && uniform; m++) CHECK_NEAR(theta[m], 3, 0.03);
    free(theta);
    problem_theta_destroy(&source);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"rejection against the closed form", test_closed_form},
                         {"a mixture with Gaussian rewards is left to mixts", test_delegation},
                         {"rejection against quadrature", test_quadrature},
                         {"rejection against importance sampling", test_importance_sampling},
                         {"ranks of theta* are uniform", test_calibration},
                         {"a tight bound with few cells", test_envelope},
                         {"data that the prior rules out", test_disagreement},
                         CU_TEST_INFO_NULL};
  return harness_run("exact", tests);
}

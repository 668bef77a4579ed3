/* The guard of a prior (src/sampler/guard.h): every registered sampler with every family of priors, against
 * the explicit mixture with one more component, quadrature, and a prior that is wrong. */
#include "catch_up_fixture.h"

#include "model/prior/training_samples.h"
#include "sampler/guard.h"

enum { RUNS = 3, DRAWS = 40 };
static const double G = 0.3, WIDTH = 2;

/* Makes the components of `prior` and the wide Gaussian, by separate formulas. */
static Mixture guarded(Arena *memory, const Mixture *prior, double g) {
  const int d = prior->d, last = prior->components;
  Mixture out;
  ASSERT(mixture_create(memory, d, last + 1, &out) == STATUS_OK);
  for (int c = 0; c < last; c++) {
    out.weight[c] = (1 - g) * prior->weight[c];
    for (int i = 0; i < d; i++) out.mean[last * d + i] += prior->weight[c] * prior->mean[c * d + i];
  }
  memcpy(out.mean, prior->mean, (size_t)(last * d) * sizeof(double));
  memcpy(out.covariance, prior->covariance, (size_t)(last * d * d) * sizeof(double));
  out.weight[last] = g;
  for (int i = 0; i < d; i++) {
    double variance = 0;
    for (int c = 0; c < last; c++) {
      const double away = prior->mean[c * d + i] - out.mean[last * d + i];
      variance += prior->weight[c] * (prior->covariance[(c * d + i) * d + i] + away * away);
    }
    out.covariance[(last * d + i) * d + i] = WIDTH * WIDTH * variance;
  }
  ASSERT(mixture_prepare(&out) == STATUS_OK);
  return out;
}

/* ---- every sampler */

static bool same_lane(int d, int n, const double *a, const double *b) {
  for (int i = 0; i < d; i++)
    if (memcmp(&a[i * RUNS * DRAWS + n], &b[i * RUNS * DRAWS + n], sizeof *a) != 0) return false;
  return true;
}

/* Checks that weight 0 changes no byte; otherwise the lanes that the guard does not take keep theirs, and the
 * number that it takes matches its weight, within 5 standard errors. */
static void check_lanes(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood) {
  SCRATCH_ARENA(memory);
  const char *none = "guard=0", *half = "guard=0.5";
  History history = fixture_history(&memory, prior->d, RUNS, 0, 6, likelihood);
  double *plain = fixture_draw(method, prior, &history, 0, DRAWS, 0, NULL, NULL);
  double *same = fixture_draw(method, prior, &history, 0, DRAWS, 1, &none, NULL);
  double *theta = fixture_draw(method, prior, &history, 0, DRAWS, 1, &half, NULL);
  double weight[RUNS];
  CU_ASSERT(memcmp(plain, same, (size_t)(prior->d * RUNS * DRAWS) * sizeof *plain) == 0);
  FixtureSampler sampler = make_sampler(&memory, method->name, prior, likelihood, 0, RUNS, DRAWS, 1, &half);
  CU_ASSERT(sampler_guard_weight(&sampler.sampler, &history, weight, sampler.fallbacks));
  for (int run = 0; run < RUNS; run++) {
    double taken = 0;
    for (int n = run * DRAWS; n < (run + 1) * DRAWS; n++) taken += !same_lane(prior->d, n, plain, theta);
    CHECK_NEAR(taken / DRAWS, weight[run], 5 * sqrt(weight[run] * (1 - weight[run]) / DRAWS) + 1e-9);
  }
  free_sampler(&sampler);
  free(plain);
  free(same);
  free(theta);
}

static void test_every_sampler(void) {
  SCRATCH_ARENA(memory);
  const char *likelihoods[] = {"gaussian", "logistic"};
  int pairs = 0;
  for (int f = 0; prior_family(f); f++) {
    const Prior prior = fixture_fitted_prior(&memory, prior_family(f), 2, false);
    for (int l = 0; l < 2; l++) {
      const Likelihood likelihood = {.ops = likelihood_find(likelihoods[l]), .noise = 0.8};
      for (int m = 0; sampler_method(m); m++) {
        char sentence[256];
        if (sampler_misfit(sampler_method(m), &prior, &likelihood, sizeof sentence, sentence)) continue;
        check_lanes(sampler_method(m), &prior, &likelihood);
        pairs++;
      }
    }
  }
  CU_ASSERT(pairs > 60);
}

/* ---- one more component */

/* Checks that mean and covariance of 20 000 draws are those of the posterior under the explicit mixture. */
static void test_more_component(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 20000 };
  const char *methods[] = {"mixts", "exact", "ts"}, *set = "guard=0.3";
  const Likelihood likelihood = fixture_likelihood(0.8);
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  for (int m = 0; m < 3; m++)
    for (int d = 1; d <= 5; d += 2) {
      Mixture mixture = fixture_mixture(&memory, d, m == 2 ? 1 : 2, 1.5),
              more = guarded(&memory, &mixture, G);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      for (int n = 0; n <= 6; n += 3) {
        History history = fixture_history(&memory, d, 2, 0, n, &likelihood);
        double *theta = fixture_draw(sampler_find(methods[m]), &prior, &history, 0, MANY, 1, &set, NULL);
        for (int run = 0; run < 2; run++) {
          FixtureData data = fixture_data(d, n, likelihood.noise, (uint32_t)run);
          FixturePosterior exact = fixture_posterior(&more, &data);
          fixture_check_moments(d, 2, MANY, run, theta, exact.total_mean, exact.total_covariance, 5);
        }
        free(theta);
      }
    }
}

/* ---- weights */

/* Sums over a grid the weight of a component times its density times exp(log likelihood of the first n
 * observations of a run); the relative error is below 1e-6. */
static double quadrature(const Mixture *mixture, int c, const Likelihood *likelihood, int n, int run) {
  const int d = mixture->d, side = d == 1 ? 20000 : 1000;
  const double most = 16, step = 2 * most / side, *m = mixture->mean + c * d,
               *p = mixture_precision(mixture, c);
  const FixtureData data = fixture_data(d, n, likelihood->noise, (uint32_t)run);
  double total = 0, y[FIXTURE_OBSERVATIONS];
  for (int l = 0; l < n; l++) y[l] = fixture_reward(likelihood, data.y[l]);
  for (int k = 0; k < (d == 1 ? side : side * side); k++) {
    const double theta[2] = {-most + step * (k % side + 0.5), d == 1 ? 0 : -most + step * (k / side + 0.5)};
    double sum = mixture->log_norm[c];
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) sum -= 0.5 * (theta[i] - m[i]) * p[i * d + j] * (theta[j] - m[j]);
    if (sum < -40) continue;
    for (int l = 0; l < n; l++) {
      const double u = data.phi[l][0] * theta[0] + (d == 1 ? 0 : data.phi[l][1] * theta[1]);
      sum += likelihood->ops->log_likelihood(likelihood, y[l], u);
    }
    total += exp(sum);
  }
  return total * pow(step, d);
}

/* Computes the Laplace evidence of a component, by its own damped Newton steps: the height at the mode times
 * (2 pi)^(d/2) over the root of the determinant of the curvature there, which for d <= 2 is written out. */
static double laplace(const Mixture *mixture, int c, const Likelihood *likelihood, int n, int run) {
  const int d = mixture->d;
  const double *m = mixture->mean + c * d, *p = mixture_precision(mixture, c);
  const FixtureData data = fixture_data(d, n, likelihood->noise, (uint32_t)run);
  double theta[2] = {m[0], d == 2 ? m[1] : 0}, height = 0, determinant = 1;
  for (int step = 0; step < 200; step++) {
    double gradient[2] = {0}, curvature[4] = {p[0], 0, 0, 1};
    height = mixture->log_norm[c];
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) {
        height -= 0.5 * (theta[i] - m[i]) * p[i * d + j] * (theta[j] - m[j]);
        gradient[i] -= p[i * d + j] * (theta[j] - m[j]);
        curvature[i * 2 + j] = p[i * d + j];
      }
    for (int l = 0; l < n; l++) {
      const double u = data.phi[l][0] * theta[0] + (d == 1 ? 0 : data.phi[l][1] * theta[1]);
      const double y = fixture_reward(likelihood, data.y[l]);
      double slope, bend;
      likelihood->ops->derivatives(likelihood, 1, &y, &u, &slope, &bend);
      height += likelihood->ops->log_likelihood(likelihood, y, u);
      for (int i = 0; i < d; i++) {
        gradient[i] += slope * data.phi[l][i];
        for (int j = 0; j < d; j++) curvature[i * 2 + j] -= bend * data.phi[l][i] * data.phi[l][j];
      }
    }
    determinant = curvature[0] * curvature[3] - curvature[1] * curvature[2];
    theta[0] += 0.3 * (curvature[3] * gradient[0] - curvature[1] * gradient[1]) / determinant;
    theta[1] += 0.3 * (curvature[0] * gradient[1] - curvature[2] * gradient[0]) / determinant;
  }
  return exp(height) * pow(2 * M_PI, 0.5 * d) / sqrt(determinant);
}

/* Computes a weight; log_norm contains the weight of the component, so the sums do too. */
static double weight_by(double (*evidence)(const Mixture *, int, const Likelihood *, int, int),
                        const Mixture *more, const Likelihood *likelihood, int n, int run) {
  double sum = 0, last = 0;
  for (int c = 0; c < more->components; c++) sum += last = evidence(more, c, likelihood, n, run);
  return last / sum;
}

/* Checks weights. With Gaussian rewards they agree to rounding. With binary ones IRLS ends with the precision
 * from before a step of R delta / 2 <= 1e-8 (irls.h), so with R below 2e-4 here, which is the error of a log
 * determinant, and moves a weight by at most a quarter of that for each of the two dimensions. */
static void test_weights(void) {
  SCRATCH_ARENA(memory);
  const char *likelihoods[] = {"gaussian", "logistic"}, *sets[] = {"guard=0.3", "approximation=laplace"};
  const double tolerance[] = {1e-6, 1e-4};
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  for (int l = 0; l < 2; l++)
    for (int d = 1; d <= 2; d++) {
      const Likelihood likelihood = {.ops = likelihood_find(likelihoods[l]), .noise = 0.8};
      Mixture mixture = fixture_mixture(&memory, d, 2, 1.5), more = guarded(&memory, &mixture, G);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      for (int n = 2; n <= 8; n += 3) {
        double weight[RUNS];
        History history = fixture_history(&memory, d, RUNS, 0, n, &likelihood);
        FixtureSampler sampler = make_sampler(&memory, "mixts", &prior, &likelihood, 0, RUNS, 1, 2, sets);
        CU_ASSERT(sampler_guard_weight(&sampler.sampler, &history, weight, sampler.fallbacks));
        for (int run = 0; run < RUNS; run++)
          CHECK_NEAR(weight[run], weight_by(l ? laplace : quadrature, &more, &likelihood, n, run),
                     tolerance[l]);
        free_sampler(&sampler);
      }
    }
}

/* Checks that weights say by a fallback where the evidence of clicks is not to be trusted: 200 clicks of 0
 * under N(0, 10^2), but not when half of them are 1. Moments count it once. */
static void test_doubtful_weight(void) {
  SCRATCH_ARENA(memory);
  enum { CLICKS = 200 };
  const char *set = "guard=0.3";
  const Likelihood likelihood = {.ops = likelihood_find("logistic"), .noise = 1};
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture;
  CHECK_OK(mixture_create(&memory, 1, 1, &mixture));
  mixture.weight[0] = 1, mixture.covariance[0] = 100;
  CHECK_OK(mixture_prepare(&mixture));
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int ones = 0; ones <= 1; ones++) {
    const double phi = 1;
    double weight, mean, variance;
    int64_t fallbacks = 0;
    History history;
    CHECK_OK(history_create(&memory, 1, 1, &likelihood, &history));
    CHECK_OK(history_reserve(&history, CLICKS));
    for (int l = 0; l < CLICKS; l++) {
      const double y = ones && l % 2;
      history_record(&history, NULL, &phi, &y);
    }
    FixtureSampler sampler = make_sampler(&memory, "mixts", &prior, &likelihood, 0, 1, 1, 1, &set);
    CU_ASSERT(sampler_guard_weight(&sampler.sampler, &history, &weight, &fallbacks));
    CU_ASSERT_EQUAL(fallbacks, !ones);
    fallbacks = 0;
    guard_moments(sampler.sampler.guard, &history, &mean, &variance, &fallbacks);
    CU_ASSERT_EQUAL(fallbacks, !ones);
    free_sampler(&sampler);
  }
}

/* Compares with the marginal likelihood under the prior and the wide Gaussian together, by quadrature; the
 * path's own error is below 1e-3. */
static void test_marginal(void) {
  SCRATCH_ARENA(memory);
  const char *set = "guard=0.3";
  const Likelihood likelihood = fixture_likelihood(0.8);
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 1, 2, 1.5), more = guarded(&memory, &mixture, G);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = fixture_history(&memory, 1, RUNS, 0, 5, &likelihood);
  FixtureSampler sampler = make_sampler(&memory, "localised", &prior, &likelihood, 0, RUNS, 1, 1, &set);
  double value[RUNS], error[RUNS];
  const RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_MARGINAL), .draws = 1, .lanes = RUNS};
  CU_ASSERT(sampler_marginal(&sampler.sampler, &history, rng, value, error, sampler.fallbacks));
  for (int run = 0; run < RUNS; run++) {
    double sum = 0;
    for (int c = 0; c < more.components; c++) sum += quadrature(&more, c, &likelihood, 5, run);
    CHECK_NEAR(value[run], log(sum) + 2.5 * log(2 * M_PI * 0.64), 2e-3);
  }
  free_sampler(&sampler);
}

/* ---- a prior that is wrong */

/* Makes 50 observations of `truth` with noise 0.5, at arms that are standard normal. */
static History observe(Arena *memory, const double *truth, const Likelihood *likelihood) {
  enum { OBSERVATIONS = 50 };
  History history;
  ASSERT(history_create(memory, 2, 1, likelihood, &history) == STATUS_OK);
  Rng rng = fixture_rng(0, 4000);
  for (int l = 0; l < OBSERVATIONS; l++) {
    double phi[2], noise;
    rng_normal(&rng, 2, phi);
    rng_normal(&rng, 1, &noise);
    const double y = phi[0] * truth[0] + phi[1] * truth[1] + likelihood->noise * noise;
    history_record(&history, NULL, phi, &y);
  }
  return history;
}

/* Checks wrong priors: every learned prior is off by 8 in each coordinate, five or more of its standard
 * deviations. With the guard the mean of the draws is within 0.35 of the truth: four posterior standard
 * deviations of 0.07 and the pull of the wide Gaussian. With both, the weight of the guard is 1. */
static void test_wrong_prior(void) {
  const struct {
    const char *family, *method;
  } cases[] = {{"gaussian", "ts"},
               {"mixture", "mixts"},
               {"diffusion", "diffts"},
               {"diffusion", "twisted"},
               {"denoiser", "localised"}};
  const char *set = "guard=0.05";
  const double truth[2] = {-8, -8};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    SCRATCH_ARENA(memory);
    const Likelihood likelihood = fixture_likelihood(0.5);
    const Prior prior = fixture_fitted_prior(&memory, prior_find(cases[k].family), 2, false);
    const History history = observe(&memory, truth, &likelihood);
    double *theta = fixture_draw(sampler_find(cases[k].method), &prior, &history, 0, DRAWS, 1, &set, NULL);
    for (int i = 0; i < 2; i++) {
      double mean = 0;
      for (int n = 0; n < DRAWS; n++) mean += theta[i * DRAWS + n] / DRAWS;
      CHECK_NEAR(mean, truth[i], 0.35);
    }
    free(theta);
  }
}

/* Checks draws from the wide Gaussian alone, which has all the weight: half of its standard deviation. */
static void test_shrink(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 20000 };
  const Likelihood likelihood = fixture_likelihood(0.8);
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 2, 1.5), more = guarded(&memory, &mixture, 0.999999);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  prior.guard = (PriorGuard){.weight = 0.999999, .width = WIDTH, .shrink = 0.5};
  History history = fixture_history(&memory, 2, 1, 0, 3, &likelihood);
  double *theta = fixture_draw(sampler_find("mixts"), &prior, &history, 0, MANY, 0, NULL, NULL);
  FixtureData data = fixture_data(2, 3, likelihood.noise, 0);
  FixturePosterior exact = fixture_posterior(&more, &data);
  for (int i = 0; i < 4; i++) exact.covariance[2][i] /= 4;
  fixture_check_moments(2, 1, MANY, 0, theta, exact.mean[2], exact.covariance[2], 5);
  free(theta);
}

/* ---- contamination */

/* Checks that the requested share of samples is replaced, by samples of twice the standard deviation about
 * the mean of all, within 5 standard errors; the others stay, and with a share of 0 all do. */
static void test_contamination(void) {
  enum { SAMPLES = 4000 };
  static double theta[2 * SAMPLES], before[2 * SAMPLES];
  PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  Samples samples = {.d = 2, .n = SAMPLES, .theta = theta};
  Rng rng = fixture_rng(0, 9000);
  rng_normal(&rng, 2 * SAMPLES, theta);
  for (int j = 0; j < SAMPLES; j++) theta[j] = 5 + 3 * theta[j];
  memcpy(before, theta, sizeof theta);
  fit.guard_width = WIDTH;
  CHECK_OK(training_samples_contaminate(&fit, &samples));
  CU_ASSERT(memcmp(before, theta, sizeof theta) == 0);
  fit.contamination = G;
  CHECK_OK(training_samples_contaminate(&fit, &samples));
  double count = 0, sum = 0, squares = 0;
  for (int j = 0; j < SAMPLES; j++) {
    const bool replaced = theta[j] != before[j];
    CU_ASSERT(replaced == (theta[SAMPLES + j] != before[SAMPLES + j]));
    if (!replaced) continue;
    count++;
    sum += theta[j] - 5;
    squares += (theta[j] - 5) * (theta[j] - 5);
  }
  CHECK_NEAR(count / SAMPLES, G, 5 * sqrt(G * (1 - G) / SAMPLES));
  CHECK_NEAR(sum / count, 0, 5 * 6 / sqrt(count) + 5 * 3 / sqrt(SAMPLES));
  CHECK_NEAR(sqrt(squares / count), 6, 5 * 6 / sqrt(2 * count) + 5 * 6 / sqrt(2 * SAMPLES));
}

/* ---- files */

static void test_files(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_REPAIRED);
  for (int f = 0; prior_family(f); f++) {
    Prior prior = fixture_fitted_prior(&memory, prior_family(f), 2, false), loaded;
    CHECK_OK(prior_save(&prior, "guard_prior.nc"));
    CHECK_OK(prior_load(&memory, "guard_prior.nc", &fit, &loaded));
    const Mixture *saved = prior_stand_in(&prior), *read = prior_stand_in(&loaded);
    CU_ASSERT_PTR_NOT_NULL_FATAL(read);
    CU_ASSERT_EQUAL_FATAL(saved->components, read->components);
    CU_ASSERT(memcmp(saved->mean, read->mean, (size_t)(2 * read->components) * sizeof(double)) == 0);
    CU_ASSERT(memcmp(saved->log_norm, read->log_norm, (size_t)read->components * sizeof(double)) == 0);
  }
  /* A file from before, with networks only. */
  Prior prior = fixture_fitted_prior(&memory, prior_find("diffusion"), 2, false), loaded;
  prior.companion = NULL;
  CHECK_OK(prior_save(&prior, "guard_prior.nc"));
  CHECK_OK(prior_load(&memory, "guard_prior.nc", &fit, &loaded));
  fixture_refused("diffts", &loaded, &likelihood, 1, 1, "guard=0.1", "train it again");
  remove("guard_prior.nc");
}

/* ---- all draws of one history */

enum { WIDE = 40, SEEN = 4, MANY = 20000 };

/* A sampler of draws for themselves, or one for each run as in a bandit, and two histories. */
typedef struct {
  Arena memory;
  Likelihood likelihood;
  History history;
  Config *options;
  Sampler sampler;
  int64_t fallbacks[2];
} TwoRuns;

static void two_runs_free(TwoRuns *self) { arena_free(&self->memory); }

static void two_runs_create(const Prior *prior, const char *family, const char *set, bool together,
                            TwoRuns *out) {
  const SamplerOps *method = sampler_find("mixts");
  double x[2 * WIDE], y[2];
  Rng rng = fixture_rng(3, 3);
  out->likelihood = (Likelihood){.ops = likelihood_find(family), .noise = 0.8};
  CHECK_OK(history_create(&out->memory, WIDE, 2, &out->likelihood, &out->history));
  CHECK_OK(history_reserve(&out->history, SEEN));
  for (int l = 0; l < SEEN; l++) {
    rng_normal(&rng, 2 * WIDE, x);
    rng_normal(&rng, 2, y);
    for (int b = 0; b < 2; b++) y[b] = fixture_reward(&out->likelihood, 4 * y[b]);
    history_record(&out->history, NULL, x, y);
  }
  CHECK_OK(config_options(&out->memory, "test", sampler_keys(method), 1, &set, &out->options));
  const SamplerSetup setup = {.prior = prior,
                              .likelihood = &out->likelihood,
                              .runs = 2,
                              .draws = together ? MANY : 1,
                              .for_themselves = together,
                              .observations = SEEN,
                              .options = out->options};
  CHECK_OK(sampler_create(&out->memory, method, &setup, &out->sampler));
  CU_ASSERT_EQUAL(out->sampler.observed, together);
}

/* Returns a mixture of isotropic components, or of others. */
static Mixture two_components(Arena *memory, bool isotropic) {
  Mixture out;
  Rng rng = fixture_rng(5, 5);
  ASSERT(mixture_create(memory, WIDE, 2, &out) == STATUS_OK);
  for (int c = 0; c < 2; c++) {
    out.weight[c] = c ? 0.7 : 0.3;
    rng_normal(&rng, WIDE, out.mean + c * WIDE);
    for (int i = 0; i < WIDE * WIDE; i++)
      out.covariance[c * WIDE * WIDE + i] = (i % (WIDE + 1) == 0 ? 0.5 : 0) + (isotropic ? 0 : 0.1 * (c + 1));
  }
  ASSERT(mixture_prepare(&out) == STATUS_OK);
  return out;
}

/* Checks the guard of draws of one history, which sees four directions of 40, against the one with matrices
 * in all: equal weights (with clicks both are by expectation propagation, which stops at steps of 1e-8), and
 * with Gaussian rewards mean and covariance of 20 000 draws those of the closed form, within 5.5 standard
 * errors (of 1 640 numbers), also if the wide Gaussian's draws are shrunk. */
static void test_draws_of_one_history(void) {
  static const char *const families[] = {"gaussian", "logistic"}, *const sets[] = {"guard=0.6", "guard=auto"};
  const PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
  static double mean[2 * WIDE], covariance[2 * WIDE * WIDE], own_mean[WIDE], own[WIDE * WIDE];
  for (int k = 0; k < 8; k++) {
    SCRATCH_ARENA(memory);
    SCOPED(TwoRuns, together, two_runs_free);
    SCOPED(TwoRuns, apart, two_runs_free);
    const Mixture mixture = two_components(&memory, k & 1);
    const Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    double weight[2], expected[2];
    two_runs_create(&prior, families[k / 4], sets[k / 2 % 2], true, &together);
    two_runs_create(&prior, families[k / 4], sets[k / 2 % 2], false, &apart);
    CU_ASSERT(sampler_guard_weight(&together.sampler, &together.history, weight, together.fallbacks));
    CU_ASSERT(sampler_guard_weight(&apart.sampler, &apart.history, expected, apart.fallbacks));
    for (int b = 0; b < 2; b++) CHECK_NEAR(weight[b], expected[b], k < 4 ? 1e-9 : 1e-6);
    if (k >= 4) continue;
    const RngLanes rng = rng_lanes(rng_key(FIXTURE_SEED, RNG_TEST), 0, 2, MANY, 0);
    double *theta = (double *)fixture_new(2 * WIDE * MANY, sizeof *theta);
    sampler_sample(&together.sampler, &together.history, rng, MANY, theta, together.fallbacks);
    sampler_moments(&apart.sampler, &apart.history, (RngLanes){0}, NULL, mean, covariance, apart.fallbacks);
    for (int b = 0; b < 2; b++) {
      for (int i = 0; i < WIDE; i++) own_mean[i] = mean[2 * i + b];
      for (int i = 0; i < WIDE * WIDE; i++) own[i] = covariance[2 * i + b];
      fixture_check_moments(WIDE, 2, MANY, b, theta, own_mean, own, 5.5);
    }
    CU_ASSERT(together.fallbacks[0] == 0 && together.fallbacks[1] == 0);
    free(theta);
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"every sampler", test_every_sampler},
                         {"one more component", test_more_component},
                         {"weights in closed form", test_weights},
                         {"weights that are not to be trusted", test_doubtful_weight},
                         {"marginal likelihood", test_marginal},
                         {"a wrong prior", test_wrong_prior},
                         {"shrunk draws", test_shrink},
                         {"contamination", test_contamination},
                         {"files", test_files},
                         {"draws of one history", test_draws_of_one_history},
                         CU_TEST_INFO_NULL};
  return harness_run("guard", tests);
}

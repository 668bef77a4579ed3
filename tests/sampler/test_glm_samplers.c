/* Samplers under generalised linear models: with an identity link the closed form, draw by draw; no lane
 * depends on its neighbours; every draw of ts and mixts follows a dense Newton iteration (glm_fixture.h), and
 * its law is compared with brute-force quadrature of the posterior itself. test_glm_chain.c has the stages of
 * diffts and dps. */
#include "core/arena.h"
#include "policy/policy.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include "glm_fixture.h"

/* ---- identity link: the same draws as the closed form */

static bool has_key(const SamplerOps *method, const char *name) {
  for (const ConfigKey *key = sampler_keys(method); key->name; key++)
    if (strcmp(key->name, name) == 0) return true;
  return false;
}

/* Checks Gaussian rewards that are not known to be conjugate, so that the history keeps rows. The
 * observations are not fewer than the dimensions: with fewer the null space has no basis of its own. To
 * rounding, which dps with its full step blows up. */
static void test_identity_link(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3, DRAWS = 30 };
  static const char *const small_step = "step_size=0.05", *const alone = "candidates=1";
  LikelihoodOps rows_ops = *likelihood_find("gaussian");
  rows_ops.quadratic = false;
  for (int d = 1; d <= 5; d += 2)
    for (int components = 1; components <= 3; components += 2) {
      PriorFit fit = fixture_fit(15, 0.85, LAST_STAGE_REPAIRED);
      Mixture mixture = fixture_mixture(&memory, d, components, 1.5);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      for (int i = 0; sampler_method(i); i++) {
        const SamplerOps *method = sampler_method(i);
        const bool dps = strcmp(method->name, "dps") == 0; /* its deviance is that of variance 1 */
        /* vts stops where its bound gains less than 1e-9, and rounding moves that point. */
        const double tolerance = strcmp(method->name, "vts") == 0 ? 1e-6 : 1e-9;
        const Likelihood closed = fixture_likelihood(dps ? 1 : 0.7),
                         by_rows = {.ops = &rows_ops, .noise = closed.noise};
        char sentence[256];
        if (sampler_misfit(method, &prior, &by_rows, sizeof sentence, sentence)) continue;
        /* mala whitens a Gaussian prior where rewards are conjugate: other steps. */
        if (strcmp(method->name, "mala") == 0 && components == 1) continue;
        History history = fixture_history(&memory, d, RUNS, 0, 7, &closed);
        History kept = fixture_history(&memory, d, RUNS, 0, 7, &by_rows);
        CU_ASSERT(history.ops != kept.ops);
        const bool candidates = has_key(method, "candidates");
        const char *const *set = dps ? &small_step : &alone;
        double *expected = fixture_draw(method, &prior, &history, 0, DRAWS, dps || candidates, set, NULL);
        double *theta = fixture_draw(method, &prior, &kept, 0, DRAWS, dps || candidates, set, NULL);
        for (int k = 0; k < d * RUNS * DRAWS; k++) CHECK_NEAR(theta[k], expected[k], tolerance);
        free(expected);
        free(theta);
      }
    }
}

/* ---- without observations */

static void test_no_history(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 2, DRAWS = 37, LANES = RUNS * DRAWS };
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++)
    for (int d = 1; d <= 5; d++) {
      const Likelihood likelihood = glm(families[k]), gaussian = fixture_likelihood(1);
      PriorFit fit = fixture_fit(12, 0.8, LAST_STAGE_REPAIRED);
      Mixture mixture = fixture_mixture(&memory, d, 2, 1.5);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      History history = fixture_history(&memory, d, RUNS, 0, 0, &likelihood);
      History plain = fixture_history(&memory, d, RUNS, 0, 0, &gaussian);
      double expected[D_MOST * LANES], scratch[2 * D_MOST * LANES];
      RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = DRAWS, .lanes = LANES};
      double *theta = fixture_draw(sampler_find("diffts"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
      denoiser_chain_sample(prior.chain, &rng, expected, scratch);
      for (int i = 0; i < d * LANES; i++)
        CHECK_NEAR(theta[i], expected[i], 1e-12); /* one fuses what the other rounds */
      free(theta);
      /* The mixture's own law, as with conjugate rewards, against which test_conjugate.c checks it. */
      theta = fixture_draw(sampler_find("mixts"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
      double *other = fixture_draw(sampler_find("mixts"), &prior, &plain, 0, DRAWS, 0, NULL, NULL);
      for (int i = 0; i < d * LANES; i++) CHECK_NEAR(theta[i], other[i], 1e-11);
      free(theta);
      free(other);
    }
}

/* ---- no lane depends on its neighbours */

/* Checks runs of quite different difficulty side by side, one draw each and several; more than one chunk. */
static void test_neighbours(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 70, D = 3, N = 25 };
  static const char *const families[] = {"logistic", "poisson"};
  static const char *const methods[] = {"ts", "diffts", "dps"};
  Rows *rows = fixture_new(RUNS, sizeof *rows);
  PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, D, &fit, &prior));
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    for (int run = 0; run < RUNS; run++)
      rows[run] = make_rows(&likelihood, D, N, run % 3 == 0 ? 0.05 : run % 3 == 1 ? 2 : 20, (uint32_t)run);
    History history = make_history(&memory, RUNS, rows, &likelihood);
    for (int m = 0; m < 3; m++) {
      const SamplerOps *method = sampler_find(methods[m]);
      for (int draws = 1; draws <= 3; draws += 2) {
        double *block = fixture_draw(method, &prior, &history, 0, draws, 0, NULL, NULL);
        int different = 0;
        for (int run = 0; run < RUNS; run++) {
          History alone = make_history(&memory, 1, rows + run, &likelihood);
          double *theta = fixture_draw(method, &prior, &alone, (uint32_t)run, draws, 0, NULL, NULL);
          for (int i = 0; i < D; i++)
            different += memcmp(theta + i * draws, block + (i * RUNS + run) * draws,
                                (size_t)draws * sizeof *theta) != 0;
          free(theta);
        }
        if (different) printf("\n    %s %s %d: %d differ\n", families[k], methods[m], draws, different);
        CU_ASSERT_EQUAL(different, 0);
        free(block);
      }
    }
  }
  free(rows);
}

/* Checks the same where so many components are too large for all runs of a chunk at once. */
static void test_many_components(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 70, D = 5, COMPONENTS = 1500 };
  static const int looked_at[] = {0, 31, 32, 46, 69};
  const Likelihood likelihood = glm("logistic");
  Rows *rows = fixture_new(RUNS, sizeof *rows);
  PriorFit fit = fixture_fit(1, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, COMPONENTS, 1.5);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int run = 0; run < RUNS; run++) rows[run] = make_rows(&likelihood, D, 3, 2, (uint32_t)run);
  History history = make_history(&memory, RUNS, rows, &likelihood);
  double *block = fixture_draw(sampler_find("mixts"), &prior, &history, 0, 1, 0, NULL, NULL);
  for (int k = 0; k < 5; k++) {
    const int run = looked_at[k];
    History alone = make_history(&memory, 1, rows + run, &likelihood);
    double *theta = fixture_draw(sampler_find("mixts"), &prior, &alone, (uint32_t)run, 1, 0, NULL, NULL);
    for (int i = 0; i < D; i++) CU_ASSERT_EQUAL(theta[i], block[i * RUNS + run]);
    free(theta);
  }
  free(block);
  free(rows);
}

/* ---- ts and mixts: the Laplace approximation of every component, draw by draw */

static const char *const LAPLACE = "approximation=laplace";

/* Checks that every draw is that of the Laplace approximation, to 2e-4: the last step of IRLS has R delta <=
 * 1e-8 with R and delta alike, and the precision is taken before it, so it is right to about R = 1e-4. The
 * draws with u close to a boundary fix the weights to the spacing of 4 000 uniforms. */
static void test_draws_follow_laplace(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 4000 };
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++)
    for (int d = 1; d <= 5; d += 2)
      for (int components = 1; components <= 3; components++)
        for (int n = 5; n <= 40; n += 35) {
          const Likelihood likelihood = glm(families[k]);
          PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
          Mixture mixture = fixture_mixture(&memory, d, components, 1);
          Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
          Rows rows = make_rows(&likelihood, d, n, 1.5, 4);
          History history = make_history(&memory, 1, &rows, &likelihood);
          FixturePosterior posterior = laplace_posterior(&mixture, &rows);
          int64_t fallbacks;
          double *theta =
              fixture_draw(sampler_find("mixts"), &prior, &history, 4, DRAWS, 1, &LAPLACE, &fallbacks);
          double expected[D_MOST], worst = 0;
          CU_ASSERT_EQUAL(fallbacks, 0);
          for (uint32_t m = 0; m < DRAWS; m++) {
            Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = 4, .round = 7, .draw = m};
            if (fixture_component_draw(d, components, &posterior, rng, expected) < 0) continue;
            for (int i = 0; i < d; i++) worst = fmax(worst, fabs(theta[i * DRAWS + (int)m] - expected[i]));
          }
          CHECK_NEAR(worst, 0, 2e-4);
          free(theta);
        }
}

/* Computes evidence, mean[2] and covariance[2, 2] of prior component c times likelihood, and the mass of
 * theta_1 > split, by the rectangle rule on [-9, 9]^2: exact to 1e-6 for densities this smooth. */
typedef struct {
  double evidence, right, mean[2], covariance[4];
} GlmMoments;

static GlmMoments quadrature(const Mixture *mixture, int c, const Rows *rows, double split) {
  enum { POINTS = 360 };
  const double step = 18.0 / POINTS;
  double precision[4], second[4] = {0};
  double log_det = fixture_invert(2, mixture->covariance + c * 4, precision);
  GlmMoments out = {0};
  for (int a = 0; a < POINTS; a++)
    for (int b = 0; b < POINTS; b++) {
      double theta[2] = {-9 + (a + 0.5) * step, -9 + (b + 0.5) * step};
      double p = mixture->weight[c] * exp(log_normal(2, theta, mixture->mean + c * 2, precision) -
                                          0.5 * log_det + log_likelihood(rows, theta));
      out.evidence += p;
      if (theta[0] > split) out.right += p;
      for (int i = 0; i < 4; i++) second[i] += p * theta[i / 2] * theta[i % 2];
      for (int i = 0; i < 2; i++) out.mean[i] += p * theta[i];
    }
  for (int i = 0; i < 2; i++) out.mean[i] /= out.evidence;
  for (int i = 0; i < 4; i++)
    out.covariance[i] = second[i] / out.evidence - out.mean[i / 2] * out.mean[i % 2];
  return out;
}

/* Checks ts with 40 000 draws: mean and covariance of the Laplace approximation within 5 standard errors;
 * those of the posterior itself within the bias of that approximation with 60 observations, here 0.15
 * standard deviations and 5% of the deviation (measured: 0.06 and 2.6%). */
static void test_ts_law(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 40000 };
  const double bias_mean = 0.15, bias_spread = 0.05;
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, 2, 1, 1);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    Rows rows = make_rows(&likelihood, 2, 60, 1, 2);
    History history = make_history(&memory, 1, &rows, &likelihood);
    FixturePosterior laplace = laplace_posterior(&mixture, &rows);
    GlmMoments exact = quadrature(&mixture, 0, &rows, 0);
    double *theta = fixture_draw(sampler_find("ts"), &prior, &history, 2, DRAWS, 1, &LAPLACE, NULL);
    fixture_check_moments(2, 1, DRAWS, 0, theta, laplace.mean[0], laplace.covariance[0], 5);
    for (int i = 0; i < 2; i++) {
      double mean = 0, square = 0, deviation = sqrt(exact.covariance[3 * i]);
      for (int m = 0; m < DRAWS; m++) mean += theta[i * DRAWS + m] / DRAWS;
      for (int m = 0; m < DRAWS; m++) square += pow(theta[i * DRAWS + m] - mean, 2) / DRAWS;
      CHECK_NEAR((mean - exact.mean[i]) / deviation, 0, bias_mean);
      CHECK_NEAR(sqrt(square) / deviation, 1, bias_spread);
    }
    free(theta);
  }
}

/* Checks mixts with 40 000 draws: the share of every component against the weights by Laplace evidence, 5
 * standard errors; those against the weights by quadrature within 0.01 more, for the error of the Laplace
 * evidences (measured: 0.002); the mass of a half-space under the posterior itself within 0.02 more
 * (measured: 0.005). */
static void test_mixts_law(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 40000, C = 3 };
  const double split = 0.2, bias = 0.01;
  static const char *const families[] = {"logistic", "poisson"};
  for (int k = 0; k < 2; k++) {
    const Likelihood likelihood = glm(families[k]);
    PriorFit fit = fixture_fit(2, 0.9, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, 2, C, 1.2);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    Rows rows = make_rows(&likelihood, 2, 6, 1, 3);
    History history = make_history(&memory, 1, &rows, &likelihood);
    FixturePosterior laplace = laplace_posterior(&mixture, &rows);
    double *theta = fixture_draw(sampler_find("mixts"), &prior, &history, 3, DRAWS, 1, &LAPLACE, NULL);
    double share[C] = {0}, exact[C], total = 0, mass = 0, right = 0, expected[2];
    for (uint32_t m = 0; m < DRAWS; m++) {
      Rng rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .run = 3, .round = 7, .draw = m};
      int c = fixture_component_draw(2, C, &laplace, rng, expected);
      if (c >= 0 && fabs(theta[m] - expected[0]) < 2e-4) share[c] += 1.0 / DRAWS;
      right += (theta[m] > split) / (double)DRAWS;
    }
    for (int c = 0; c < C; c++) {
      GlmMoments component = quadrature(&mixture, c, &rows, split);
      total += exact[c] = component.evidence;
      mass += component.right;
    }
    for (int c = 0; c < C; c++) {
      double w = laplace.weight[c];
      CHECK_NEAR(share[c], w, 5 * sqrt(w * (1 - w) / DRAWS));
      CHECK_NEAR(share[c], exact[c] / total, bias + 5 * sqrt(w * (1 - w) / DRAWS));
    }
    mass /= total;
    CHECK_NEAR(right, mass, 2 * bias + 5 * sqrt(mass * (1 - mass) / DRAWS));
    free(theta);
  }
}

/* ---- separable rewards with long features: every mode is found; dps is known to diverge */

static void test_separable(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, N = 50, DRAWS = 50 };
  static const char *const methods[] = {"ts", "diffts", "dps"};
  const Likelihood likelihood = glm("logistic");
  PriorFit fit = fixture_fit(30, 0.9, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, D, &fit, &prior));
  for (double length = 1; length <= 1000; length *= 10) {
    Rows rows = make_rows(&likelihood, D, N, length, 8);
    for (int l = 0; l < N; l++) rows.y[l] = rows.phi[l][0] > 0;
    History history = make_history(&memory, 1, &rows, &likelihood);
    for (int m = 0; m < 3; m++) {
      int64_t fallbacks;
      double *theta = fixture_draw(sampler_find(methods[m]), &prior, &history, 0, DRAWS, 0, NULL, &fallbacks);
      for (int i = 0; i < D * DRAWS; i++) CU_ASSERT(fabs(theta[i]) <= CHAIN_GUARD);
      if (m < 2) CU_ASSERT_EQUAL(fallbacks, 0);
      free(theta);
    }
  }
}

/* ---- refusals */

static void test_refusal(void) {
  SCRATCH_ARENA(memory);
  StudyFile *study;
  Problem problem;
  PolicyMethod method;
  Policy policy;
  CHECK_OK(config_study_parse("test", "name: t\nlikelihood: logistic\npolicies: [linucb]\n", &study_schema, 0,
                              NULL, &study));
  CHECK_OK(study_problem_create(study->settings[0], &problem));
  CU_ASSERT_TRUE(policy_find("linucb", &method));
  PolicySetup setup = {.problem = &problem, .options = study->policies[0].options, .runs = 2};
  CHECK_FAILS(
      policy_create(&memory, &method, &setup, &policy), STATUS_INPUT,
      "policy linucb needs a likelihood that is quadratic in phi' theta (gaussian); likelihood logistic "
      "is not: use glm_ucb");
  CU_ASSERT_PTR_NULL(strchr(status_message(), '\n'));
  problem_destroy(&problem);
  config_study_free(study);
}

int main(void) {
  CU_TestInfo tests[] = {{"identity link: the closed form, draw by draw", test_identity_link},
                         {"no history is the prior", test_no_history},
                         {"neighbours do not matter", test_neighbours},
                         {"many components do not matter", test_many_components},
                         {"every draw follows the Laplace approximation", test_draws_follow_laplace},
                         {"ts against quadrature", test_ts_law},
                         {"mixts against quadrature", test_mixts_law},
                         {"separable rewards with long features", test_separable},
                         {"linucb is refused", test_refusal},
                         CU_TEST_INFO_NULL};
  return harness_run("glm_samplers", tests);
}

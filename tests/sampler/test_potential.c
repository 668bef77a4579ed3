/* The potential that VITS and Langevin use: derivatives against finite differences of its definition, the
 * bound on its Hessian, and the score of a learned prior against its chain. */
#include "core/arena.h"
#include "sampler/gradient/potential.h"

#include "catch_up_fixture.h"
#include "glm_fixture.h"

/* Computes U of one run straight from the definition: eta (lambda (-log p) + loss), loss = sum (y - phi'
 * theta)^2 / 2 for Gaussian rewards and minus the log likelihood for any other. */
static double definition(const Prior *prior, const Rows *rows, double eta, double lambda, bool gaussian,
                         const double *theta) {
  double log_prior, loss = 0;
  prior->ops->log_density(prior, 1, theta, &log_prior);
  for (int l = 0; l < rows->n; l++) {
    double u = predicted(rows, l, theta);
    loss += gaussian ? 0.5 * (rows->y[l] - u) * (rows->y[l] - u) : -log_reward(rows, rows->y[l], u);
  }
  return eta * (loss - lambda * log_prior);
}

/* Checks gradients and Hessians of two runs, by central differences of U: errors of the order of step^2. */
static void check_derivatives(const Prior *prior, const char *name, double noise) {
  SCRATCH_ARENA(memory);
  enum { D = 3, RUNS = 2 };
  static const char *const sets[] = {"eta=2.5", "lambda=0.6"};
  const double step = 1e-4;
  const Likelihood likelihood = {.ops = likelihood_find(name), .noise = noise};
  const bool gaussian = likelihood_is_conjugate(&likelihood);
  Rows rows[RUNS];
  for (int run = 0; run < RUNS; run++) rows[run] = make_rows(&likelihood, D, 9, 1.2, (uint32_t)run);
  History history = make_history(&memory, RUNS, rows, &likelihood);
  FixtureSampler lmc = make_sampler(&memory, "lmc", prior, &likelihood, 0, RUNS, 1, 2, sets);
  Potential potential;
  CHECK_OK(potential_create(&memory, &lmc.sampler.setup, RUNS, &potential));
  potential_at(&potential, &(HistoryView){&history, 1, 0, RUNS, NULL, NULL});
  double theta[D * RUNS] = {0.3, -0.4, 0.8, 0.1, -0.5, 1.1}, gradient[D * RUNS], hessian[D * D * RUNS];
  double bound[RUNS], scratch[2 * D * D * RUNS], zero[D * RUNS] = {0};
  potential_derivatives(&potential, theta, gradient, hessian);
  for (int run = 0; run < RUNS; run++)
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        if (i == j) continue;
        double u[4];
        for (int corner = 0; corner < 4; corner++) {
          double point[D];
          for (int k = 0; k < D; k++) point[k] = theta[k * RUNS + run];
          point[i] += corner & 1 ? step : -step;
          point[j] += corner & 2 ? step : -step;
          u[corner] = definition(prior, &rows[run], 2.5, 0.6, gaussian, point);
        }
        CHECK_NEAR(hessian[(i * D + j) * RUNS + run], (u[3] - u[1] - u[2] + u[0]) / (4 * step * step), 1e-4);
      }
  for (int run = 0; run < RUNS; run++)
    for (int i = 0; i < D; i++) {
      double point[D], u[3];
      for (int k = 0; k < D; k++) point[k] = theta[k * RUNS + run];
      for (int k = 0; k < 3; k++) {
        point[i] = theta[i * RUNS + run] + (k - 1) * step;
        u[k] = definition(prior, &rows[run], 2.5, 0.6, gaussian, point);
      }
      CHECK_NEAR(gradient[i * RUNS + run], (u[2] - u[0]) / (2 * step), 1e-5);
      CHECK_NEAR(hessian[(i * D + i) * RUNS + run], (u[2] - 2 * u[1] + u[0]) / (step * step), 1e-4);
    }
  /* The value: that of the definition, up to a constant; its differences give the gradient. */
  double log_prior[RUNS], zeroth[RUNS], low[RUNS], high[RUNS], point[D * RUNS];
  prior->ops->log_density(prior, RUNS, zero, log_prior);
  potential_value(&potential, zero, log_prior, zeroth);
  for (int i = 0; i < D; i++) {
    for (int side = -1; side <= 1; side += 2) {
      memcpy(point, theta, sizeof point);
      for (int run = 0; run < RUNS; run++) point[i * RUNS + run] += side * step;
      prior->ops->log_density(prior, RUNS, point, log_prior);
      potential_value(&potential, point, log_prior, side < 0 ? low : high);
    }
    for (int run = 0; run < RUNS; run++) {
      double last[D], origin[D] = {0};
      for (int k = 0; k < D; k++) last[k] = point[k * RUNS + run];
      CHECK_NEAR(high[run] - zeroth[run],
                 definition(prior, &rows[run], 2.5, 0.6, gaussian, last) -
                     definition(prior, &rows[run], 2.5, 0.6, gaussian, origin),
                 1e-10);
      CHECK_NEAR((high[run] - low[run]) / (2 * step), gradient[i * RUNS + run], 1e-5);
    }
  }
  /* At its own point the bound is above every Rayleigh quotient, here those of the axes. */
  potential_ceiling(&potential, likelihood.ops->self_concordance > 0 ? theta : zero, bound, scratch);
  for (int run = 0; run < RUNS; run++)
    for (int i = 0; i < D; i++) CU_ASSERT(bound[run] >= hessian[(i * D + i) * RUNS + run] * (1 - 1e-12));
  free_sampler(&lmc);
}

static void test_derivatives(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  for (int components = 1; components <= 3; components++) {
    Mixture mixture = fixture_mixture(&memory, 3, components, 1);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    check_derivatives(&prior, "gaussian", 0.7);
    check_derivatives(&prior, "logistic", 1);
    check_derivatives(&prior, "poisson", 1);
  }
}

/* Checks that a whitened potential at z is the plain one at theta = A z: its gradient is A' g, its Hessian A'
 * H A, its value the same up to a constant, and starts and draws are those of theta. */
static void check_whitened(const Prior *prior, const char *name) {
  SCRATCH_ARENA(memory);
  enum { D = 3 };
  const Likelihood likelihood = {.ops = likelihood_find(name), .noise = 0.7};
  const double *root = prior->mixture->cholesky;
  Rows rows = make_rows(&likelihood, D, 9, 1.2, 1);
  History history = make_history(&memory, 1, &rows, &likelihood);
  FixtureSampler lmc = make_sampler(&memory, "lmc", prior, &likelihood, 0, 1, 1, 0, NULL);
  const HistoryView view = {&history, 1, 0, 1, NULL, NULL};
  Potential plain, white;
  double z[D] = {0.3, -0.4, 0.8}, gradient[D], hessian[D * D], g[D], h[D * D], value[4], unused = 0;
  CHECK_OK(potential_create(&memory, &lmc.sampler.setup, 1, &plain));
  CHECK_OK(potential_create(&memory, &lmc.sampler.setup, 1, &white));
  CHECK_OK(potential_whiten(&memory, &white));
  potential_at(&plain, &view);
  potential_at(&white, &view);
  for (int k = 0; k < 2; k++, z[0] += 1) {
    double theta[D];
    memcpy(theta, potential_theta(&white, 1, z), sizeof theta);
    for (int i = 0; i < D; i++) {
      double sum = 0;
      for (int j = 0; j < D; j++) sum += root[i * D + j] * z[j];
      CHECK_NEAR(theta[i], sum, 1e-14);
    }
    potential_derivatives(&plain, theta, g, h);
    potential_derivatives(&white, z, gradient, hessian);
    for (int i = 0; i < D; i++) {
      double sum = 0;
      for (int m = 0; m < D; m++) sum += root[m * D + i] * g[m];
      CHECK_NEAR(gradient[i], sum, 1e-11);
      for (int j = 0; j < D; j++) {
        double product = 0;
        for (int m = 0; m < D * D; m++) product += root[m / D * D + i] * h[m] * root[m % D * D + j];
        CHECK_NEAR(hessian[i * D + j], product, 1e-11);
      }
    }
    potential_derivatives(&white, z, g, NULL);
    for (int i = 0; i < D; i++) CHECK_NEAR(g[i], gradient[i], 1e-11);
    potential_value(&plain, theta, &unused, &value[2 * k]);
    potential_value(&white, z, &unused, &value[2 * k + 1]);
    potential_from_theta(&white, 1, theta);
    for (int i = 0; i < D; i++) CHECK_NEAR(theta[i], z[i], 1e-14);
  }
  CHECK_NEAR(value[2] - value[0], value[3] - value[1], 1e-11);
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = 1}, again = rng;
  potential_start(&plain, &rng, g);
  potential_start(&white, &again, gradient);
  for (int i = 0; i < D; i++) CHECK_NEAR(potential_theta(&white, 1, gradient)[i], g[i], 1e-14);
  free_sampler(&lmc);
}

static void test_whitened(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 3, 1, 1);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int i = 0; likelihood_family(i); i++) check_whitened(&prior, likelihood_family(i)->name);
}

/* Checks that a learned score is -eps_1(z) / sqrt(1 - alpha_bar_1) in z = (theta - shift) / scale, and that
 * v' J w with its Jacobian J is its difference along w: networks are linear except for their kinks and
 * compute in single precision, hence the tolerance. 70 lanes are more than the network processes at once. */
static void test_learned_score(void) {
  SCRATCH_ARENA(memory);
  enum { D = 2, LANES = 70, SAMPLES = 400 };
  const double step = 1e-2;
  PriorFit fit = fixture_fit(10, 0.8, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, D, 2, 1.5);
  Samples samples = {.d = D, .n = SAMPLES, .theta = fixture_new(D * SAMPLES, sizeof(double))};
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = SAMPLES, .round = 3000};
  Prior prior;
  mixture_sample(&mixture, &rng, samples.theta);
  CHECK_OK(prior_fit(&memory, prior_find("diffusion"), &fit, &samples, &prior));
  double theta[D * LANES], score[D * LANES], v[D * LANES], w[D * LANES], hessian[D * D * LANES];
  double same_score[D * LANES];
  double up[D * LANES], down[D * LANES], z[D * LANES], eps[D * LANES];
  Rng normals = fixture_rng(3, 7000);
  rng_normal(&normals, D * LANES, theta);
  rng_normal(&normals, D * LANES, v);
  rng_normal(&normals, D * LANES, w);
  const Chain *chain = prior.chain;
  prior.ops->score(&prior, LANES, theta, score, NULL);
  for (int i = 0; i < D * LANES; i++) z[i] = (theta[i] - chain->shift[i / LANES]) / chain->scale[i / LANES];
  chain->noise(chain, 1, LANES, z, eps);
  for (int i = 0; i < D * LANES; i++)
    CHECK_NEAR(score[i], -eps[i] / sqrt(1 - chain->schedule.alpha_bar[1]) / chain->scale[i / LANES], 1e-6);
  prior.ops->score(&prior, LANES, theta, same_score, hessian);
  CU_ASSERT(memcmp(same_score, score, sizeof score) == 0);
  for (int i = 0; i < D * LANES; i++) z[i] = theta[i] + step * w[i], eps[i] = theta[i] - step * w[i];
  prior.ops->score(&prior, LANES, z, up, NULL);
  prior.ops->score(&prior, LANES, eps, down, NULL);
  int agree = 0;
  for (int n = 0; n < LANES; n++) {
    double left = 0, right = 0;
    for (int i = 0; i < D; i++) {
      for (int j = 0; j < D; j++)
        left += v[i * LANES + n] * hessian[(i * D + j) * LANES + n] * w[j * LANES + n];
      right += v[i * LANES + n] * (up[i * LANES + n] - down[i * LANES + n]) / (2 * step);
    }
    agree += fabs(left - right) < 1e-3 * (1 + fabs(right));
  }
  CU_ASSERT(agree > 0.7 * LANES); /* the rest meet a kink within the step */
  free(samples.theta);
}

/* Checks that what is not available is refused in a sentence. */
static void test_refusal(void) {
  SCRATCH_ARENA(memory);
  static const PriorOps bare_ops = {.name = "bare"};
  const Prior bare = {.ops = &bare_ops, .d = 2};
  const Likelihood gaussian = fixture_likelihood(1), logistic = glm("logistic");
  char sentence[256];
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  CU_ASSERT_TRUE(sampler_misfit(sampler_find("vits2"), &bare, &gaussian, sizeof sentence, sentence));
  CU_ASSERT_STRING_EQUAL(sentence, "sampler vits2 needs a prior with a score; prior bare has none");
  CU_ASSERT_FALSE(sampler_misfit(sampler_find("mala"), &prior, &logistic, sizeof sentence, sentence));
  CU_ASSERT_FALSE(sampler_misfit(sampler_find("lints"), &prior, &logistic, sizeof sentence, sentence));
  CU_ASSERT_FALSE(sampler_misfit(sampler_find("lmc"), &prior, &logistic, sizeof sentence, sentence));
}

int main(void) {
  CU_TestInfo tests[] = {{"derivatives and bound", test_derivatives},
                         {"whitened by the prior", test_whitened},
                         {"score of a learned prior", test_learned_score},
                         {"refusals", test_refusal},
                         CU_TEST_INFO_NULL};
  return harness_run("potential", tests);
}

/* Joint moments: for a Gaussian prior with its exact chain a stage is the conditional law of s_{t-1} given
 * s_t and the rewards, computed here by conditioning one dense joint Gaussian of states and rewards on some
 * of them, and the draws are from the exact posterior for any number of stages. */
#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "sampler/diffusion/joint_chain.h"

#include "sampler_fixture.h"

static const SamplerOps *joint(void) { return sampler_find("joint"); }

/* ---- one stage */

enum { D = 3, ROWS = 4, OBSERVED = D + ROWS };

/* Mean and covariance of x and of o, and their cross covariance; x = s_{t-1}, o = (s_t, y), in the chain's
 * coordinates. For t = T + 1, where s_t says nothing, s_t is independent noise. */
typedef struct {
  double mean_x[D], x[D * D], mean_o[OBSERVED], o[OBSERVED * OBSERVED], cross[D * OBSERVED];
} Dense;

/* Fills in the joint law; m, S: prior; phi: rows times scale; bar, before: alpha_bar_t and
 * alpha_bar_{t-1}. */
static Dense dense(const double *m, const double *s, double before, double bar, double phi[ROWS][D],
                   double variance) {
  Dense out;
  memset(&out, 0, sizeof out);
  const double alpha = bar / before;
  for (int i = 0; i < D; i++) {
    out.mean_x[i] = sqrt(before) * m[i], out.mean_o[i] = sqrt(bar) * m[i];
    for (int j = 0; j < D; j++) {
      out.x[i * D + j] = before * s[i * D + j] + (i == j ? 1 - before : 0);
      out.o[i * OBSERVED + j] = bar * s[i * D + j] + (i == j ? 1 - bar : 0);
      out.cross[i * OBSERVED + j] = sqrt(alpha) * out.x[i * D + j];
    }
  }
  for (int l = 0; l < ROWS; l++)
    for (int i = 0; i < D; i++) {
      double image = 0; /* Cov(s_0, y_l) */
      for (int j = 0; j < D; j++) image += s[i * D + j] * phi[l][j];
      out.mean_o[D + l] += phi[l][i] * m[i];
      out.cross[i * OBSERVED + D + l] = sqrt(before) * image;
      out.o[i * OBSERVED + D + l] = out.o[(D + l) * OBSERVED + i] = sqrt(bar) * image;
      for (int k = 0; k < ROWS; k++) out.o[(D + k) * OBSERVED + D + l] += phi[k][i] * image;
    }
  for (int l = 0; l < ROWS; l++) out.o[(D + l) * OBSERVED + D + l] += variance;
  return out;
}

/* Conditions x on the components first .. first + count - 1 of o; returns the log density of those up to a
 * constant. */
static double condition(const Dense *joint_law, int first, int count, const double *o, double *mean,
                        double *covariance) {
  double part[OBSERVED * OBSERVED], inverse[OBSERVED * OBSERVED], error[OBSERVED];
  memcpy(mean, joint_law->mean_x, D * sizeof *mean);
  memcpy(covariance, joint_law->x, D * D * sizeof *covariance);
  if (count == 0) return 0;
  for (int a = 0; a < count; a++) {
    error[a] = o[first + a] - joint_law->mean_o[first + a];
    for (int b = 0; b < count; b++) part[a * count + b] = joint_law->o[(first + a) * OBSERVED + first + b];
  }
  double log_density = -0.5 * fixture_invert(count, part, inverse);
  for (int a = 0; a < count; a++)
    for (int b = 0; b < count; b++) {
      const double weight = inverse[a * count + b];
      log_density -= 0.5 * error[a] * weight * error[b];
      for (int i = 0; i < D; i++) {
        const double gain = joint_law->cross[i * OBSERVED + first + a] * weight;
        mean[i] += gain * error[b];
        for (int j = 0; j < D; j++)
          covariance[i * D + j] -= gain * joint_law->cross[j * OBSERVED + first + b];
      }
    }
  return log_density;
}

/* Computes log N(x; mean, covariance) up to a constant. */
static double log_gaussian(const double *x, const double *mean, const double *covariance) {
  double inverse[D * D], out = -0.5 * fixture_invert(D, covariance, inverse);
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) out -= 0.5 * (x[i] - mean[i]) * inverse[i * D + j] * (x[j] - mean[j]);
  return out;
}

/* Checks a stage: lane 0 has z = 0, which gives the mean; lanes 1 .. D have a unit vector, which gives
 * columns of a root of the covariance; the last lane has normals and another state s_t. C_t is that of stage
 * t + 1 carried over where it is not due: true. */
static bool check_stage(const Prior *prior, const History *history, const FixtureData *data, int t) {
  SCRATCH_ARENA(memory);
  enum { LANES = D + 2 };
  const Chain *chain = prior->chain;
  const int stages = chain->schedule.stages;
  const double *abar = chain->schedule.alpha_bar;
  const bool start = t > stages;
  const HistoryView view = {history, LANES, 0, LANES, chain->shift, chain->scale};
  const SamplerSetup setup = {.prior = prior, .likelihood = history->likelihood, .runs = 1, .draws = LANES};
  JointChain self;
  Rng rng = fixture_rng(5, (uint32_t)t);
  double state[2 * D], noise[D], z[D * LANES] = {0}, ratio[LANES], m[D], s[D * D], phi[ROWS][D];
  int64_t fallbacks = 0;
  rng_normal(&rng, 2 * D, state);
  rng_normal(&rng, D, noise);
  CHECK_OK(joint_chain_create(&memory, &setup, false, LANES + 3, &self));
  joint_chain_begin(&self, &view);
  for (int i = 0; i < D; i++) {
    m[i] = (prior->mixture->mean[i] - chain->shift[i]) / chain->scale[i];
    for (int j = 0; j < D; j++)
      s[i * D + j] = prior->mixture->covariance[i * D + j] / (chain->scale[i] * chain->scale[j]);
    for (int l = 0; l < ROWS; l++) phi[l][i] = data->phi[l][i] * chain->scale[i];
    for (int n = 0; n < LANES; n++) self.s[i * LANES + n] = start ? 0 : state[i + (n == LANES - 1 ? D : 0)];
    z[i * LANES + 1 + i] = 1;
    z[i * LANES + LANES - 1] = noise[i];
  }
  if (t < stages) joint_chain_condition(&self, t + 1, &fallbacks);
  const bool fresh = joint_chain_condition(&self, t, &fallbacks);
  joint_chain_marginal(&self);
  joint_chain_draw(&self, t, z, ratio, &fallbacks);
  CU_ASSERT_EQUAL(fallbacks, 0);

  Dense law = dense(m, s, abar[t - 1], start ? 0 : abar[t], phi, data->noise * data->noise);
  double mean[2][D], covariance[2][D * D], free_mean[D], free_covariance[D * D], log_psi[2], o[OBSERVED];
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < D; i++) o[i] = state[k * D + i];
    for (int l = 0; l < ROWS; l++) {
      o[D + l] = data->y[l];
      for (int i = 0; i < D; i++) o[D + l] -= data->phi[l][i] * chain->shift[i];
    }
    log_psi[k] = condition(&law, 0, OBSERVED, o, mean[k], covariance[k]);
    log_psi[k] -= condition(&law, 0, D, o, free_mean, free_covariance);
  }
  for (int i = 0; i < D; i++) {
    CHECK_NEAR(self.s[i * LANES], mean[0][i], 1e-10);
    for (int j = 0; j < D; j++) {
      double sum = 0;
      for (int e = 1; e <= D; e++)
        sum += (self.s[i * LANES + e] - self.s[i * LANES]) * (self.s[j * LANES + e] - self.s[j * LANES]);
      CHECK_NEAR(sum, covariance[0][i * D + j], 1e-10);
    }
  }
  if (!start) CHECK_NEAR(self.log_marginal[LANES - 1] - self.log_marginal[0], log_psi[1] - log_psi[0], 1e-10);
  double x[D];
  for (int i = 0; i < D; i++) x[i] = self.s[i * LANES + LANES - 1];
  CHECK_NEAR(ratio[LANES - 1],
             log_gaussian(x, free_mean, free_covariance) - log_gaussian(x, mean[1], covariance[1]), 1e-9);
  return !fresh;
}

static void test_stage_is_the_conditional_law(void) {
  SCRATCH_ARENA(memory);
  const int counts[] = {1, 5, 40};
  int carried = 0;
  for (int k = 0; k < 3; k++)
    for (int standardise = 0; standardise < 2; standardise++) {
      PriorFit fit = fixture_fit(counts[k], 0.9, LAST_STAGE_REPAIRED);
      fit.standardise = standardise;
      const Likelihood likelihood = fixture_likelihood(0.6);
      Mixture mixture = fixture_mixture(&memory, D, 1, 1.5);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      History history = fixture_history(&memory, D, 1, 0, ROWS, &likelihood);
      FixtureData data = fixture_data(D, ROWS, likelihood.noise, 0);
      for (int t = 1; t <= counts[k] + 1; t += counts[k] < 6 ? 1 : 8)
        carried += check_stage(&prior, &history, &data, t);
      check_stage(&prior, &history, &data, counts[k] + 1);
    }
  CU_ASSERT(carried > 0);
}

/* ---- the covariance of the clean sample */

/* Computes noise with d eps / d s = [[-1000, 0], [2, 40]] everywhere, which does not come from any
 * covariance. */
static void odd_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  (void)chain, (void)t;
  for (int n = 0; n < lanes; n++) eps[n] = -1000 * s[n], eps[lanes + n] = 2 * s[n] + 40 * s[lanes + n];
}

static void odd_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v, double *out) {
  (void)chain, (void)t, (void)s;
  for (int n = 0; n < lanes; n++)
    out[n] = -1000 * v[n] + 2 * v[lanes + n], out[lanes + n] = 40 * v[lanes + n];
}

/* Checks that eigenvalues outside [1e-9, 50] are clipped to it, and that C from the loss is a scalar. */
static void test_covariance(void) {
  SCRATCH_ARENA(memory);
  enum { LANES = 3, STAGES = 4 };
  const double loss[STAGES + 1] = {0, 0.9, 0.5, 0.2, 0.1};
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(STAGES, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  Chain odd = *prior.chain;
  Prior owner = prior;
  odd.noise = odd_noise, odd.noise_vjp = odd_vjp, odd.noise_jacobian = NULL, odd.loss = loss,
  owner.chain = &odd;
  History history = fixture_history(&memory, 2, 1, 0, 3, &likelihood);
  const HistoryView view = {&history, LANES, 0, LANES, odd.shift, odd.scale};
  const SamplerSetup setup = {.prior = &owner, .likelihood = &likelihood, .runs = 1, .draws = LANES};
  for (int from_loss = 0; from_loss < 2; from_loss++)
    for (int t = 1; t <= STAGES; t++) {
      JointChain self;
      int64_t fallbacks = 0;
      const double abar = odd.schedule.alpha_bar[t], number = sqrt((1 - abar) / abar * loss[t]);
      CHECK_OK(joint_chain_create(&memory, &setup, from_loss, LANES, &self));
      joint_chain_begin(&self, &view);
      joint_chain_condition(&self, t, &fallbacks);
      for (int n = 0; n < LANES; n++) {
        double low = fmin(self.deviation[n], self.deviation[LANES + n]);
        double high = fmax(self.deviation[n], self.deviation[LANES + n]);
        CHECK_NEAR(low, from_loss ? number : sqrt(1e-9), 1e-12);
        CHECK_NEAR(high, from_loss ? number : sqrt(50), 1e-12);
      }
    }
}

static void test_loss_is_refused_for_an_exact_chain(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(4, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  CHECK_OK(prior_standard(&memory, 2, &fit, &prior));
  fixture_refused(
      "joint", &prior, &likelihood, 1, 1, "covariance=loss",
      "covariance: loss needs a prior with a training loss; the chain of prior gaussian is exact");
}

/* ---- the law of the draws */

/* Checks 20 000 draws, which determine a mean to 0.04 of a standard deviation and a variance to 5%. */
static void test_exact_for_a_gaussian_prior(void) {
  const int observations[] = {0, 1, 6};
  fixture_check_gaussian_prior(joint(), 20000, 0, NULL, 3, observations);
}

/* Checks a mixture without observations: the chain is the reverse process with Gaussian stages; at 100 stages
 * its mean and covariance are those of the prior to 2% of a variance (measured: 0.6%), in addition to the 1%
 * error of 20 000 draws. */
static void test_no_history_mixture(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 20000 };
  const Likelihood likelihood = fixture_likelihood(1);
  PriorFit fit = fixture_fit(100, 0.97, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 3, 1.5);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  History history = fixture_history(&memory, 2, 1, 0, 0, &likelihood);
  double *theta = fixture_draw(joint(), &prior, &history, 0, DRAWS, 0, NULL, NULL);
  double mean[2], covariance[4], expected_mean[2], expected[4];
  mixture_moments(&mixture, expected_mean, expected);
  linalg_moments(2, DRAWS, theta, mean, covariance);
  for (int i = 0; i < 2; i++) {
    CHECK_NEAR(mean[i], expected_mean[i], 0.03 * sqrt(expected[3 * i]));
    for (int j = 0; j < 2; j++)
      CHECK_NEAR(covariance[i * 2 + j], expected[i * 2 + j], 0.03 * sqrt(expected[3 * i] * expected[3 * j]));
  }
  free(theta);
}

/* ---- extremes */

/* Checks prior covariances of condition number 1 to 1e6 (turned by 30 degrees, so that standardising does not
 * remove it) and evidence of precision 1e-6 to 1e8: no fallback, and mean and covariance of the exact
 * posterior within 5 standard errors of 2 000 draws. */
static void test_extremes(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 2000 };
  const double c = sqrt(0.75), s = 0.5;
  for (double condition_number = 1; condition_number <= 1e6; condition_number *= 1000)
    for (double precision = 1e-6; precision <= 1e8; precision *= 1e2) {
      Mixture mixture;
      CHECK_OK(mixture_create(&memory, 2, 1, &mixture));
      const double small = 1 / condition_number, turned[4] = {c * c + s * s * small, c * s * (1 - small),
                                                              c * s * (1 - small), s * s + c * c * small};
      memcpy(mixture.covariance, turned, sizeof turned);
      mixture.weight[0] = 1, mixture.mean[0] = 0.5, mixture.mean[1] = -1;
      CHECK_OK(mixture_prepare(&mixture));
      PriorFit fit = fixture_fit(20, 0.85, LAST_STAGE_REPAIRED);
      Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
      const Likelihood likelihood = fixture_likelihood(1 / sqrt(precision));
      FixtureData data = {.d = 2, .n = 2, .noise = likelihood.noise, .phi = {{1, 0.5}, {-0.3, 0.2}}};
      History history;
      CHECK_OK(history_create(&memory, 2, 1, &likelihood, &history));
      for (int l = 0; l < 2; l++) {
        data.y[l] = data.phi[l][0] * 0.7 - data.phi[l][1] * 0.9;
        history_record(&history, NULL, data.phi[l], &data.y[l]);
      }
      int64_t fallbacks;
      double *theta = fixture_draw(joint(), &prior, &history, 0, DRAWS, 0, NULL, &fallbacks);
      FixturePosterior exact = fixture_posterior(&mixture, &data);
      CU_ASSERT_EQUAL(fallbacks, 0);
      fixture_check_moments(2, 1, DRAWS, 0, theta, exact.total_mean, exact.total_covariance, 5);
      free(theta);
    }
}

/* Checks extremes with a learned prior too: states far from its training data give odd Jacobians, but draws
 * stay finite. */
static void test_learned_extremes(void) {
  SCRATCH_ARENA(memory);
  enum { SAMPLES = 400, DRAWS = 40 };
  const char *sets[] = {"covariance=jacobian", "covariance=loss"};
  double samples_theta[2 * SAMPLES];
  PriorFit fit = fixture_fit(20, 0.85, LAST_STAGE_REPAIRED);
  Mixture mixture = fixture_mixture(&memory, 2, 2, 1.5);
  Samples samples = {.d = 2, .n = SAMPLES, .theta = samples_theta};
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = SAMPLES, .round = 3000};
  Prior prior;
  mixture_sample(&mixture, &rng, samples_theta);
  CHECK_OK(prior_fit(&memory, prior_find("diffusion"), &fit, &samples, &prior));
  for (double noise = 1e3; noise > 1e-5; noise *= 1e-2)
    for (int k = 0; k < 2; k++) {
      const Likelihood likelihood = fixture_likelihood(noise);
      History history = fixture_history(&memory, 2, 1, 0, 6, &likelihood);
      double *theta = fixture_draw(joint(), &prior, &history, 0, DRAWS, 1, &sets[k], NULL);
      for (int i = 0; i < 2 * DRAWS; i++) CU_ASSERT(isfinite(theta[i]));
      free(theta);
    }
}

int main(void) {
  CU_TestInfo tests[] = {
      {"a stage is the conditional law, Gaussian prior", test_stage_is_the_conditional_law},
      {"covariance of the clean sample", test_covariance},
      {"loss is refused for an exact chain", test_loss_is_refused_for_an_exact_chain},
      {"Gaussian prior: exact at any number of stages", test_exact_for_a_gaussian_prior},
      {"no history, mixture", test_no_history_mixture},
      {"extremes", test_extremes},
      {"learned prior, extremes", test_learned_extremes},
      CU_TEST_INFO_NULL};
  return harness_run("joint", tests);
}

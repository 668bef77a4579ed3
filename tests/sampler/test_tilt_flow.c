/* The flow of a quadratic tilt: against its differential equation, and against what Theorem 1 says of it, in
 * closed form, to 1e-12. */
#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "sampler/tilted/tilt_reverse.h"
#include "sampler_fixture.h"

/* ---- the differential equation */

/* Integrates dQ/dt = 2 (1 + Q) Q, db/dt = (1 + 2 Q) b by the classical Runge-Kutta method. A step has a
 * relative error of (h Q)^5, and h Q stays below 1e-3 here: 1e-14 in all. */
static void integrate(long double time, int steps, long double *q, long double *b) {
  const long double h = time / steps;
  for (int k = 0; k < steps; k++) {
    long double dq[4], db[4];
    const long double share[4] = {0, 0.5L, 0.5L, 1};
    for (int i = 0; i < 4; i++) {
      long double x = *q + (i ? share[i] * h * dq[i - 1] : 0), y = *b + (i ? share[i] * h * db[i - 1] : 0);
      dq[i] = 2 * (1 + x) * x, db[i] = (1 + 2 * x) * y;
    }
    *q += h / 6 * (dq[0] + 2 * dq[1] + 2 * dq[2] + dq[3]);
    *b += h / 6 * (db[0] + 2 * db[1] + 2 * db[2] + db[3]);
  }
}

static void test_equation(void) {
  const double eigenvalues[] = {0, 1e-8, 0.01, 0.3, 1, 7, 1e4};
  for (int k = 0; k < 7; k++) {
    double end = 0.5 * log1p(1 / (eigenvalues[k] + 0.05));
    for (double part = 0.2; part < 1; part += 0.25) {
      double time = part * end, q[2] = {eigenvalues[k], -1}, b[2] = {-1.7, 5};
      long double by_steps[2] = {q[0], b[0]};
      integrate(time, 20000, &by_steps[0], &by_steps[1]);
      tilt_flow(1, 2, expm1(2 * time), q, b);
      CHECK_NEAR(q[0], (double)by_steps[0], 1e-12 * q[0]);
      CHECK_NEAR(b[0], (double)by_steps[1], 1e-12 * fabs(b[0]));
      CHECK_NEAR(q[1], -1, 0);
      CHECK_NEAR(b[1], 5, 0);
      if (eigenvalues[k] == 0) CHECK_NEAR(q[0], 0, 0);
    }
  }
}

/* Checks powers of two, for which 1 - c q is exact: next to the end, and with an end next to 0. */
static void test_next_to_the_end(void) {
  for (int power = -20; power <= 60; power += 8)
    for (int left = -1; left >= -40; left -= 3) {
      const double q = ldexp(1, power), c = ldexp(1 - ldexp(1, left), -power);
      double at[3] = {q, q / 4, 0}, b[3] = {3, -3, 0};
      tilt_flow(3, 1, c, at, b);
      CHECK_NEAR(ldexp(at[0], left) / (q + q * c), 1, 1e-15);
      CHECK_NEAR(ldexp(b[0], left), 3 * sqrt(1 + c), 1e-15 * sqrt(1 + c) * 3);
      CHECK_NEAR(at[1] / (q * (1 + c) / (4 - c * q)), 1, 1e-15);
      CHECK_NEAR(b[1] / (-12 * sqrt(1 + c) / (4 - c * q)), 1, 1e-15);
      CU_ASSERT(at[2] == 0 && b[2] == 0);
    }
}

/* ---- Theorem 1: with X_t ~ nu_t the prior's reverse kernel gives the posterior */

enum { D = 3, DD = D * D };

/* Computes out = a b, or a b' . */
static void product(const double *a, const double *b, bool transposed, double *out) {
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) {
      out[i * D + j] = 0;
      for (int k = 0; k < D; k++) out[i * D + j] += a[i * D + k] * (transposed ? b[j * D + k] : b[k * D + j]);
    }
}

/* Computes out += factor a v. */
static void apply(double factor, const double *a, const double *v, double *out) {
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) out[i] += factor * a[i * D + j] * v[j];
}

/* Computes the evidence of the history at c: matrix and vector of the tilt there, by the flow of each
 * eigenvalue. */
static void flow(const History *history, double share, double *c, double *matrix, double *vector) {
  double precision[DD], evidence[D], basis[DD], q[D], b[D] = {0}, scaled[DD];
  history_evidence(&(HistoryView){history, 1, 0, 1, NULL, NULL}, precision, evidence);
  CHECK_OK(linalg_eigen(D, precision, basis, q));
  for (int k = 0; k < D; k++) {
    q[k] = fmax(q[k], 0);
    for (int i = 0; i < D; i++) b[k] += basis[i * D + k] * evidence[i];
  }
  *c = q[D - 1] > 0 ? share / q[D - 1] : 20 * share;
  tilt_flow(D, 1, *c, q, b);
  for (int i = 0; i < DD; i++) scaled[i] = basis[i] * q[i % D];
  product(scaled, basis, true, matrix);
  memset(vector, 0, D * sizeof *vector);
  apply(1, basis, b, vector);
}

/* Computes, for component N(mu, sigma) of the prior, its part of nu_t, N(m, P^-1), and that after the reverse
 * kernel, mean[D] and covariance[D, D]. Returns the log weight in nu_t. */
static double carry_back(const double *mu, const double *sigma, double c, const double *matrix,
                         const double *vector, double *mean, double *covariance) {
  const double signal = 1 / (1 + c), root = sqrt(signal);
  double noised[DD], inverse[DD], precision[DD], spread[DD], gain[DD], part[DD], part_2[DD], start[D],
      v[D] = {0}, m[D] = {0};
  for (int i = 0; i < DD; i++) noised[i] = signal * sigma[i] + (i % (D + 1) == 0 ? 1 - signal : 0);
  for (int i = 0; i < D; i++) start[i] = root * mu[i];
  double log_weight = -0.5 * fixture_invert(D, noised, inverse);
  for (int i = 0; i < DD; i++) precision[i] = inverse[i] + matrix[i];
  log_weight -= 0.5 * fixture_invert(D, precision, spread);
  apply(1, inverse, start, v);
  for (int i = 0; i < D; i++) log_weight -= 0.5 * v[i] * start[i], v[i] += vector[i];
  apply(1, spread, v, m);
  for (int i = 0; i < D; i++) log_weight += 0.5 * v[i] * m[i], m[i] -= start[i], mean[i] = mu[i];
  product(sigma, inverse, false, gain);
  apply(root, gain, m, mean);
  product(gain, sigma, true, part);
  product(gain, spread, false, part_2);
  product(part_2, gain, true, covariance);
  for (int i = 0; i < DD; i++) covariance[i] = sigma[i] + signal * (covariance[i] - part[i]);
  return log_weight;
}

/* Checks Theorem 1. Fewer observations than dimensions, or none, leave Q singular. With the sign of b that
 * the poster prints the law is a different one. */
static void test_theorem_1(void) {
  SCRATCH_ARENA(memory);
  enum { COMPONENTS = 3 };
  const double noise = 1.5;
  const Likelihood likelihood = fixture_likelihood(noise);
  Mixture mixture = fixture_mixture(&memory, D, COMPONENTS, 1.5);
  for (int n = 0; n <= 6; n++)
    for (double share = 0.1; share < 1; share += 0.222) {
      History history = fixture_history(&memory, D, 1, 0, n, &likelihood);
      FixtureData data = fixture_data(D, n, noise, 0);
      FixturePosterior exact = fixture_posterior(&mixture, &data);
      double c, matrix[DD], vector[D], mean[D], covariance[DD], weight[COMPONENTS], sum = 0, off = 0;
      flow(&history, share, &c, matrix, vector);
      for (int k = 0; k < COMPONENTS; k++) {
        const double *mu = mixture.mean + k * D, *sigma = mixture.covariance + k * DD;
        weight[k] = mixture.weight[k] * exp(carry_back(mu, sigma, c, matrix, vector, mean, covariance));
        sum += weight[k];
        for (int i = 0; i < D; i++) CHECK_NEAR(mean[i], exact.mean[k][i], 1e-12);
        for (int i = 0; i < DD; i++) CHECK_NEAR(covariance[i], exact.covariance[k][i], 1e-12);
      }
      for (int k = 0; k < COMPONENTS; k++) CHECK_NEAR(weight[k] / sum, exact.weight[k], 1e-12);
      for (int i = 0; i < D; i++) vector[i] = -vector[i];
      carry_back(mixture.mean, mixture.covariance, c, matrix, vector, mean, covariance);
      for (int i = 0; i < D; i++) off += fabs(mean[i] - exact.mean[0][i]);
      CU_ASSERT(n == 0 || off > 0.1);
    }
}

/* ---- all eigenvalues of Q the same: X_T* = e^-T* A'y, and the posterior is the law of the clean sample
 * given that */

static void test_kappa_one(void) {
  SCRATCH_ARENA(memory);
  enum { K = 2 };
  const double turn[2][2] = {{cos(0.3), sin(0.3)}, {-sin(0.3), cos(0.3)}};
  for (double noise = 0.1; noise < 4; noise *= 2.3) {
    const double back = 1 / sqrt(1 + noise * noise); /* e^-T* */
    FixtureData data = {.d = K, .n = K, .noise = noise, .y = {0.8, -0.4}};
    PriorFit fit = fixture_fit(1, back * back, LAST_STAGE_REPAIRED);
    Mixture mixture = fixture_mixture(&memory, K, 3, 1);
    fit.standardise = false;
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    memcpy(data.phi[0], turn[0], sizeof turn[0]);
    memcpy(data.phi[1], turn[1], sizeof turn[1]);
    FixturePosterior exact = fixture_posterior(&mixture, &data);
    double s[K], eps[K], jacobian[K * K], scratch[K];
    for (int i = 0; i < K; i++) s[i] = back * (turn[0][i] * data.y[0] + turn[1][i] * data.y[1]);
    denoiser_chain_noise_jacobian(prior.chain, 1, 1, s, eps, jacobian, scratch);
    for (int i = 0; i < K; i++) {
      double q = 1 / (noise * noise), b = s[i] / back * q;
      CHECK_NEAR((s[i] - noise * back * eps[i]) / back, exact.total_mean[i], 1e-12);
      for (int j = 0; j < K; j++)
        CHECK_NEAR(noise * noise * ((i == j) - noise * back * jacobian[i * K + j]),
                   exact.total_covariance[i * K + j], 1e-12);
      /* the tilt contracts to it: its centre b_t / q_t comes within its variance 1 / q_t */
      tilt_flow(1, 1, (1 - 1e-13) / q, &q, &b);
      CHECK_NEAR(b / q, s[i], 1e-12);
      CHECK_NEAR(1 / q, 0, 1e-12);
    }
  }
}

/* ---- the stages */

/* Checks the last stage before T*, which is 1/2 log(1 + 1/largest). */
static void test_stage(void) {
  SCRATCH_ARENA(memory);
  Schedule schedule;
  CHECK_OK(schedule_create(&memory, &(ScheduleRule){.stages = 100, .alpha = 0.97}, &schedule));
  for (double largest = 1e-3; largest < 1e4; largest *= 1.37) {
    int t = tilt_flow_stage(&schedule, largest, 1e-9);
    double end = 0.5 * log1p(1 / largest), step = -0.5 * log(0.97);
    CU_ASSERT_EQUAL(t, fmin(100, floor(end / step)));
    int early = tilt_flow_stage(&schedule, largest, 0.5);
    CU_ASSERT(early <= t && (1 / schedule.alpha_bar[early] - 1) * largest <= 0.5);
    CU_ASSERT(early == 100 || (1 / schedule.alpha_bar[early + 1] - 1) * largest > 0.5);
  }
  CU_ASSERT_EQUAL(tilt_flow_stage(&schedule, 0, 1e-3), 100);
}

int main(void) {
  CU_TestInfo tests[] = {{"the flow solves its equation", test_equation},
                         {"next to the end of the flow", test_next_to_the_end},
                         {"Theorem 1 for mixtures", test_theorem_1},
                         {"evidence that is the same in all directions", test_kappa_one},
                         {"the stage that the flow reaches", test_stage},
                         CU_TEST_INFO_NULL};
  return harness_run("tilt_flow", tests);
}

/* The end of the flow: Hessians against differences of the densities; Theorem 2 with its consequences for
 * mixtures and for Ising models, in closed form. */
#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "model/mixture/mixture_density.h"
#include "sampler/tilted/tilt_end.h"
#include "sampler_fixture.h"

static TiltEnd make(Arena *memory, int d, const double *precision, const double *vector) {
  TiltEnd end;
  CHECK_OK(tilt_end_create(memory, d, &end));
  CHECK_OK(tilt_end_set(&end, precision, vector));
  return end;
}

/* Returns a chain of one stage that ends at T*. */
static PriorFit fit_of(const TiltEnd *end) {
  PriorFit fit = fixture_fit(1, tilt_end_alpha(end), LAST_STAGE_REPAIRED);
  fit.standardise = false;
  return fit;
}

/* Fills in Q with its weakest direction along the angle, where a second direction has kappa^2 times as
 * much. */
static void plane(double smallest, double kappa, double angle, double *precision) {
  const double u[2] = {cos(angle), sin(angle)}, v[2] = {-u[1], u[0]};
  for (int i = 0; i < 4; i++)
    precision[i] = smallest * (u[i / 2] * u[i % 2] + kappa * kappa * v[i / 2] * v[i % 2]);
}

/* ---- mixtures */

/* Makes two points at the distance R, blurred by N(0, delta). */
static Mixture two_points(Arena *memory, double distance, double delta, double angle, double weight) {
  Mixture mixture;
  CHECK_OK(mixture_create(memory, 2, 2, &mixture));
  for (int c = 0; c < 2; c++) {
    mixture.weight[c] = c ? 1 - weight : weight;
    mixture.mean[2 * c] = (c - 0.5) * distance * cos(angle);
    mixture.mean[2 * c + 1] = (c - 0.5) * distance * sin(angle);
    mixture.covariance[4 * c] = mixture.covariance[4 * c + 3] = delta;
  }
  CHECK_OK(mixture_prepare(&mixture));
  return mixture;
}

/* Returns the least curvature on the line through both points, which contains the worst x whatever the
 * weights are. */
static double least_on_line(Arena *memory, TiltEnd *end, const Mixture *mixture, double angle) {
  PriorFit fit = fit_of(end);
  Prior prior = fixture_exact_prior(memory, mixture, &fit);
  double least = INFINITY, value, centre = 0;
  for (double width = 8; width > 1e-6; width /= 16) {
    double best = centre;
    for (double t = centre - width; t <= centre + width; t += width / 64) {
      const double x[2] = {t * cos(angle), t * sin(angle)};
      CHECK_OK(tilt_end_curvature(end, prior.chain, 1, x, &value));
      if (value < least) least = value, best = t;
    }
    centre = best;
  }
  return least;
}

/* Returns R of the bound on mixtures as the poster prints it. */
static double printed_radius(double delta, double kappa, double snr_2) {
  return sqrt((1 + delta * snr_2) * (delta * kappa * kappa + 1 / snr_2) / (kappa * kappa - 1));
}

/* Checks that the Hessian of the program changes sign at twice the R of the poster: |Cov| <= R^2 / 4 on a set
 * of that diameter, where its proof has R^2. */
static void test_radius(void) {
  SCRATCH_ARENA(memory);
  const double angle = 0.4, cases[][3] = {{0.1, 2, 0.01}, {0.1, 10, 0.1}, {0.5, 1.2, 3}, {0.01, 50, 0.001}};
  for (int k = 0; k < 4; k++)
    for (double weight = 0.5; weight > 0.1; weight -= 0.3) {
      const double *at = cases[k], none[2] = {0};
      double precision[4];
      plane(at[2], at[1], angle, precision);
      TiltEnd end = make(&memory, 2, precision, none);
      const double bound = printed_radius(at[0], at[1], at[2]);
      double low = bound, high = 3 * bound;
      while (high - low > 1e-6 * bound) {
        const double middle = (low + high) / 2;
        Mixture mixture = two_points(&memory, middle, at[0], angle, weight);
        *(least_on_line(&memory, &end, &mixture, angle) > 0 ? &low : &high) = middle;
      }
      CHECK_NEAR(low / bound, 2, 1e-4);
    }
}

/* Checks the two bounds of the program: the poster's is 0 at its R, and the one with 1/4 at twice it, where
 * the Hessian reaches it. */
static void test_bounds(void) {
  SCRATCH_ARENA(memory);
  const double angle = 0.4, none[2] = {0}, delta = 0.1, kappa = 3;
  for (double snr_2 = 0.01; snr_2 < 5; snr_2 *= 4)
    for (int share = 1; share <= 4; share += 3) {
      double precision[4];
      plane(snr_2, kappa, angle, precision);
      TiltEnd end = make(&memory, 2, precision, none);
      Mixture mixture =
          two_points(&memory, sqrt(share) * printed_radius(delta, kappa, snr_2), delta, angle, 0.5);
      const double bound = tilt_end_bound(&end, tilt_end_susceptibility(&end, &mixture, 1.0 / share));
      CHECK_NEAR(bound, 0, 1e-10 * (1 + end.largest) * end.largest);
      CHECK_NEAR(tilt_end_bound(&end, tilt_end_susceptibility(&end, &mixture, 0.25)),
                 least_on_line(&memory, &end, &mixture, angle), 1e-9 * (1 + end.largest));
    }
}

/* Computes log nu_T* along two directions at right angles to the last eigenvector, up to a constant. */
static double log_law(const TiltEnd *end, const Mixture *noised, const double *x, const double *u, double a,
                      const double *v, double b) {
  const int d = end->d;
  double place[3] = {0}, out;
  for (int i = 0; i < d; i++) place[i] = x[i] + a * u[i] + b * v[i];
  mixture_log_density(noised, 1, place, &out);
  for (int k = 0; k < d - 1; k++) {
    double along = 0;
    for (int i = 0; i < d; i++) along += end->basis[i * d + k] * place[i];
    out -= 0.5 * (1 + end->largest) * end->q[k] / (end->largest - end->q[k]) * along * along;
  }
  return out;
}

/* Checks the smaller eigenvalue of the 2 x 2 Hessian of second differences, whose error is about 1e-6. */
static void test_curvature(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, POINTS = 10 };
  const double noise = 1.1, h = 1e-4;
  const Likelihood likelihood = fixture_likelihood(noise);
  Mixture mixture = fixture_mixture(&memory, D, 3, 1.5);
  for (int n = 1; n <= 5; n++) {
    History history = fixture_history(&memory, D, 1, 0, n, &likelihood);
    double precision[D * D], vector[D], x[D * POINTS], value[POINTS];
    history_evidence(&(HistoryView){&history, 1, 0, 1, NULL, NULL}, precision, vector);
    TiltEnd end = make(&memory, D, precision, vector);
    CU_ASSERT_EQUAL(end.free, D - 1);
    PriorFit fit = fit_of(&end);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    Mixture noised;
    const double signal = end.largest / (1 + end.largest);
    CHECK_OK(mixture_copy(&memory, &mixture, &noised));
    for (int k = 0; k < 3 * D; k++) noised.mean[k] *= sqrt(signal);
    for (int k = 0; k < 3 * D * D; k++)
      noised.covariance[k] = signal * noised.covariance[k] + (k % (D * D) % (D + 1) == 0 ? 1 - signal : 0);
    CHECK_OK(mixture_prepare(&noised));
    Rng rng = fixture_rng(3, 70);
    rng_normal(&rng, D * POINTS, x);
    CHECK_OK(tilt_end_curvature(&end, prior.chain, POINTS, x, value));
    for (int p = 0; p < POINTS; p++) {
      double at[D], u[D], v[D];
      for (int i = 0; i < D; i++)
        at[i] = x[i * POINTS + p], u[i] = end.basis[i * D], v[i] = end.basis[i * D + 1];
#define LAW(a, b) log_law(&end, &noised, at, u, a, v, b)
      const double uu = -(LAW(h, 0) - 2 * LAW(0, 0) + LAW(-h, 0)) / (h * h),
                   vv = -(LAW(0, h) - 2 * LAW(0, 0) + LAW(0, -h)) / (h * h),
                   uv = -(LAW(h, h) - LAW(h, -h) - LAW(-h, h) + LAW(-h, -h)) / (4 * h * h);
#undef LAW
      const double smaller = (uu + vv - sqrt((uu - vv) * (uu - vv) + 4 * uv * uv)) / 2;
      CHECK_NEAR(value[p], smaller, 1e-5 * (1 + fabs(uu) + fabs(vv)));
    }
  }
}

/* Checks draws for the prior N(0, I), whose nu_T* is known along each eigenvector: N(b_T / (1 + q_T), 1 / (1
 * + q_T)), and e^-T* b / l along the last. 5 standard errors. */
static void test_draws(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, N = 20000 };
  const double precision[D * D] = {0.5, 0, 0, 0, 2, 0, 0, 0, 3}, vector[D] = {1, -2, 0.7}, l = 3;
  const double root = sqrt(l / (1 + l));
  double *theta = fixture_new(D * N, sizeof *theta), *x = fixture_new(D * N, sizeof *x);
  TiltEnd end = make(&memory, D, precision, vector);
  Rng rng = fixture_rng(5, 74), more = fixture_rng(6, 74);
  rng_normal(&rng, D * N, theta);
  for (int k = 0; k < D * N; k++) {
    const double spread = 1 / (1 + precision[k / N * (D + 1)]);
    theta[k] = spread * vector[k / N] + sqrt(spread) * theta[k];
  }
  for (int n = 0; n < N; n++) tilt_end_draw(&end, N, theta + n, &more, N, x + n);
  for (int i = 0; i < D; i++) {
    const double q = precision[i * (D + 1)], left = 1 - q / l, spread = left / (left + (1 + 1 / l) * q);
    const double mean = i == D - 1 ? root * vector[i] / l : spread * vector[i] / (root * left);
    double sum = 0, square = 0;
    for (int n = 0; n < N; n++) sum += x[i * N + n], square += pow(x[i * N + n] - mean, 2);
    CHECK_NEAR(sum / N, mean, 5 * sqrt(spread / N) + 1e-12);
    CHECK_NEAR(square / N, spread, 5 * spread * sqrt(2.0 / N) + 1e-12);
  }
  free(theta);
  free(x);
}

/* Checks the least curvature with draws of the posterior all along a line of two modes: a segment between the
 * modes meets the saddle when there are draws in both, and none when all are in one. kappa 1: nu_T* is one
 * point. */
static void test_least(void) {
  SCRATCH_ARENA(memory);
  enum { N = 40 };
  const double angle = 0.4;
  double precision[4], theta[2 * N], both, one, value;
  plane(0.5, 4, angle, precision);
  const double vector[2] = {precision[0] * 0.1, precision[3] * -0.2};
  TiltEnd end = make(&memory, 2, precision, vector);
  Mixture mixture = two_points(&memory, 6, 0.1, angle, 0.5);
  PriorFit fit = fit_of(&end);
  Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
  for (int n = 0; n < N; n++)
    for (int i = 0; i < 2; i++) theta[i * N + n] = mixture.mean[2 * (n % 2) + i];
  CHECK_OK(tilt_end_least(&end, prior.chain, N, N, theta, fixture_rng(0, 71), &both));
  for (int n = 0; n < 2 * N; n++) theta[n] = mixture.mean[n / N];
  CHECK_OK(tilt_end_least(&end, prior.chain, N, N, theta, fixture_rng(0, 71), &one));
  CU_ASSERT(both < 0 && one > 0);
  CU_ASSERT(both >= tilt_end_bound(&end, tilt_end_susceptibility(&end, &mixture, 0.25)));
  plane(2, 1, angle, precision);
  end = make(&memory, 2, precision, vector);
  CU_ASSERT_EQUAL(end.free, 0);
  CHECK_OK(tilt_end_curvature(&end, prior.chain, 1, theta, &value));
  CU_ASSERT(isinf(value) && isinf(tilt_end_bound(&end, 1)));
}

static void test_unlike_covariances(void) {
  SCRATCH_ARENA(memory);
  Mixture mixture = fixture_mixture(&memory, 2, 2, 1);
  double precision[4], none[2] = {0};
  plane(0.5, 4, 0, precision);
  TiltEnd end = make(&memory, 2, precision, none);
  CU_ASSERT(isnan(tilt_end_susceptibility(&end, &mixture, 1)));
}

/* ---- Ising models: chi = 1, and the worst x is 0 */

/* Draws Q with any eigenvectors and with eigenvalues between m and l, including m and l. */
static void random_precision(int d, double smallest, double largest, uint32_t run, double *precision) {
  double root[FIXTURE_DIMENSION * FIXTURE_DIMENSION], square[FIXTURE_DIMENSION * FIXTURE_DIMENSION],
      basis[FIXTURE_DIMENSION * FIXTURE_DIMENSION], w[FIXTURE_DIMENSION];
  Rng rng = fixture_rng(run, 72);
  rng_normal(&rng, d * d, root);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      square[i * d + j] = 0;
      for (int k = 0; k < d; k++) square[i * d + j] += root[i * d + k] * root[j * d + k];
    }
  CHECK_OK(linalg_eigen(d, square, basis, w));
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      precision[i * d + j] = 0;
      for (int k = 0; k < d; k++)
        precision[i * d + j] +=
            basis[i * d + k] * basis[j * d + k] * (smallest + (largest - smallest) * k / (d - 1));
    }
}

static void test_ising(void) {
  SCRATCH_ARENA(memory);
  enum { D = 5, FEW = 6 };
  const double none[D] = {0}, centre[D] = {0};
  uint32_t run = 0;
  for (double smallest = 0; smallest < 2; smallest += 0.7)
    for (double spread = 0.05; spread < 4; spread += 0.2) {
      const double l = smallest + spread;
      double precision[D * D], x[D * FEW], value, others[FEW];
      random_precision(D, smallest, l, run, precision);
      TiltEnd end = make(&memory, D, precision, none);
      PriorFit fit = fit_of(&end);
      Prior prior;
      CHECK_OK(prior_ising(&memory, D, &fit, &prior));
      CHECK_OK(tilt_end_curvature(&end, prior.chain, 1, centre, &value));
      const double expected = (1 + l) * (1 - l) + (1 + l) * smallest / spread;
      CHECK_NEAR(value, expected, 1e-9 * (1 + l) * (1 + l / spread));
      CHECK_NEAR(tilt_end_bound(&end, 1), expected, 1e-9 * (1 + l) * (1 + l / spread));
      CU_ASSERT((value > 0) == (spread < 1));
      Rng rng = fixture_rng(run++, 73);
      rng_normal(&rng, D * FEW, x);
      CHECK_OK(tilt_end_curvature(&end, prior.chain, FEW, x, others));
      for (int k = 0; k < FEW; k++) CU_ASSERT(others[k] > value);
    }
}

int main(void) {
  CU_TestInfo tests[] = {{"Hessian against second differences", test_curvature},
                         {"the radius of Theorem 2 is half the true one", test_radius},
                         {"bounds for mixtures", test_bounds},
                         {"draws at the end", test_draws},
                         {"the least between draws", test_least},
                         {"no bound for covariances that differ", test_unlike_covariances},
                         {"Ising models: the sign changes at spread 1", test_ising},
                         CU_TEST_INFO_NULL};
  return harness_run("tilt_end", tests);
}

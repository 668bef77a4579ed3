/* VITS-I, II and Hessian-free, and linear Thompson sampling, which they approximate: against closed forms in
 * the linear model, plain versions of Algorithms 2 and 3 written out here, and quadrature. */
#include "core/arena.h"
#include "core/linalg/linalg_lanes.h"
#include "sampler/gradient/vits_step.h"

#include "catch_up_fixture.h"
#include "glm_fixture.h"

static Prior standard_prior(Arena *memory, int d) {
  PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
  Prior prior;
  ASSERT(prior_standard(memory, d, &fit, &prior) == STATUS_OK);
  return prior;
}

/* ---- lints */

/* Checks draw by draw: V^-1 b + L^-T z with eta (lambda I + X'X) = L L', z the normals of the stream. */
static void test_lints_is_the_closed_form(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 3, DRAWS = 5 };
  static const char *const sets[] = {"eta=10", "lambda=0.5"};
  for (int d = 1; d <= 20; d += 19) {
    const Likelihood likelihood = fixture_likelihood(0.3);
    Prior prior = standard_prior(&memory, d);
    Rounds rounds = make_rounds(d, 0, RUNS, 15, false, &likelihood);
    History history = empty_history(&memory, &rounds, &likelihood);
    for (int l = 0; l < rounds.n; l++) append_round(&history, &rounds, l);
    FixtureSampler lints = make_sampler(&memory, "lints", &prior, &likelihood, 0, RUNS, DRAWS, 2, sets);
    double *theta = draw_from(&lints, &history, DRAWS);
    double precision[400], covariance[400], mean[20], z[20];
    for (int run = 0; run < RUNS; run++) {
      linear_target(&history, run, 10, 0.5, precision, covariance, mean);
      ASSERT(linalg_cholesky(d, precision) == STATUS_OK);
      for (int m = 0; m < DRAWS; m++) {
        Rng rng = {
            .key = rng_key(FIXTURE_SEED, RNG_TEST), .run = (uint32_t)run, .round = 77, .draw = (uint32_t)m};
        rng_normal(&rng, d, z);
        for (int i = d - 1; i >= 0; i--) {
          for (int j = i + 1; j < d; j++) z[i] -= precision[j * d + i] * z[j];
          z[i] /= precision[i * d + i];
          CHECK_NEAR(theta[i * RUNS * DRAWS + run * DRAWS + m], mean[i] + z[i], 1e-10);
        }
      }
    }
    free(theta);
    free_sampler(&lints);
    free_rounds(&rounds);
  }
}

/* ---- convergence in the linear model */

/* Returns the mean over runs and coordinates of the squared distance of means[d, runs] from the mean of all,
 * in standard deviations of the target with this precision[d, d]. */
static double scatter(int d, int runs, const double *means, const double *precision) {
  double sum = 0, centre[20] = {0};
  for (int i = 0; i < d * runs; i++) centre[i / runs] += means[i] / runs;
  for (int n = 0; n < runs; n++)
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++)
        sum += (means[i * runs + n] - centre[i]) * precision[i * d + j] * (means[j * runs + n] - centre[j]);
  return sum / (d * runs);
}

/* Checks convergence. All runs have the same data, so the mean of their means (and over rounds) is free of
 * the noise that a fixed step leaves in each; the covariances of VITS-I and II do not depend on the draws. KL
 * < 1e-3. Under `lambda_max` the control variate leaves no noise once q has arrived: 1e-3 of the target's
 * variance, where plain gradients at draws leave about a / (2 - a) in its stiffest direction, 0.008 to 0.017
 * here. */
static void check_convergence(const char *name, int d, bool by_curvature, const char *eta) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 16, SNAPSHOTS = 25 };
  const Likelihood likelihood = fixture_likelihood(0.7);
  const double variance = 0.49, inverse_temperature = strcmp(eta, "eta=auto") == 0 ? 1 / variance : 4;
  /* With eta = auto the prior's share is 1, so lambda in the formula eta (lambda I + ..) is 1 / eta. */
  const double lambda = strcmp(eta, "eta=auto") == 0 ? variance : 1;
  const char *sets[] = {eta, by_curvature ? "step_rule=lambda_max" : "step_rule=eta_t",
                        by_curvature ? "step_size=0.05" : "step_size=0.3", "steps=100"};
  Prior prior = standard_prior(&memory, d);
  Rounds rounds = make_rounds(d, 0, RUNS, 2 * d, true, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  for (int l = 0; l < rounds.n; l++) append_round(&history, &rounds, l);
  FixtureSampler vits = make_sampler(&memory, name, &prior, &likelihood, 0, RUNS, 1, 4, sets);
  double precision[400], covariance[400], target[20], mean[20] = {0}, spread[400] = {0};
  double *means = fixture_new((size_t)(d * RUNS), sizeof *means);
  double *covariances = fixture_new((size_t)(d * d * RUNS), sizeof *covariances);
  const int settle = by_curvature ? 15 : 25;
  double *lambdas = fixture_new((size_t)(d * d * RUNS), sizeof *lambdas);
  double *vectors = fixture_new((size_t)(d * RUNS), sizeof *vectors);
  history_evidence(&(HistoryView){&history, 1, 0, RUNS, NULL, NULL}, lambdas, vectors);
  for (int k = 0; k < settle + SNAPSHOTS; k++) {
    history_set_evidence(&history, history.rounds + 1, 1, lambdas, vectors); /* the same evidence again */
    sampler_observe(&vits.sampler, &history, vits.fallbacks);
    if (k < settle) continue;
    vits.sampler.ops->gaussian(&vits.sampler, means, covariances);
    for (int i = 0; i < d * RUNS; i++) mean[i / RUNS] += means[i] / (RUNS * SNAPSHOTS);
    for (int i = 0; i < d * d * RUNS; i++) spread[i / RUNS] += covariances[i] / (RUNS * SNAPSHOTS);
  }
  linear_target(&history, 0, inverse_temperature, lambda, precision, covariance, target);
  double kl = gaussian_kl(d, mean, spread, target, precision);
  CHECK_NEAR(kl, 0, 1e-3);
  if (by_curvature) CHECK_NEAR(scatter(d, RUNS, means, precision), 0, 1e-3);
  for (int run = 0; run < RUNS; run++) CU_ASSERT_EQUAL(vits.fallbacks[run], 0);
  free(lambdas), free(vectors);
  free(means);
  free(covariances);
  free_sampler(&vits);
  free_rounds(&rounds);
}

static void test_convergence(void) {
  static const char *const names[] = {"vits1", "vits2", "vits2_hf"};
  static const int dimensions[] = {2, 5, 20};
  for (int k = 0; k < 3; k++)
    for (int l = 0; l < 3; l++) {
      check_convergence(names[k], dimensions[l], true, l == 1 ? "eta=4" : "eta=auto");
      if (k == 1 || l < 2) check_convergence(names[k], dimensions[l], false, l == 0 ? "eta=4" : "eta=auto");
    }
}

/* ---- updates, against Algorithms 2 and 3 written out for one Gaussian */

enum { LANES = 3, DIMENSION = 4, SQUARE = DIMENSION * DIMENSION };

typedef struct {
  double mean[DIMENSION], root[SQUARE], inverse[SQUARE];
} Plain;

static void multiply(const double *a, const double *b, double *c) {
  for (int i = 0; i < DIMENSION; i++)
    for (int j = 0; j < DIMENSION; j++) {
      c[i * DIMENSION + j] = 0;
      for (int k = 0; k < DIMENSION; k++) c[i * DIMENSION + j] += a[i * DIMENSION + k] * b[k * DIMENSION + j];
    }
}

static double transposed(const double *a, int i, int j) { return a[j * DIMENSION + i]; }

static void plain_update(VitsKind kind, const Rows *rows, const double *eps, double h, Plain *q) {
  double theta[DIMENSION], gradient[DIMENSION], hessian[SQUARE], product[SQUARE], inner[SQUARE] = {0};
  double identity[SQUARE], inverse[SQUARE], change[SQUARE];
  for (int i = 0; i < SQUARE; i++) identity[i] = i % (DIMENSION + 1) == 0;
  for (int i = 0; i < DIMENSION; i++) {
    theta[i] = q->mean[i];
    for (int j = 0; j < DIMENSION; j++) theta[i] += q->root[i * DIMENSION + j] * eps[j];
  }
  derivatives(rows, ZEROS, ONES, ZEROS, identity, theta, gradient, hessian);
  for (int i = 0; i < DIMENSION; i++) q->mean[i] += h * gradient[i]; /* of log p = -U */
  multiply(hessian, q->root, product);
  fixture_invert(DIMENSION, q->root, inverse);
  if (kind == VITS_TWO) memcpy(inverse, q->inverse, sizeof inverse);
  for (int i = 0; i < DIMENSION; i++)
    for (int j = 0; j < DIMENSION; j++) {
      q->root[i * DIMENSION + j] += h * (transposed(inverse, i, j) - product[i * DIMENSION + j]);
      for (int k = 0; k < DIMENSION; k++)
        inner[i * DIMENSION + j] += transposed(q->inverse, i, k) * q->inverse[k * DIMENSION + j];
      inner[i * DIMENSION + j] -= hessian[i * DIMENSION + j];
    }
  multiply(q->inverse, inner, change);
  for (int i = 0; i < SQUARE; i++) q->inverse[i] -= h * change[i];
}

/* Computes C <- C (2I - BC). */
static void plain_refresh(Plain *q) {
  double product[SQUARE], change[SQUARE];
  multiply(q->root, q->inverse, product);
  multiply(q->inverse, product, change);
  for (int i = 0; i < SQUARE; i++) q->inverse[i] = 2 * q->inverse[i] - change[i];
}

/* Makes a root that is not symmetric, and its inverse. */
static Plain some_gaussian(int lane) {
  Plain q;
  Rng rng = fixture_rng((uint32_t)lane, 6000);
  rng_normal(&rng, DIMENSION, q.mean);
  rng_normal(&rng, SQUARE, q.root);
  for (int i = 0; i < SQUARE; i++) q.root[i] = 0.3 * q.root[i] + (i % (DIMENSION + 1) == 0);
  fixture_invert(DIMENSION, q.root, q.inverse);
  return q;
}

static void put_lane(int rows, const double *from, int lane, double *to) {
  for (int i = 0; i < rows; i++) to[i * LANES + lane] = from[i];
}

static void check_lane(int rows, const double *expected, int lane, const double *actual) {
  for (int i = 0; i < rows; i++)
    CHECK_NEAR(actual[i * LANES + lane], expected[i], 1e-12 * (1 + fabs(expected[i])));
}

/* Checks updates in round 2, after 46 updates: VITS-II refreshes C before the 5th and the 15th. */
static void test_updates(void) {
  SCRATCH_ARENA(memory);
  enum { STEPS = 23 };
  static const char *const sets[] = {"steps=23", "step_rule=eta_t", "step_size=0.2"};
  const Likelihood likelihood = glm("logistic");
  Prior prior = standard_prior(&memory, DIMENSION);
  Rows rows[LANES];
  for (int n = 0; n < LANES; n++) rows[n] = make_rows(&likelihood, DIMENSION, 10, 1.5, (uint32_t)n);
  History history = make_history(&memory, LANES, rows, &likelihood);
  for (VitsKind kind = VITS_ONE; kind <= VITS_TWO; kind++) {
    FixtureSampler vits = make_sampler(&memory, kind == VITS_ONE ? "vits1" : "vits2", &prior, &likelihood, 0,
                                       LANES, 1, 3, sets);
    Potential potential;
    VitsStep work;
    double mean[DIMENSION * LANES], root[SQUARE * LANES], inverse[SQUARE * LANES];
    int64_t fallbacks[LANES] = {0};
    CHECK_OK(potential_create(&memory, &vits.sampler.setup, LANES, &potential));
    CHECK_OK(vits_step_create(&memory, kind, &vits.sampler.setup, LANES, &work));
    for (int n = 0; n < LANES; n++) {
      Plain q = some_gaussian(n);
      put_lane(DIMENSION, q.mean, n, mean);
      put_lane(SQUARE, q.root, n, root);
      put_lane(SQUARE, q.inverse, n, inverse);
    }
    RngLanes rng = {.key = rng_key(1, RNG_TEST), .draws = 1, .round = 2, .lanes = LANES};
    potential_at(&potential, &(HistoryView){&history, 1, 0, LANES, NULL, NULL});
    vits_step_round(&work, &potential, (VitsGaussian){mean, root, inverse}, &rng, fallbacks);
    for (int n = 0; n < LANES; n++) {
      Plain q = some_gaussian(n);
      Rng own = {.key = rng_key(1, RNG_TEST), .run = (uint32_t)n, .round = 2};
      for (int k = 0; k < STEPS; k++) {
        double eps[DIMENSION];
        if (kind == VITS_TWO && (2 * STEPS + k) % 10 == 0) plain_refresh(&q);
        rng_normal(&own, DIMENSION, eps);
        plain_update(kind, &rows[n], eps, 0.2 / history.rounds, &q);
      }
      check_lane(DIMENSION, q.mean, n, mean);
      check_lane(SQUARE, q.root, n, root);
      if (kind == VITS_TWO) check_lane(SQUARE, q.inverse, n, inverse);
      CU_ASSERT_EQUAL(fallbacks[n], 0);
    }
    free_sampler(&vits);
  }
}

/* Checks one update of VITS-II against its definition, at dimensions and lanes that are multiples of the
 * sizes of a tile and at others; sums of d terms in another order. */
static void check_move(int d, int lanes) {
  SCRATCH_ARENA(memory);
  static const char *const sets[] = {"steps=1"};
  const Likelihood likelihood = glm("logistic");
  const size_t matrix = (size_t)(d * d * lanes);
  Prior prior = standard_prior(&memory, d);
  FixtureSampler vits = make_sampler(&memory, "vits2", &prior, &likelihood, 0, lanes, 1, 1, sets);
  VitsStep work;
  double *root, *inverse, *hessian, *excess, *image, *change, bound[64];
  Rng rng = {.key = rng_key(4, RNG_TEST), .run = (uint32_t)(d * lanes)};
  CHECK_OK(vits_step_create(&memory, VITS_TWO, &vits.sampler.setup, lanes, &work));
  double **const arrays[] = {&root, &inverse, &hessian, &excess, &image, &change};
  for (int k = 0; k < 6; k++) {
    CHECK_OK(arena_new(&memory, (void **)arrays[k], matrix, sizeof(double)));
    rng_normal(&rng, (int)matrix, *arrays[k]);
  }
  VitsGaussian q = {NULL, root, inverse};
  linalg_lanes_gram(d, lanes, change, hessian);
  linalg_lanes_gram(d, lanes, inverse, excess);
  linalg_lanes_moment_bound(d, lanes, excess, bound);
  for (size_t k = 0; k < matrix; k++) excess[k] -= hessian[k];
  for (int n = 0; n < lanes; n++) work.h[n] = 0.1 + 0.01 * n;
  vits_step_excess(&work, lanes, hessian, q);
  for (size_t k = 0; k < matrix; k++) CHECK_NEAR(work.excess[k], excess[k], 1e-13 * d);
  for (int n = 0; n < lanes; n++) CHECK_NEAR(work.dot[n] / bound[n], 1, 1e-13);
  linalg_lanes_product(d, lanes, hessian, root, image);
  linalg_lanes_product(d, lanes, inverse, excess, change);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      for (int n = 0; n < lanes; n++)
        image[(i * d + j) * lanes + n] =
            root[(i * d + j) * lanes + n] +
            work.h[n] * (inverse[(j * d + i) * lanes + n] - image[(i * d + j) * lanes + n]);
  for (size_t k = 0; k < matrix; k++) change[k] = inverse[k] - work.h[k % (size_t)lanes] * change[k];
  vits_step_move(&work, lanes, hessian, q);
  for (size_t k = 0; k < matrix; k++) {
    CHECK_NEAR(root[k], image[k], 1e-12 * d);
    CHECK_NEAR(inverse[k], change[k], 1e-12 * d * d);
  }
  for (int k = 0; k < d * lanes; k++) {
    double square = 0;
    for (int j = 0; j < d; j++) square += pow(root[(k / lanes * d + j) * lanes + k % lanes], 2);
    CHECK_NEAR(work.spread[k] / square, 1, 1e-12);
  }
  free_sampler(&vits);
}

/* Checks VITS-I at any Gaussian: B and C are still each other's inverse after 10 steps of the longest kind,
 * without any refresh, to the rounding of inverses of condition numbers up to some thousand. */
static void check_inverse_follows(int d, int lanes) {
  SCRATCH_ARENA(memory);
  static const char *const sets[] = {"steps=1"};
  const Likelihood likelihood = glm("logistic");
  const size_t matrix = (size_t)(d * d * lanes);
  Prior prior = standard_prior(&memory, d);
  FixtureSampler vits = make_sampler(&memory, "vits1", &prior, &likelihood, 0, lanes, 1, 1, sets);
  VitsStep work;
  double *at[4], *scratch;
  Rng rng = {.key = rng_key(5, RNG_TEST), .run = (uint32_t)(d * lanes)};
  CHECK_OK(vits_step_create(&memory, VITS_ONE, &vits.sampler.setup, lanes, &work));
  CHECK_OK(arena_new(&memory, (void **)&scratch, 2 * matrix, sizeof(double)));
  for (int k = 0; k < 4; k++) CHECK_OK(arena_new(&memory, (void **)&at[k], matrix, sizeof(double)));
  rng_normal(&rng, (int)matrix, at[0]);
  linalg_lanes_gram(d, lanes, at[0], at[3]); /* A, symmetric */
  memcpy(at[2], at[0], matrix * sizeof(double));
  linalg_lanes_invert(d, lanes, at[2], at[1]);
  VitsGaussian q = {NULL, at[0], at[1]};
  for (int step = 0; step < 10; step++) {
    double most[64], bound[64];
    vits_step_excess(&work, lanes, at[3], q);
    linalg_lanes_fine_bound(d, lanes, at[3], most, scratch);
    linalg_lanes_gram(d, lanes, q.inverse, at[2]);
    linalg_lanes_fine_bound(d, lanes, at[2], bound, scratch);
    for (int n = 0; n < lanes; n++) work.h[n] = 0.5 / fmax(most[n], bound[n]);
    vits_step_move(&work, lanes, at[3], q);
  }
  linalg_lanes_product(d, lanes, q.inverse, q.root, at[2]);
  for (size_t k = 0; k < matrix; k++) CHECK_NEAR(at[2][k], k / (size_t)lanes % (size_t)(d + 1) == 0, 1e-9);
  free_sampler(&vits);
}

static void test_moves(void) {
  static const int dimensions[] = {1, 2, 3, 4, 5, 8, 11, 20}, counts[] = {3, 8, 13};
  for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
      check_move(dimensions[i], counts[n]);
      check_inverse_follows(dimensions[i], counts[n]);
    }
}

/* ---- the Hessian-free estimate */

/* Computes E_q of gradient and Hessian of U by the trapezoidal rule over eps in [-8, 8]^2, which converges
 * faster than any power. */
static void expected_derivatives(const Rows *rows, const double *mean, const double *root, double *gradient,
                                 double *hessian) {
  enum { POINTS = 121 };
  static const double identity[4] = {1, 0, 0, 1};
  const double step = 16.0 / (POINTS - 1);
  double total = 0;
  memset(gradient, 0, 2 * sizeof *gradient);
  memset(hessian, 0, 4 * sizeof *hessian);
  for (int k = 0; k < POINTS * POINTS; k++) {
    double x = -8 + step * (k / POINTS), y = -8 + step * (k % POINTS), weight = exp(-0.5 * (x * x + y * y));
    double theta[2] = {mean[0] + root[0] * x + root[1] * y, mean[1] + root[2] * x + root[3] * y};
    double slope[2], curvature[4];
    derivatives(rows, ZEROS, ONES, ZEROS, identity, theta, slope, curvature);
    total += weight;
    for (int i = 0; i < 2; i++) gradient[i] -= weight * slope[i];
    for (int i = 0; i < 4; i++) hessian[i] += weight * curvature[i];
  }
  for (int i = 0; i < 2; i++) gradient[i] /= total;
  for (int i = 0; i < 4; i++) hessian[i] /= total;
}

/* Checks that the mean of 64 000 estimates is within 5 standard errors of the quadrature. */
static void test_hessian_free_is_unbiased(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 64, ROUNDS = 1000 };
  static const char *const sets[] = {"samples=3"};
  static double mean[2 * MANY], root[4 * MANY], inverse[4 * MANY];
  const Likelihood likelihood = glm("logistic");
  Prior prior = standard_prior(&memory, 2);
  Rows rows = make_rows(&likelihood, 2, 12, 2, 3), same[MANY];
  for (int n = 0; n < MANY; n++) same[n] = rows;
  History history = make_history(&memory, MANY, same, &likelihood);
  FixtureSampler vits = make_sampler(&memory, "vits2_hf", &prior, &likelihood, 0, MANY, 1, 1, sets);
  Potential potential;
  VitsStep work;
  const double mu[2] = {0.4, -0.7}, b[4] = {0.9, 0.3, -0.2, 0.6}, det = 0.9 * 0.6 + 0.3 * 0.2;
  const double c[4] = {0.6 / det, -0.3 / det, 0.2 / det, 0.9 / det};
  double sum[6] = {0}, square[6] = {0}, expected[6];
  CHECK_OK(potential_create(&memory, &vits.sampler.setup, MANY, &potential));
  CHECK_OK(vits_step_create(&memory, VITS_HESSIAN_FREE, &vits.sampler.setup, MANY, &work));
  for (int n = 0; n < MANY; n++) {
    for (int i = 0; i < 2; i++) mean[i * MANY + n] = mu[i];
    for (int i = 0; i < 4; i++) root[i * MANY + n] = b[i], inverse[i * MANY + n] = c[i];
  }
  potential_at(&potential, &(HistoryView){&history, 1, 0, MANY, NULL, NULL});
  for (int round = 0; round < ROUNDS; round++) {
    RngLanes rng = {.key = rng_key(2, RNG_TEST), .draws = 1, .lanes = MANY, .round = (uint32_t)round};
    vits_step_estimate(&work, &potential, (VitsGaussian){mean, root, inverse}, &rng);
    for (int i = 0; i < 6; i++)
      for (int n = 0; n < MANY; n++) {
        double x = i < 2 ? work.gradient[i * MANY + n] : work.hessian[(i - 2) * MANY + n];
        sum[i] += x / (MANY * ROUNDS), square[i] += x * x / (MANY * ROUNDS);
      }
  }
  expected_derivatives(&rows, mu, b, expected, expected + 2);
  for (int i = 0; i < 6; i++) {
    double deviation = sqrt(square[i] - sum[i] * sum[i]);
    CHECK_NEAR(sum[i], expected[i], 5 * deviation / sqrt(MANY * ROUNDS));
    CU_ASSERT(deviation > 0);
  }
  free_sampler(&vits);
}

/* Checks the estimate at the target. Without the second control variate, as q is the target of a quadratic U,
 * it would err by about 1/sqrt(samples); with both it is the Hessian. */
static void test_hessian_free_is_exact_at_the_target(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 2, D = 3 };
  static const char *const sets[] = {"samples=4"};
  const Likelihood likelihood = fixture_likelihood(0.5);
  Prior prior = standard_prior(&memory, D);
  Rounds rounds = make_rounds(D, 0, RUNS, 9, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  for (int l = 0; l < rounds.n; l++) append_round(&history, &rounds, l);
  FixtureSampler vits = make_sampler(&memory, "vits2_hf", &prior, &likelihood, 0, RUNS, 1, 1, sets);
  Potential potential;
  VitsStep work;
  double precision[D * D], covariance[D * D], target[D], root[D * D], inverse[D * D];
  double q_mean[D * RUNS], q_root[D * D * RUNS], q_inverse[D * D * RUNS];
  CHECK_OK(potential_create(&memory, &vits.sampler.setup, RUNS, &potential));
  CHECK_OK(vits_step_create(&memory, VITS_HESSIAN_FREE, &vits.sampler.setup, RUNS, &work));
  for (int run = 0; run < RUNS; run++) {
    linear_target(&history, run, 4, 0.25, precision, covariance, target);
    memcpy(root, covariance, sizeof root);
    ASSERT(linalg_cholesky(D, root) == STATUS_OK);
    fixture_invert(D, root, inverse);
    for (int i = 0; i < D; i++) q_mean[i * RUNS + run] = target[i];
    for (int i = 0; i < D * D; i++) q_root[i * RUNS + run] = root[i], q_inverse[i * RUNS + run] = inverse[i];
  }
  RngLanes rng = {.key = rng_key(2, RNG_TEST), .draws = 1, .lanes = RUNS};
  potential_at(&potential, &(HistoryView){&history, 1, 0, RUNS, NULL, NULL});
  vits_step_estimate(&work, &potential, (VitsGaussian){q_mean, q_root, q_inverse}, &rng);
  for (int run = 0; run < RUNS; run++) {
    linear_target(&history, run, 4, 0.25, precision, covariance, target);
    for (int i = 0; i < D * D; i++) CHECK_NEAR(work.hessian[i * RUNS + run], precision[i], 1e-11);
    for (int i = 0; i < D; i++) CHECK_NEAR(work.gradient[i * RUNS + run], 0, 1e-11);
  }
  free_sampler(&vits);
  free_rounds(&rounds);
}

/* ---- start, streams, stability: all samplers that observe */

static const char *const SAMPLERS[] = {"vits1", "vits2", "vits2_hf", "lmc", "fgts", "rvga"};
enum { SAMPLER_COUNT = sizeof SAMPLERS / sizeof *SAMPLERS };

/* Checks the start, before the first observation: N(0, I / (eta lambda)), within 5 standard errors. */
static void test_start(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, MANY = 20000 };
  static const char *const sets[] = {"eta=5", "lambda=0.4"};
  static const double zero[D] = {0}, covariance[D * D] = {0.5, 0, 0, 0, 0.5, 0, 0, 0, 0.5};
  const Likelihood likelihood = fixture_likelihood(0.7);
  Prior prior = standard_prior(&memory, D);
  Rounds rounds = make_rounds(D, 0, 1, 1, false, &likelihood);
  History history = empty_history(&memory, &rounds, &likelihood);
  for (int k = 0; k < SAMPLER_COUNT; k++) {
    FixtureSampler fixture = make_sampler(&memory, SAMPLERS[k], &prior, &likelihood, 0, 1, MANY, 2, sets);
    double *theta = draw_from(&fixture, &history, MANY);
    fixture_check_moments(D, 1, MANY, 0, theta, zero, covariance, 5);
    free(theta);
    free_sampler(&fixture);
  }
  free_rounds(&rounds);
}

/* Observes five rounds of these runs, then draws two for each: theta[d, 2 runs]. */
static double *play(const char *name, const Prior *prior, const Likelihood *likelihood, int first_run,
                    int runs) {
  SCRATCH_ARENA(memory);
  Rounds rounds = make_rounds(prior->d, first_run, runs, 5, false, likelihood);
  History history = empty_history(&memory, &rounds, likelihood);
  FixtureSampler fixture =
      make_sampler(&memory, name, prior, likelihood, (uint32_t)first_run, runs, 2, 0, NULL);
  for (int l = 0; l < rounds.n; l++) {
    append_round(&history, &rounds, l);
    sampler_observe(&fixture.sampler, &history, fixture.fallbacks);
  }
  double *theta = draw_from(&fixture, &history, 2);
  free_sampler(&fixture);
  free_rounds(&rounds);
  return theta;
}

/* Checks that a run's draws are the same, bit for bit, alone and in a block of 75. */
static void test_no_run_depends_on_another(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 75 };
  static const int alone[] = {0, 17, 63, 64, 74};
  for (int d = 2; d <= 9; d += 7) {
    Mixture mixture = fixture_mixture(&memory, d < 9 ? d : 1, 2, 1.5);
    PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
    Prior prior = d < 9 ? fixture_exact_prior(&memory, &mixture, &fit) : standard_prior(&memory, d);
    for (int l = 0; l < 2; l++) {
      const Likelihood likelihood = {.ops = likelihood_find(l ? "logistic" : "gaussian"), .noise = 0.7};
      for (int k = 0; k < SAMPLER_COUNT; k++) {
        double *block = play(SAMPLERS[k], &prior, &likelihood, 0, RUNS);
        for (size_t a = 0; a < sizeof alone / sizeof *alone; a++) {
          double *single = play(SAMPLERS[k], &prior, &likelihood, alone[a], 1);
          for (int i = 0; i < d; i++)
            CU_ASSERT(memcmp(single + 2 * i, block + 2 * (i * RUNS + alone[a]), 2 * sizeof *single) == 0);
          free(single);
        }
        free(block);
      }
    }
  }
}

/* Checks that drawing does not move the state, and that a history that is shorter than before starts it
 * again. */
static void test_drawing_and_restart(void) {
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = fixture_likelihood(0.7);
  Prior prior = standard_prior(&memory, 2);
  Rounds rounds = make_rounds(2, 0, 3, 4, false, &likelihood);
  for (int k = 0; k < SAMPLER_COUNT; k++) {
    History history = empty_history(&memory, &rounds, &likelihood);
    FixtureSampler fixture = make_sampler(&memory, SAMPLERS[k], &prior, &likelihood, 0, 3, 1, 0, NULL);
    double *fresh = draw_from(&fixture, &history, 1);
    for (int l = 0; l < rounds.n; l++) {
      append_round(&history, &rounds, l);
      sampler_observe(&fixture.sampler, &history, fixture.fallbacks);
    }
    double *first = draw_from(&fixture, &history, 1), *second = draw_from(&fixture, &history, 1);
    CU_ASSERT(memcmp(first, second, 6 * sizeof *first) == 0);
    CU_ASSERT(memcmp(first, fresh, 6 * sizeof *first) != 0);
    history_clear(&history);
    double *again = draw_from(&fixture, &history, 1);
    CU_ASSERT(memcmp(again, fresh, 6 * sizeof *first) == 0);
    free(fresh);
    free(first);
    free(second);
    free(again);
    free_sampler(&fixture);
  }
  free_rounds(&rounds);
}

/* Checks evidence of 1 and 1e8, steps up to 100, every likelihood and rule: finite draws, and no exception
 * (the harness traps them). */
static void test_stability(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 2, D = 3 };
  static const char *const noises[] = {"1", "1e-4"};
  static const char *const sizes[] = {"step_size=0.5", "step_size=100"};
  static const char *const rules[] = {"step_rule=eta_t", "step_rule=lambda_max"};
  for (int components = 1; components <= 2; components++) {
    Mixture mixture = fixture_mixture(&memory, D, components, 1.5);
    PriorFit fit = fixture_fit(5, 0.8, LAST_STAGE_REPAIRED);
    Prior prior = fixture_exact_prior(&memory, &mixture, &fit);
    for (int k = 0; k < SAMPLER_COUNT; k++)
      for (int c = 0; c < 24; c++) {
        const Likelihood likelihood = {.ops = likelihood_family(c % 3), .noise = atof(noises[c / 3 % 2])};
        const char *sets[] = {sizes[c / 6 % 2], rules[c / 12]};
        const bool plain = strcmp(SAMPLERS[k], "rvga") == 0;
        Rounds rounds = make_rounds(D, 0, RUNS, 12, false, &likelihood);
        History history = empty_history(&memory, &rounds, &likelihood);
        FixtureSampler fixture =
            make_sampler(&memory, SAMPLERS[k], &prior, &likelihood, 0, RUNS, 5, plain ? 0 : 2, sets);
        for (int l = 0; l < rounds.n; l++) {
          append_round(&history, &rounds, l);
          sampler_observe(&fixture.sampler, &history, fixture.fallbacks);
        }
        double *theta = draw_from(&fixture, &history, 5);
        for (int i = 0; i < D * RUNS * 5; i++) CU_ASSERT(isfinite(theta[i]) && fabs(theta[i]) < 1e4);
        if (!plain && c / 6 % 2 && c / 12 == 0) CU_ASSERT(fixture.fallbacks[0] > 0);
        free(theta);
        free_sampler(&fixture);
        free_rounds(&rounds);
      }
  }
}

int main(void) {
  CU_TestInfo tests[] = {
      {"linear Thompson sampling is the closed form", test_lints_is_the_closed_form},
      {"VITS converges to the posterior of the linear model", test_convergence},
      {"updates are those of Algorithms 2 and 3", test_updates},
      {"steps are the products they stand for", test_moves},
      {"the Hessian-free estimate is unbiased", test_hessian_free_is_unbiased},
      {"the Hessian-free estimate is exact at the target", test_hessian_free_is_exact_at_the_target},
      {"draws before the first observation", test_start},
      {"no run depends on another", test_no_run_depends_on_another},
      {"drawing leaves the state, a shorter history restarts it", test_drawing_and_restart},
      {"stability", test_stability},
      CU_TEST_INFO_NULL};
  return harness_run("vits", tests);
}

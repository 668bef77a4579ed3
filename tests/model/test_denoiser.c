/* The learned denoiser: its cases, its network, its training and its files. */
#include "core/arena.h"
#include "model/network/network_plain.h"
#include "sampler_fixture.h"

#include "core/linalg/linalg.h"
#include "model/denoiser/denoiser_localisation.h"
#include "model/denoiser/denoiser_network.h"
#include "model/mixture/mixture_fit.h"
#include "model/mixture/mixture_store.h"
#include "model/prior/denoiser_training.h"
#include "model/prior/families.h"
#include "model/prior/prior.h"

#include <unistd.h>

enum { LANES = DENOISER_LANES, MOST = 3 };

/* Draws n samples of a mixture in R^d. */
static Samples draw_samples(const Mixture *mixture, int n) {
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = (uint32_t)n, .round = 8000};
  Samples samples = {.d = mixture->d, .n = n};
  samples.theta = fixture_new((size_t)mixture->d * (size_t)n, sizeof *samples.theta);
  mixture_sample(mixture, &rng, samples.theta);
  return samples;
}

static PriorFit short_fit(int steps) {
  return (PriorFit){.starts = 3,
                    .hidden_count = 2,
                    .hidden = {32, 32},
                    .steps = steps,
                    .batch = 256,
                    .learning_rate = 0.01,
                    .seed = FIXTURE_SEED,
                    .replicate = 2};
}

/* Checks the moments of many cases of z ~ N(0, I): M is orthogonally invariant with eigenvalues in range, and
 * u has mean 0, variance 1 and no correlation with m, by the choice of S. Within 5 standard errors. */
static void test_cases(void) {
  SCRATCH_ARENA(memory);
  enum { D = 3, TILES = 300, N = TILES * LANES };
  Mixture mixture = fixture_mixture(&memory, D, 1, 0);
  Samples samples = draw_samples(&mixture, 20000);
  TrainingSamples training;
  DenoiserCases cases;
  double sum_error = 0, squares = 0, product = 0, product_squares = 0, equal = 0, first = 0;
  Rng rng = fixture_rng(0, 8001);
  PriorFit fit = short_fit(1);
  for (int i = 0; i < D * samples.n; i++) samples.theta[i] = 0;
  RngLanes normals = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = 20000, .round = 8002};
  rng_lanes_normal(&normals, D, samples.theta);
  CHECK_OK(training_samples_create(&memory, &fit, true, &samples, &training));
  CHECK_OK(denoiser_cases_create(&memory, D, &cases));
  for (int tile = 0; tile < TILES; tile++) {
    denoiser_cases_draw(&cases, &training, false, &rng);
    for (int n = 0; n < LANES; n++) {
      const double *u = cases.observed.basis + n;
      for (int k = 0; k < D * D; k++) {
        double dot = 0;
        for (int i = 0; i < D; i++) dot += u[(i * D + k / D) * LANES] * u[(i * D + k % D) * LANES];
        CHECK_NEAR(dot, k / D == k % D, 1e-9);
      }
      first += u[0] * u[0];
      for (int i = 0; i < D; i++) {
        const double q = cases.observed.eigenvalue[i * LANES + n], error = cases.error[i * LANES + n],
                     along = cases.mean[i * LANES + n] * sqrt((1 + q) / q) * error;
        CU_ASSERT(q >= 0.999 * DENOISER_LEAST_PRECISION && q <= 1.001 * DENOISER_MOST_PRECISION);
        sum_error += error, squares += error * error, product += along, product_squares += along * along;
      }
      equal += cases.observed.eigenvalue[n] == cases.observed.eigenvalue[LANES + n];
    }
  }
  CHECK_NEAR(sum_error / (D * N), 0, 5 / sqrt(D * N));
  CHECK_NEAR(squares / (D * N), 1, 5 * sqrt(2.0 / (D * N)));
  CHECK_NEAR(product / (D * N), 0, 5 * sqrt(product_squares) / (D * N));
  CHECK_NEAR(first / N, 1.0 / D, 5 * 0.3 / sqrt(N)); /* standard deviation of a squared coordinate: 0.298 */
  CHECK_NEAR(equal / N, 0.35 + 0.30 / 3, 5 * 0.5 / sqrt(N)); /* multiples of I, and a floor above both */
  free(samples.theta);
}

/* Makes random M = U diag(q) U' and b for LANES lanes. */
static void random_evidence(int d, uint32_t round, double *basis, double *eigenvalue, double *vector) {
  static double root[MOST * MOST * LANES], precision[MOST * MOST * LANES];
  Rng rng = fixture_rng(1, round);
  rng_normal(&rng, d * d * LANES, root);
  rng_normal(&rng, d * LANES, vector);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      for (int n = 0; n < LANES; n++) {
        double sum = 0;
        for (int k = 0; k < d; k++) sum += root[(i * d + k) * LANES + n] * root[(j * d + k) * LANES + n];
        precision[(i * d + j) * LANES + n] = sum;
      }
  linalg_factor_eigen(d, LANES, precision, basis, eigenvalue);
  for (int k = 0; k < d * LANES; k++) eigenvalue[k] = fmax(eigenvalue[k], 0);
}

/* Computes U diag((1 + q)^power) U' of lane n; power 0: that of -log(1 + q) / 2. */
static void power_of(int d, const double *basis, const double *eigenvalue, int n, double power, double *out) {
  memset(out, 0, (size_t)(d * d) * sizeof *out);
  for (int k = 0; k < d; k++) {
    const double q = eigenvalue[k * LANES + n], f = power == 0 ? -0.5 * log1p(q) : pow(1 + q, power);
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++)
        out[i * d + j] += f * basis[(i * d + k) * LANES + n] * basis[(j * d + k) * LANES + n];
  }
}

/* Computes D by the formula, for one lane with matrices written out and the network in double precision,
 * given b and the mean of the mixture. */
static void expected_mean(const DenoiserNetwork *network, const double *weights, const double *basis,
                          const double *eigenvalue, const double *b, const double *start, int n,
                          double *mean) {
  const int d = network->d;
  double s[MOST * MOST], root[MOST * MOST], inverse_root[MOST * MOST], half_log[MOST * MOST], x[16], h[MOST];
  power_of(d, basis, eigenvalue, n, -1, s);
  power_of(d, basis, eigenvalue, n, -0.5, root);
  power_of(d, basis, eigenvalue, n, 0.5, inverse_root);
  power_of(d, basis, eigenvalue, n, 0, half_log);
  int at = d;
  for (int i = 0; i < d; i++) {
    x[i] = 0;
    for (int j = 0; j < d; j++) x[i] += s[i * d + j] * b[j];
    for (int j = i; j < d; j++) x[at++] = half_log[i * d + j];
  }
  for (int i = 0; i < d; i++, at++) {
    x[at] = 0;
    for (int j = 0; j < d; j++) x[at] += inverse_root[i * d + j] * (start[j] - x[j]);
  }
  CU_ASSERT_EQUAL(at, network->shape.width[0]);
  network_plain_forward(&network->shape, weights, x, h);
  for (int i = 0; i < d; i++) {
    mean[i] = start[i];
    for (int j = 0; j < d; j++) mean[i] += root[i * d + j] * h[j];
  }
}

/* Checks D against the formula, to the rounding of floats, and C against central differences of the formula,
 * symmetrised. The network is piecewise linear, so a lane in which a unit switches within the step is off:
 * one in eight may be. */
static void check_formula(const DenoiserNetwork *network, const double *weights, double *basis,
                          double *eigenvalue, double *vector, const double *mean, const double *covariance) {
  static double up[MOST * LANES], moved[MOST * LANES], start[2][MOST * LANES], unused[MOST * MOST * LANES];
  const int d = network->d;
  const double step = 1e-4;
  static double slope[MOST * MOST * LANES];
  SCRATCH_ARENA(memory);
  void *scratch;
  CHECK_OK(network->start->scratch(network->start, &memory, &scratch));
  int lane_fallbacks[LANES] = {0}, missed = 0;
  for (int j = 0; j < d; j++) {
    for (int side = 0; side < 2; side++) {
      memcpy(moved, vector, (size_t)(d * LANES) * sizeof *moved);
      for (int n = 0; n < LANES; n++) moved[j * LANES + n] += side ? step : -step;
      network->start->moments(network->start, &(LaneEvidence){LANES, basis, eigenvalue, moved}, start[side],
                              unused, lane_fallbacks, scratch);
      for (int n = 0; n < LANES; n++) {
        double b[MOST], from[MOST], out[MOST];
        for (int i = 0; i < d; i++) b[i] = moved[i * LANES + n], from[i] = start[side][i * LANES + n];
        expected_mean(network, weights, basis, eigenvalue, b, from, n, out);
        for (int i = 0; i < d; i++) {
          if (side)
            slope[(i * d + j) * LANES + n] = (out[i] - up[i * LANES + n]) / (2 * step);
          else
            up[i * LANES + n] = out[i];
        }
      }
    }
  }
  network->start->moments(network->start, &(LaneEvidence){LANES, basis, eigenvalue, vector}, start[0], unused,
                          lane_fallbacks, scratch);
  for (int n = 0; n < LANES; n++) {
    double b[MOST], from[MOST], out[MOST];
    bool near = true;
    for (int i = 0; i < d; i++) b[i] = vector[i * LANES + n], from[i] = start[0][i * LANES + n];
    expected_mean(network, weights, basis, eigenvalue, b, from, n, out);
    for (int i = 0; i < d; i++) {
      CHECK_NEAR(mean[i * LANES + n], out[i], 1e-5);
      for (int j = 0; j < d; j++)
        near &= fabs(covariance[(i * d + j) * LANES + n] -
                     0.5 * (slope[(i * d + j) * LANES + n] + slope[(j * d + i) * LANES + n])) < 1e-5;
    }
    missed += !near;
  }
  CU_ASSERT(missed <= LANES / 8);
}

/* Checks that without the slope D is the same to the bit, and the covariance is that of the mixture. */
static void check_mixture(const DenoiserNetwork *network, const LaneEvidence *at, const double *mean,
                          void *scratch) {
  SCRATCH_ARENA(memory);
  static double same[MOST * LANES], covariance[MOST * MOST * LANES], unused[MOST * LANES],
      expected[MOST * MOST * LANES];
  const int d = network->d;
  int lane_fallbacks[LANES] = {0};
  void *start;
  CHECK_OK(network->start->scratch(network->start, &memory, &start));
  denoiser_network_moments(network, false, at, same, covariance, lane_fallbacks, scratch);
  network->start->moments(network->start, at, unused, expected, lane_fallbacks, start);
  CU_ASSERT(memcmp(same, mean, (size_t)(d * LANES) * sizeof *mean) == 0);
  CU_ASSERT(memcmp(covariance, expected, (size_t)(d * d * LANES) * sizeof *expected) == 0);
}

static void keep_all(DenoiserNetwork *network) {
  for (int k = 0; k < DENOISER_BINS; k++) network->share[k] = 1;
}

static void test_network(void) {
  SCRATCH_ARENA(memory);
  for (int d = 1; d <= MOST; d++) {
    static double basis[MOST * MOST * LANES], eigenvalue[MOST * LANES], vector[MOST * LANES],
        mean[MOST * LANES], covariance[MOST * MOST * LANES];
    float parameters[2000];
    double weights[2000];
    int lane_fallbacks[LANES] = {0};
    Mixture mixture = fixture_mixture(&memory, d, 3, 1.5);
    Denoiser start;
    CHECK_OK(denoiser_mixture_create(&memory, &mixture, false, &start));
    DenoiserNetwork network = {.d = d,
                               .shape = network_shape(denoiser_input_count(d), 2, (int[]){24, 20}, d),
                               .start = &start,
                               .most_precision = 2000};
    keep_all(&network);
    const size_t count = network_parameters(&network.shape);
    Rng rng = fixture_rng(0, 8003);
    ASSERT(count <= 2000);
    rng_normal(&rng, (int)count, weights);
    for (size_t i = 0; i < count; i++) weights[i] = parameters[i] = (float)(0.3 * weights[i]);
    network.parameters = parameters;
    const LaneEvidence at = {LANES, basis, eigenvalue, vector};
    void *scratch;
    CHECK_OK(denoiser_network_scratch(&memory, &network, &scratch));
    random_evidence(d, 8004, basis, eigenvalue, vector);
    denoiser_network_moments(&network, true, &at, mean, covariance, lane_fallbacks, scratch);
    for (int n = 0; n < LANES; n++) CU_ASSERT_EQUAL(lane_fallbacks[n], 0);
    check_formula(&network, weights, basis, eigenvalue, vector, mean, covariance);
    check_mixture(&network, &at, mean, scratch);
  }
}

/* Checks what happens beyond the eigenvalues of training: the inputs log(S) / 2 stay at the edge and the lane
 * is counted; the rest of the formula still applies: D tends to M^-1 b. Fewer lanes than LANES give the same
 * bits. */
static void test_beyond(void) {
  SCRATCH_ARENA(memory);
  static double basis[3] = {1, 1, 1}, eigenvalue[3] = {1000, 2e9, 0}, vector[3] = {1000, 2e9, 0}, mean[3],
                covariance[3];
  float parameters[400];
  double weights[400];
  int lane_fallbacks[3] = {0};
  Mixture mixture = fixture_mixture(&memory, 1, 2, 1);
  Denoiser start;
  CHECK_OK(denoiser_mixture_create(&memory, &mixture, false, &start));
  DenoiserNetwork network = {.d = 1,
                             .shape = network_shape(denoiser_input_count(1), 1, (int[]){8}, 1),
                             .start = &start,
                             .most_precision = 2000};
  keep_all(&network);
  const int count = (int)network_parameters(&network.shape);
  Rng rng = fixture_rng(0, 8005);
  rng_normal(&rng, count, weights);
  for (int i = 0; i < count; i++) parameters[i] = (float)weights[i];
  network.parameters = parameters;
  void *scratch;
  CHECK_OK(denoiser_network_scratch(&memory, &network, &scratch));
  denoiser_network_moments(&network, true, &(LaneEvidence){3, basis, eigenvalue, vector}, mean, covariance,
                           lane_fallbacks, scratch);
  CU_ASSERT(lane_fallbacks[0] == 0 && lane_fallbacks[1] == 1 && lane_fallbacks[2] == 0);
  CHECK_NEAR(mean[1], 1, 1e-3);
  CHECK_NEAR(covariance[1] * 2e9, 1, 1e-3);
  double first_mean = mean[0];
  denoiser_network_moments(&network, true, &(LaneEvidence){1, basis, eigenvalue, vector}, mean, covariance,
                           lane_fallbacks, scratch);
  CU_ASSERT(first_mean == mean[0]);
}

enum { SHARES_D = 2 };
typedef struct {
  double mean[SHARES_D * LANES], covariance[SHARES_D * SHARES_D * LANES];
} SharedMoments;

static SharedMoments moments_with(DenoiserNetwork *network, const double *share, const LaneEvidence *at) {
  SCRATCH_ARENA(memory);
  SharedMoments out;
  void *scratch;
  int lane_fallbacks[LANES] = {0};
  CHECK_OK(denoiser_network_scratch(&memory, network, &scratch));
  memcpy(network->share, share, sizeof network->share);
  denoiser_network_moments(network, true, at, out.mean, out.covariance, lane_fallbacks, scratch);
  return out;
}

/* Checks that moments are linear in the share, which is linear between the middles of the bins; without a
 * share they are the mixture's to the bit. A network of random weights is not kept; one that learned what a
 * single Gaussian misses of a cross is kept where that shows, which is where the evidence is neither
 * negligible nor overwhelming (0.97 of it in the second bin, measured). */
static void test_shares(void) {
  SCRATCH_ARENA(memory);
  enum { D = SHARES_D };
  static double basis[D * D * LANES], eigenvalue[D * LANES], vector[D * LANES];
  const double none[DENOISER_BINS] = {0}, all[DENOISER_BINS] = {1, 1, 1, 1, 1, 1, 1, 1},
               half[DENOISER_BINS] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
               rising[DENOISER_BINS] = {0, 1, 1, 1, 1, 1, 1, 1};
  Mixture cross = fixture_cross(&memory), one = fixture_mixture(&memory, D, 1, 1);
  Samples samples = draw_samples(&cross, 2000);
  PriorFit fit = short_fit(2000);
  TrainingSamples training;
  Denoiser start;
  fit.batch = 256;
  CHECK_OK(training_samples_create(&memory, &fit, true, &samples, &training));
  CHECK_OK(denoiser_mixture_create(&memory, &one, false, &start));
  DenoiserNetwork network = {.d = D,
                             .shape = network_shape(denoiser_input_count(D), 2, (int[]){32, 32}, D),
                             .start = &start,
                             .most_precision = DENOISER_MOST_PRECISION};
  const size_t count = network_parameters(&network.shape);
  float *parameters = fixture_new(count, sizeof *parameters);
  double *weights = fixture_new(count, sizeof *weights);
  Rng rng = fixture_rng(0, 8008);
  rng_normal(&rng, (int)count, weights);
  for (size_t i = 0; i < count; i++) parameters[i] = (float)(0.3 * weights[i]);
  network.parameters = parameters;
  random_evidence(D, 8009, basis, eigenvalue, vector);
  const LaneEvidence at = {LANES, basis, eigenvalue, vector};
  const SharedMoments whole = moments_with(&network, all, &at), without = moments_with(&network, none, &at),
                      middle = moments_with(&network, half, &at);
  SharedMoments closed;
  int lane_fallbacks[LANES] = {0};
  void *scratch;
  CHECK_OK(start.scratch(&start, &memory, &scratch));
  start.moments(&start, &at, closed.mean, closed.covariance, lane_fallbacks, scratch);
  CU_ASSERT(memcmp(&closed, &without, sizeof closed) == 0);
  for (int k = 0; k < D * LANES; k++) CHECK_NEAR(middle.mean[k], (whole.mean[k] + without.mean[k]) / 2, 1e-9);
  for (int k = 0; k < D * D * LANES; k++)
    CHECK_NEAR(middle.covariance[k], (whole.covariance[k] + without.covariance[k]) / 2, 1e-9);
  /* log det(I + M) at the end of the first bin is half-way between the middles of the first two. */
  for (int k = 0; k < D * LANES; k++) eigenvalue[k] = expm1(log1p(DENOISER_MOST_PRECISION) / DENOISER_BINS);
  const SharedMoments between = moments_with(&network, rising, &at),
                      halved = moments_with(&network, half, &at);
  for (int k = 0; k < D * LANES; k++) CHECK_NEAR(between.mean[k], halved.mean[k], 1e-9);
  CHECK_OK(denoiser_choose_shares(&fit, &training, &network));
  for (int k = 0; k < DENOISER_BINS; k++) CHECK_NEAR(network.share[k], 0, 0.02);
  CHECK_OK(denoiser_train(&fit, &training, &network, parameters));
  CHECK_OK(denoiser_choose_shares(&fit, &training, &network));
  CU_ASSERT(network.share[1] > 0.7 && network.share[1] <= 1);
  free(weights), free(parameters), free(samples.theta);
}

/* Checks that what is learned from samples of a mixture is close to its closed form: over new cases the mean
 * squared error of S^-1/2 D is 0.0003 (measured), while that of the linear estimate is 0.09. The self-check
 * finds the same without the closed form: variance and slope are right within 4% and 10%. */
static void test_learned_mixture(void) {
  SCRATCH_ARENA(memory);
  enum { N = 1500, TILES = 200 };
  Mixture cross = fixture_cross(&memory);
  Samples samples = draw_samples(&cross, N);
  PriorFit fit = short_fit(1000);
  fit.starts = 1, fit.hidden[0] = fit.hidden[1] = 64, fit.batch = 512;
  TrainingSamples training;
  Denoiser exact;
  Prior prior;
  DenoiserCases cases;
  DenoiserCheck check;
  CHECK_OK(prior_fit(&memory, &prior_denoiser, &fit, &samples, &prior));
  CHECK_OK(denoiser_mixture_create(&memory, &cross, true, &exact));
  CHECK_OK(training_samples_create(&memory, &fit, true, &samples, &training));
  CHECK_OK(denoiser_cases_create(&memory, 2, &cases));
  void *exactly, *scratch;
  CHECK_OK(exact.scratch(&exact, &memory, &exactly));
  CHECK_OK(prior.denoiser->scratch(prior.denoiser, &memory, &scratch));
  const LaneEvidence *at = &cases.observed;
  double excess = 0, signal = 0, vector[2 * LANES], right[2 * LANES], learned[2 * LANES],
         covariance[4 * LANES], difference[2 * LANES];
  int lane_fallbacks[LANES] = {0};
  Rng rng = fixture_rng(0, 8006);
  for (int tile = 0; tile < TILES; tile++) {
    denoiser_cases_draw(&cases, &training, true, &rng);
    exact.moments(&exact, at, right, covariance, lane_fallbacks, exactly);
    prior.denoiser->moments(prior.denoiser, at, learned, covariance, lane_fallbacks, scratch);
    for (int k = 0; k < 2 * LANES; k++) learned[k] -= right[k];
    linalg_lanes_multiply_transposed(2, LANES, cases.observed.basis, learned, difference);
    linalg_lanes_multiply_transposed(2, LANES, cases.observed.basis, right, vector);
    for (int k = 0; k < 2 * LANES; k++) {
      excess += (1 + cases.observed.eigenvalue[k]) * pow(difference[k], 2) / (2 * LANES * TILES);
      signal += (1 + cases.observed.eigenvalue[k]) * pow(vector[k] - cases.mean[k], 2) / (2 * LANES * TILES);
    }
  }
  CU_ASSERT(excess < 0.0018 && signal > 0.08);
  CHECK_OK(denoiser_check(&fit, &training, prior.denoiser, &check));
  double error = 0, claimed = 0, agreement = 0, sum = 0, count = 0;
  for (int k = 0; k < DENOISER_BINS; k++) {
    error += check.error[k], claimed += check.claimed[k], count += check.count[k];
    agreement += check.agreement[k], sum += check.signal[k];
  }
  CHECK_NEAR(count, 32768, 0);
  CHECK_NEAR(claimed / error, 1, 0.04);
  CHECK_NEAR(agreement / sum, 1, 0.1);
  free(samples.theta);
}

/* Returns the mean squared error of the self-check. */
static double error_of(const PriorFit *fit, const TrainingSamples *samples, const Denoiser *denoiser) {
  DenoiserCheck check;
  double error = 0, count = 0;
  CHECK_OK(denoiser_check(fit, samples, denoiser, &check));
  for (int k = 0; k < DENOISER_BINS; k++) error += check.error[k], count += check.count[k];
  return error / count;
}

/* Checks that for a prior that is not a mixture, points on a thin spiral, the denoiser learns what ten
 * Gaussians miss: 0.84 against 0.90 (measured), on cases that neither has seen. Held-out samples choose 32
 * Gaussians without a network; test_mixture_alone has a case with one. */
static void test_corrects_mixture(void) {
  SCRATCH_ARENA(memory);
  enum { N = 600 };
  Samples samples = {.d = 2, .n = N, .theta = fixture_new(2 * N, sizeof(double))};
  Rng rng = fixture_rng(0, 8007);
  PriorFit fit = short_fit(1000);
  fit.hidden[0] = fit.hidden[1] = 64, fit.batch = 512, fit.learning_rate = 0.003;
  for (int n = 0; n < N; n++) {
    double u, wide[2];
    rng_uniform(&rng, 1, &u);
    rng_normal(&rng, 2, wide);
    samples.theta[n] = 3 * u * sin(16 * u) + 0.05 * wide[0];
    samples.theta[N + n] = 3 * u * cos(16 * u) + 0.05 * wide[1];
  }
  TrainingSamples training;
  CHECK_OK(training_samples_create(&memory, &fit, true, &samples, &training));
  double *z = fixture_new(2 * N, sizeof *z);
  for (int n = 0; n < training.training; n++)
    for (int i = 0; i < 2; i++) z[i * training.training + n] = (double)training.z[2 * n + i];
  Mixture mixture;
  Denoiser closed;
  Prior prior;
  CHECK_OK(mixture_fit(&memory, 2, training.training, z, 10, 3, rng_key(1, RNG_TEST), 0, &mixture));
  CHECK_OK(denoiser_mixture_create(&memory, &mixture, false, &closed));
  CHECK_OK(prior_fit(&memory, &prior_denoiser, &fit, &samples, &prior));
  const double gaussians = error_of(&fit, &training, &closed),
               learned = error_of(&fit, &training, prior.denoiser);
  CU_ASSERT(learned < gaussians - 0.03);
  free(z);
  free(samples.theta);
}

/* Returns the beginning of the report of a prior that is fitted. */
static void report_of(const PriorFit *fit, const Samples *samples, size_t size, char *out) {
  SCRATCH_ARENA(memory);
  Prior prior;
  char *text = NULL;
  size_t length;
  FILE *stream = open_memstream(&text, &length);
  CHECK_OK(prior_fit(&memory, &prior_denoiser, fit, samples, &prior));
  prior.ops->report(&prior, stream);
  fclose(stream);
  snprintf(out, size, "%s", text);
  free(text);
}

/* Checks the larger mixture: on a thin spiral held-out likelihood asks for more than 32 Gaussians. A network
 * that has hardly been trained corrects 32 of them no better, so the larger mixture replaces both; a trained
 * network has a lower error than the larger mixture. */
static void test_mixture_alone(void) {
  enum { N = 600 };
  Samples samples = {.d = 2, .n = N, .theta = fixture_new(2 * N, sizeof(double))};
  Rng rng = fixture_rng(0, 8010);
  char text[256];
  int components = 0;
  for (int n = 0; n < N; n++) {
    double u, wide[2];
    rng_uniform(&rng, 1, &u);
    rng_normal(&rng, 2, wide);
    samples.theta[n] = 3 * u * sin(16 * u) + 0.02 * wide[0];
    samples.theta[N + n] = 3 * u * cos(16 * u) + 0.02 * wide[1];
  }
  PriorFit fit = short_fit(5);
  report_of(&fit, &samples, sizeof text, text);
  CU_ASSERT(sscanf(text, "a mixture of %d alone", &components) == 1 && components > 32);
  fit.hidden[0] = fit.hidden[1] = 64, fit.batch = 512, fit.steps = 1500, fit.learning_rate = 0.003;
  report_of(&fit, &samples, sizeof text, text);
  CU_ASSERT(sscanf(text, "a network on a mixture of %d", &components) == 1 && components <= 32);
  free(samples.theta);
}

/* Checks that without observations the sampler returns the samples of the prior, to the bit. */
static void test_no_history(void) {
  SCRATCH_ARENA(memory);
  enum { DRAWS = 100 };
  const Likelihood gaussian = fixture_likelihood(1),
                   logistic = {.ops = likelihood_find("logistic"), .noise = 1};
  Mixture mixture = fixture_mixture(&memory, 2, 2, 1);
  Samples samples = draw_samples(&mixture, 500);
  PriorFit fit = short_fit(50);
  Prior prior;
  CHECK_OK(prior_fit(&memory, &prior_denoiser, &fit, &samples, &prior));
  double *theta = fixture_new(2 * DRAWS, sizeof *theta);
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = DRAWS, .lanes = DRAWS};
  prior.ops->sample(&prior, &rng, theta);
  const Likelihood *both[] = {&gaussian, &logistic};
  for (int i = 0; i < 2; i++) {
    History history = fixture_history(&memory, 2, 1, 0, 0, both[i]);
    double *draws = fixture_draw(sampler_find("localised"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
    CU_ASSERT(memcmp(theta, draws, 2 * DRAWS * sizeof *theta) == 0);
    free(draws);
  }
  free(theta);
  free(samples.theta);
}

/* Checks what `auto` leaves to the family. */
static void test_settle(void) {
  PriorFit fit = {0};
  prior_settle(&prior_denoiser, &fit, 2);
  CU_ASSERT(fit.hidden_count == 2 && fit.hidden[0] == 64 && fit.hidden[1] == 64);
  CU_ASSERT(fit.steps == 20000 && fit.batch == 1024);
  CHECK_NEAR(fit.learning_rate, 0.003, 0);
  fit = (PriorFit){.hidden_count = 1, .hidden = {7}, .steps = 3};
  prior_settle(&prior_diffusion, &fit, 2);
  CU_ASSERT(fit.hidden_count == 1 && fit.hidden[0] == 7 && fit.steps == 3 && fit.batch == 128);
}

/* Checks a file by another hand: every fault gives a sentence. */
static void test_bad_files(void) {
  SCRATCH_ARENA(memory);
  const char *path = "test_denoiser_bad.nc";
  static const struct {
    double scale, most, share, left;
    float weight;
    int inputs;
    const char *sentence;
  } cases[] = {{1, 2000, 1, 1.09, 0.5f, 3, NULL},
               {1, 2000, 0, 1.11, 0.5f, 3, NULL},
               {0, 2000, 1, 1, 0.5f, 3, "scale 0"},
               {1, -1, 1, 1, 0.5f, 3, "most_precision"},
               {1, 2000, 1.5, 1, 0.5f, 3, "network_share[0] is 1.5"},
               {1, 2000, 1, 1, INFINITY, 3, "not finite"},
               {1, 2000, 1, 1, 0.5f, 2, "weight_1"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static const char *const checks[] = {"check_count", "check_error", "check_claimed", "check_signal",
                                         "check_agreement"};
    StoreFile *file;
    Prior prior;
    int member, dim, bin, in;
    Mixture mixture = fixture_mixture(&memory, 1, 2, 1);
    const double zeros[DENOISER_BINS] = {0}, share[DENOISER_BINS] = {cases[i].share};
    const double bins[][DENOISER_BINS] = {{1}, {cases[i].left}, {cases[i].left}, {0}, {0}};
    float weights[3] = {cases[i].weight, 0.5f, 0.5f};
    CHECK_OK(store_create(path, &file));
    CHECK_OK(store_text_attribute(file, NULL, "prior", "denoiser"));
    CHECK_OK(store_text_attribute(file, NULL, "training_samples_sha256", "none"));
    CHECK_OK(store_int_attribute(file, "training_samples", 1));
    CHECK_OK(store_real_attribute(file, "most_precision", cases[i].most));
    CHECK_OK(store_dimension(file, "member", 1, &member));
    CHECK_OK(mixture_store_save(&mixture, file, &dim));
    CHECK_OK(store_dimension(file, "bin", DENOISER_BINS, &bin));
    CHECK_OK(store_dimension(file, "units_0", (size_t)cases[i].inputs, &in));
    CHECK_OK(store_write(file, "shift", STORE_DOUBLE, 1, &dim, "shift", "1", zeros));
    CHECK_OK(store_write(file, "scale", STORE_DOUBLE, 1, &dim, "scale", "1", &cases[i].scale));
    for (int k = 0; k < 5; k++) {
      CHECK_OK(store_write(file, checks[k], STORE_DOUBLE, 1, &bin, "check", "1", bins[k]));
    }
    CHECK_OK(store_write(file, "network_share", STORE_DOUBLE, 1, &bin, "share", "1", share));
    CHECK_OK(store_write(file, "weight_1", STORE_FLOAT, 3, (int[]){member, dim, in}, "w", "1", weights));
    CHECK_OK(store_write(file, "bias_1", STORE_FLOAT, 2, (int[]){member, dim}, "b", "1", weights + 1));
    CHECK_OK(store_finish(file, STATUS_OK));
    if (cases[i].sentence)
      CHECK_FAILS(prior_load(&memory, path, NULL, &prior), STATUS_INPUT, cases[i].sentence);
    else
      CHECK_OK(prior_load(&memory, path, NULL, &prior));
    if (!cases[i].sentence) CU_ASSERT((prior_doubt(&prior) != NULL) == (cases[i].left > 1.1));
  }
  unlink(path);
}

int main(void) {
  CU_TestInfo tests[] = {{"cases", test_cases},
                         {"network", test_network},
                         {"beyond the precision of training", test_beyond},
                         {"share of the network", test_shares},
                         {"learned mixture", test_learned_mixture},
                         {"corrects a mixture", test_corrects_mixture},
                         {"mixture alone", test_mixture_alone},
                         {"no history", test_no_history},
                         {"auto", test_settle},
                         {"bad files", test_bad_files},
                         CU_TEST_INFO_NULL};
  return harness_run("denoiser", tests);
}

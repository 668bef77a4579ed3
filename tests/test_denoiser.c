/* The learned denoiser: its cases, its network, its training and its files. */
#include "sampler_fixture.h"

#include "core/linalg.h"
#include "model/denoiser_cases.h"
#include "model/denoiser_network.h"
#include "model/denoiser_training.h"
#include "model/families.h"
#include "model/localisation.h"

#include <unistd.h>

enum { LANES = DENOISER_LANES, MOST = 3 };

/* n samples of a mixture in R^d. */
static Samples draw_samples(const Mixture *mixture, int n) {
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = (uint32_t)n, .round = 8000};
  Samples samples = {.d = mixture->d, .n = n};
  samples.theta = fixture_new((size_t)mixture->d * (size_t)n, sizeof *samples.theta);
  mixture_sample(mixture, &rng, samples.theta);
  return samples;
}

static PriorFit short_fit(int steps) {
  return (PriorFit){.hidden_count = 2,
                    .hidden = {32, 32},
                    .steps = steps,
                    .batch = 256,
                    .learning_rate = 0.01,
                    .seed = FIXTURE_SEED,
                    .replicate = 2};
}

/* The moments of many cases of z ~ N(0, I): M is orthogonally invariant with eigenvalues in range, and u has
 * mean 0, variance 1 and no correlation with m, by the choice of S. Within 5 standard errors. */
static void test_cases(void) {
  enum { D = 3, TILES = 300, N = TILES * LANES };
  Mixture mixture = fixture_mixture(D, 1, 0);
  Samples samples = draw_samples(&mixture, 20000);
  TrainingSamples training;
  DenoiserCases cases;
  double sum_error = 0, squares = 0, product = 0, product_squares = 0, equal = 0, first = 0;
  Rng rng = fixture_rng(0, 8001);
  PriorFit fit = short_fit(1);
  for (int i = 0; i < D * samples.n; i++) samples.theta[i] = 0;
  RngLanes normals = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .draws = 1, .lanes = 20000, .round = 8002};
  rng_lanes_normal(&normals, D, samples.theta);
  CHECK_OK(training_samples_create(&fit, true, &samples, &training));
  CHECK_OK(denoiser_cases_create(D, &cases));
  for (int tile = 0; tile < TILES; tile++) {
    denoiser_cases_draw(&cases, &training, false, &rng);
    for (int n = 0; n < LANES; n++) {
      const double *u = cases.basis + n;
      for (int k = 0; k < D * D; k++) {
        double dot = 0;
        for (int i = 0; i < D; i++) dot += u[(i * D + k / D) * LANES] * u[(i * D + k % D) * LANES];
        CHECK_NEAR(dot, k / D == k % D, 1e-9);
      }
      first += u[0] * u[0];
      for (int i = 0; i < D; i++) {
        const double q = cases.eigenvalue[i * LANES + n], error = cases.error[i * LANES + n],
                     along = cases.mean[i * LANES + n] * sqrt((1 + q) / q) * error;
        CU_ASSERT(q >= 0.999 * DENOISER_LEAST_PRECISION && q <= 1.001 * DENOISER_MOST_PRECISION);
        sum_error += error, squares += error * error, product += along, product_squares += along * along;
      }
      equal += cases.eigenvalue[n] == cases.eigenvalue[LANES + n];
    }
  }
  CHECK_NEAR(sum_error / (D * N), 0, 5 / sqrt(D * N));
  CHECK_NEAR(squares / (D * N), 1, 5 * sqrt(2.0 / (D * N)));
  CHECK_NEAR(product / (D * N), 0, 5 * sqrt(product_squares) / (D * N));
  CHECK_NEAR(first / N, 1.0 / D, 5 * 0.3 / sqrt(N)); /* standard deviation of a squared coordinate: 0.298 */
  CHECK_NEAR(equal / N, 0.35 + 0.30 / 3, 5 * 0.5 / sqrt(N)); /* multiples of I, and a floor above both */
  denoiser_cases_destroy(&cases);
  training_samples_destroy(&training);
  free(samples.theta);
  mixture_destroy(&mixture);
}

/* Random M = U diag(q) U' and b for LANES lanes. */
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
  linalg_eigen_lanes(d, LANES, precision, basis, eigenvalue);
  for (int k = 0; k < d * LANES; k++) eigenvalue[k] = fmax(eigenvalue[k], 0);
}

/* D and C from the formulas, one lane at a time with matrices written out, the network in double precision.
 * Floats: 1e-5. */
static void expected_moments(const DenoiserNetwork *network, const double *weights, const double *basis,
                             const double *eigenvalue, const double *vector, int n, double *mean,
                             double *covariance) {
  const int d = network->d, inputs = network->shape.width[0];
  double s[MOST * MOST] = {0}, root[MOST * MOST] = {0}, half_log[MOST * MOST] = {0}, x[16], h[MOST],
                  slope[MOST * MOST], row[16];
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      for (int k = 0; k < d; k++) {
        const double q = eigenvalue[k * LANES + n],
                     uu = basis[(i * d + k) * LANES + n] * basis[(j * d + k) * LANES + n];
        s[i * d + j] += uu / (1 + q);
        root[i * d + j] += uu / sqrt(1 + q);
        half_log[i * d + j] -= 0.5 * uu * log1p(q);
      }
  int at = d;
  for (int i = 0; i < d; i++) {
    x[i] = 0;
    for (int j = 0; j < d; j++) x[i] += s[i * d + j] * vector[j * LANES + n];
    for (int j = i; j < d; j++) x[at++] = half_log[i * d + j];
  }
  CU_ASSERT_EQUAL(at, inputs);
  network_reference_forward(&network->shape, weights, x, h);
  for (int i = 0; i < d; i++) {
    double unit[MOST] = {0};
    unit[i] = 1;
    network_reference_vjp(&network->shape, weights, x, unit, row);
    memcpy(slope + i * d, row, (size_t)d * sizeof *row);
  }
  double moved[MOST * MOST] = {0};
  for (int i = 0; i < d; i++) {
    mean[i] = x[i];
    for (int j = 0; j < d; j++) {
      mean[i] += root[i * d + j] * h[j];
      for (int k = 0; k < d; k++)
        for (int l = 0; l < d; l++) moved[i * d + j] += root[i * d + k] * slope[k * d + l] * s[l * d + j];
    }
  }
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++)
      covariance[i * d + j] = s[i * d + j] + 0.5 * (moved[i * d + j] + moved[j * d + i]);
}

/* With the loss of a bin in place of the Jacobian: the same D to the bit, and C that many times S. */
static void check_loss(const DenoiserNetwork *network, const double *basis, const double *eigenvalue,
                       const double *vector, const double *mean, double *workspace) {
  static double same[MOST * LANES], covariance[MOST * MOST * LANES];
  const int d = network->d;
  int rescues[LANES] = {0};
  double loss[DENOISER_BINS];
  for (int k = 0; k < DENOISER_BINS; k++) loss[k] = 0.5 + k;
  denoiser_network_moments(network, loss, LANES, basis, eigenvalue, vector, same, covariance, rescues,
                           workspace);
  CU_ASSERT(memcmp(same, mean, (size_t)(d * LANES) * sizeof *mean) == 0);
  for (int n = 0; n < LANES; n++) {
    double log_determinant = 0;
    for (int k = 0; k < d; k++) log_determinant += log1p(eigenvalue[k * LANES + n]);
    int bin = 0;
    while (denoiser_network_bin_end(d, 2000, bin) < log_determinant) bin++;
    CU_ASSERT_EQUAL(denoiser_network_bin(d, 2000, log_determinant), bin);
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) {
        double s = 0;
        for (int k = 0; k < d; k++)
          s += basis[(i * d + k) * LANES + n] * basis[(j * d + k) * LANES + n] /
               (1 + eigenvalue[k * LANES + n]);
        CHECK_NEAR(covariance[(i * d + j) * LANES + n], loss[bin] * s, 1e-12);
      }
  }
}

static void test_network(void) {
  for (int d = 1; d <= MOST; d++) {
    static double basis[MOST * MOST * LANES], eigenvalue[MOST * LANES], vector[MOST * LANES],
        mean[MOST * LANES], covariance[MOST * MOST * LANES];
    float parameters[2000];
    double weights[2000];
    int rescues[LANES] = {0};
    DenoiserNetwork network = {
        .d = d, .shape = denoiser_network_shape(d, 2, (int[]){24, 20}), .most_precision = 2000};
    const size_t count = network_parameters(&network.shape);
    Rng rng = fixture_rng(0, 8003);
    ASSERT(count <= 2000);
    rng_normal(&rng, (int)count, weights);
    for (size_t i = 0; i < count; i++) weights[i] = parameters[i] = (float)(0.3 * weights[i]);
    network.parameters = parameters;
    double *workspace = fixture_new(denoiser_network_workspace(&network.shape, d), sizeof *workspace);
    random_evidence(d, 8004, basis, eigenvalue, vector);
    denoiser_network_moments(&network, NULL, LANES, basis, eigenvalue, vector, mean, covariance, rescues,
                             workspace);
    for (int n = 0; n < LANES; n++) {
      double exact_mean[MOST], exact[MOST * MOST];
      expected_moments(&network, weights, basis, eigenvalue, vector, n, exact_mean, exact);
      CU_ASSERT_EQUAL(rescues[n], 0);
      for (int i = 0; i < d; i++) CHECK_NEAR(mean[i * LANES + n], exact_mean[i], 1e-5);
      for (int k = 0; k < d * d; k++) CHECK_NEAR(covariance[k * LANES + n], exact[k], 1e-5);
    }
    check_loss(&network, basis, eigenvalue, vector, mean, workspace);
    free(workspace);
  }
}

/* Beyond the eigenvalues of training the inputs stay at the edge and the lane is counted; the rest of the
 * formula goes on: D tends to M^-1 b. Fewer lanes than LANES give the same bits. */
static void test_beyond(void) {
  static double basis[3] = {1, 1, 1}, eigenvalue[3] = {1000, 2e9, 0}, vector[3] = {1000, 2e9, 0}, mean[3],
                covariance[3];
  float parameters[400];
  double weights[400];
  int rescues[3] = {0};
  DenoiserNetwork network = {
      .d = 1, .shape = denoiser_network_shape(1, 1, (int[]){8}), .most_precision = 2000};
  const int count = (int)network_parameters(&network.shape);
  Rng rng = fixture_rng(0, 8005);
  rng_normal(&rng, count, weights);
  for (int i = 0; i < count; i++) parameters[i] = (float)weights[i];
  network.parameters = parameters;
  double *workspace = fixture_new(denoiser_network_workspace(&network.shape, 1), sizeof *workspace);
  denoiser_network_moments(&network, NULL, 3, basis, eigenvalue, vector, mean, covariance, rescues,
                           workspace);
  CU_ASSERT(rescues[0] == 0 && rescues[1] == 1 && rescues[2] == 0);
  CHECK_NEAR(mean[1], 1, 1e-3);
  CHECK_NEAR(covariance[1] * 2e9, 1, 1e-3);
  double first_mean = mean[0];
  denoiser_network_moments(&network, NULL, 1, basis, eigenvalue, vector, mean, covariance, rescues,
                           workspace);
  CU_ASSERT(first_mean == mean[0]);
  free(workspace);
}

/* What is learned from samples of a mixture is near its closed form: over new cases the mean squared error of
 * h is 0.012 (measured), where that of h = 0, the linear estimate, is 0.09.
 * The self-check knows the same without the closed form: variance and slope are right within 4% and 10%. */
static void test_learned_mixture(void) {
  enum { N = 10000, TILES = 200 };
  Mixture cross = fixture_cross();
  Samples samples = draw_samples(&cross, N);
  PriorFit fit = short_fit(3000);
  fit.hidden[0] = fit.hidden[1] = 64, fit.batch = 512;
  TrainingSamples training;
  Denoiser exact;
  Prior prior;
  DenoiserCases cases;
  DenoiserCheck check;
  CHECK_OK(prior_fit(&prior_denoiser, &fit, &samples, &prior));
  CHECK_OK(denoiser_mixture_create(&cross, &exact));
  CHECK_OK(training_samples_create(&fit, true, &samples, &training));
  CHECK_OK(denoiser_cases_create(2, &cases));
  double *workspace = fixture_new(exact.workspace + prior.denoiser->workspace, sizeof *workspace);
  double excess = 0, signal = 0, vector[2 * LANES], right[2 * LANES], learned[2 * LANES],
         covariance[4 * LANES], difference[2 * LANES];
  int rescues[LANES] = {0};
  Rng rng = fixture_rng(0, 8006);
  for (int tile = 0; tile < TILES; tile++) {
    denoiser_cases_draw(&cases, &training, true, &rng);
    for (int k = 0; k < 2 * LANES; k++) difference[k] = (1 + cases.eigenvalue[k]) * cases.mean[k];
    linalg_multiply_lanes(2, LANES, cases.basis, difference, vector);
    exact.moments(&exact, LANES, cases.basis, cases.eigenvalue, vector, right, covariance, rescues,
                  workspace);
    prior.denoiser->moments(prior.denoiser, LANES, cases.basis, cases.eigenvalue, vector, learned, covariance,
                            rescues, workspace);
    for (int k = 0; k < 2 * LANES; k++) learned[k] -= right[k];
    linalg_multiply_transposed_lanes(2, LANES, cases.basis, learned, difference);
    linalg_multiply_transposed_lanes(2, LANES, cases.basis, right, vector);
    for (int k = 0; k < 2 * LANES; k++) {
      excess += (1 + cases.eigenvalue[k]) * pow(difference[k], 2) / (2 * LANES * TILES);
      signal += (1 + cases.eigenvalue[k]) * pow(vector[k] - cases.mean[k], 2) / (2 * LANES * TILES);
    }
  }
  CU_ASSERT(excess < 0.018 && signal > 0.08);
  CHECK_OK(denoiser_check(&fit, &training, prior.denoiser, &check));
  double error = 0, claimed = 0, agreement = 0, sum = 0, count = 0;
  for (int k = 0; k < DENOISER_BINS; k++) {
    error += check.error[k], claimed += check.claimed[k], count += check.count[k];
    agreement += check.agreement[k], sum += check.signal[k];
  }
  CHECK_NEAR(count, 32768, 0);
  CHECK_NEAR(claimed / error, 1, 0.04);
  CHECK_NEAR(agreement / sum, 1, 0.1);
  free(workspace);
  free(samples.theta);
  denoiser_cases_destroy(&cases);
  training_samples_destroy(&training);
  denoiser_mixture_destroy(&exact);
  prior_destroy(&prior);
  mixture_destroy(&cross);
}

/* Without observations the sampler gives the samples of the prior, to the bit. */
static void test_no_history(void) {
  enum { DRAWS = 100 };
  const Likelihood gaussian = fixture_likelihood(1),
                   logistic = {.ops = likelihood_find("logistic"), .noise = 1};
  Mixture mixture = fixture_mixture(2, 2, 1);
  Samples samples = draw_samples(&mixture, 500);
  PriorFit fit = short_fit(50);
  Prior prior;
  CHECK_OK(prior_fit(&prior_denoiser, &fit, &samples, &prior));
  double *theta = fixture_new(2 * DRAWS, sizeof *theta);
  RngLanes rng = {.key = rng_key(FIXTURE_SEED, RNG_TEST), .round = 7, .draws = DRAWS, .lanes = DRAWS};
  prior.ops->sample(&prior, &rng, theta);
  const Likelihood *both[] = {&gaussian, &logistic};
  for (int i = 0; i < 2; i++) {
    History history = fixture_history(2, 1, 0, 0, both[i]);
    double *draws = fixture_draw(sampler_find("localised"), &prior, &history, 0, DRAWS, 0, NULL, NULL);
    CU_ASSERT(memcmp(theta, draws, 2 * DRAWS * sizeof *theta) == 0);
    free(draws);
    history_destroy(&history);
  }
  free(theta);
  free(samples.theta);
  prior_destroy(&prior);
  mixture_destroy(&mixture);
}

/* What `auto` leaves to the family. */
static void test_settle(void) {
  PriorFit fit = {0};
  prior_settle(&prior_denoiser, &fit, 2);
  CU_ASSERT(fit.hidden_count == 2 && fit.hidden[0] == 64 && fit.hidden[1] == 64);
  CU_ASSERT(fit.steps == 20000 && fit.batch == 1024);
  CHECK_NEAR(fit.learning_rate, 0.003, 0);
  fit = (PriorFit){.hidden_count = 1, .hidden = {7}, .steps = 3};
  prior_settle(&prior_diffusion, &fit, 2);
  CU_ASSERT(fit.hidden_count == 1 && fit.hidden[0] == 7 && fit.steps == 3 && fit.batch == 256);
}

/* A file by another hand: every fault is a sentence. */
static void test_bad_files(void) {
  const char *path = "test_denoiser_bad.nc";
  static const struct {
    double scale, most;
    float weight;
    int inputs;
    const char *sentence;
  } cases[] = {{1, 2000, 0.5f, 2, NULL},
               {0, 2000, 0.5f, 2, "scale 0"},
               {1, -1, 0.5f, 2, "most_precision"},
               {1, 2000, INFINITY, 2, "not finite"},
               {1, 2000, 0.5f, 3, "weight_1"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static const char *const checks[] = {"check_count", "check_error", "check_claimed", "check_signal",
                                         "check_agreement"};
    StoreFile *file;
    Prior prior;
    int member, dim, bin, in, id;
    double zeros[DENOISER_BINS] = {0};
    float weights[3] = {cases[i].weight, 0.5f, 0.5f};
    CHECK_OK(store_create(path, STORE_NETCDF4, &file));
    CHECK_OK(store_text_attribute(file, NULL, "prior", "denoiser"));
    CHECK_OK(store_text_attribute(file, NULL, "training_samples_sha256", "none"));
    CHECK_OK(store_int_attribute(file, NULL, "training_samples", 1));
    CHECK_OK(store_real_attribute(file, NULL, "most_precision", cases[i].most));
    CHECK_OK(store_dimension(file, "member", 1, &member));
    CHECK_OK(store_dimension(file, "dim", 1, &dim));
    CHECK_OK(store_dimension(file, "bin", DENOISER_BINS, &bin));
    CHECK_OK(store_dimension(file, "units_0", (size_t)cases[i].inputs, &in));
    CHECK_OK(store_variable(file, "shift", STORE_DOUBLE, 1, &dim, "shift", "1", &id));
    CHECK_OK(store_put(file, id, zeros));
    CHECK_OK(store_variable(file, "scale", STORE_DOUBLE, 1, &dim, "scale", "1", &id));
    CHECK_OK(store_put(file, id, &cases[i].scale));
    for (int k = 0; k < 5; k++) {
      CHECK_OK(store_variable(file, checks[k], STORE_DOUBLE, 1, &bin, "check", "1", &id));
      CHECK_OK(store_put(file, id, zeros));
    }
    CHECK_OK(store_variable(file, "weight_1", STORE_FLOAT, 3, (int[]){member, dim, in}, "w", "1", &id));
    CHECK_OK(store_put(file, id, weights));
    CHECK_OK(store_variable(file, "bias_1", STORE_FLOAT, 2, (int[]){member, dim}, "b", "1", &id));
    CHECK_OK(store_put(file, id, weights + 1));
    CHECK_OK(store_commit(file));
    if (cases[i].sentence)
      CHECK_FAILS(prior_load(path, NULL, &prior), STATUS_INPUT, cases[i].sentence);
    else
      CHECK_OK(prior_load(path, NULL, &prior));
    prior_destroy(&prior);
  }
  unlink(path);
}

int main(void) {
  CU_TestInfo tests[] = {{"cases", test_cases},
                         {"network", test_network},
                         {"beyond the precision of training", test_beyond},
                         {"learned mixture", test_learned_mixture},
                         {"no history", test_no_history},
                         {"auto", test_settle},
                         {"bad files", test_bad_files},
                         CU_TEST_INFO_NULL};
  return harness_run("denoiser", tests);
}

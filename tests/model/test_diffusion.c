/* Training and the learned prior: against closed forms for Gaussian data, the exact posterior mean of the
 * noise for a mixture, and the plain network. Seeds are fixed, so a test that passes keeps passing;
 * tolerances allow for what another seed would give. */
#include "harness.h"
#include "model/network/network_plain.h"

#include "core/arena.h"
#include "model/denoiser/denoiser_chain.h"
#include "model/network/network_kernel.h"
#include "model/prior/families.h"
#include "model/prior/training.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const PriorFit standard_fit = {.schedule.stages = 100,
                                      .schedule.alpha = 0.97,
                                      .standardise = true,
                                      .hidden_count = 2,
                                      .hidden = {20, 20},
                                      .steps = 1000,
                                      .batch = 128,
                                      .patience = 10,
                                      .learning_rate = 0.02,
                                      .seed = 7};

static double *doubles(size_t n) {
  double *out;
  CU_ASSERT_FATAL(memory_new((void **)&out, n, sizeof *out) == STATUS_OK);
  return out;
}

/* ---- Data ---- */

enum { N = 10000 };

static const double CROSS[2] = {0.99, -0.9}; /* correlations of the two arms, each with weight 1/2 */

/* Draws theta[d, n] of the cross (d = 2) or of N(0, I). */
static Samples draw_samples(int d, int n, bool cross) {
  Samples samples = {d, n, doubles((size_t)(d * n))};
  double *u = doubles((size_t)n);
  Rng rng = {.key = rng_key(11, RNG_TEST)};
  rng_uniform(&rng, n, u);
  rng_normal(&rng, d * n, samples.theta);
  for (int j = 0; cross && j < n; j++) {
    double c = CROSS[u[j] < 0.5];
    samples.theta[n + j] = c * samples.theta[j] + sqrt(1 - c * c) * samples.theta[n + j];
  }
  free(u);
  return samples;
}

/* Computes E[eps | s] for the cross: minus sqrt(1 - alpha_bar) times the score of the diffused mixture. */
static void cross_noise(double bar, const double s[2], double eps[2]) {
  double total = 0, score[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    double c = bar * CROSS[k], determinant = 1 - c * c; /* covariance [[1, c], [c, 1]] */
    double p[2] = {(s[0] - c * s[1]) / determinant, (s[1] - c * s[0]) / determinant};
    double weight = exp(-0.5 * (s[0] * p[0] + s[1] * p[1])) / sqrt(determinant);
    total += weight;
    for (int i = 0; i < 2; i++) score[i] -= weight * p[i];
  }
  for (int i = 0; i < 2; i++) eps[i] = -sqrt(1 - bar) * score[i] / total;
}

/* ---- Training ---- */

/* Mean squared error per coordinate, on fresh s_t of `samples`, of the predicted noise itself and of a given
 * posterior mean of it. */
typedef struct {
  double loss, bayes, excess;
} Errors;

static Errors stage_errors(const TrainingSetup *setup, const Samples *fresh, int t, const float *parameters,
                           void (*exact)(double bar, const double *s, double *eps)) {
  enum { CHUNK = 64 };
  int d = fresh->d, n = fresh->n / CHUNK * CHUNK;
  double bar = setup->schedule.alpha_bar[t], *noise = doubles((size_t)(d * n));
  Errors sum = {0, 0, 0};
  Rng rng = {.key = rng_key(12, RNG_TEST), .run = (uint32_t)t};
  rng_normal(&rng, d * n, noise);
  for (int first = 0; first < n; first += CHUNK) {
    float x[2 * CHUNK], y[2 * CHUNK];
    for (int i = 0; i < d; i++)
      for (int j = 0; j < CHUNK; j++)
        x[i * CHUNK + j] =
            (float)(sqrt(bar) * (fresh->theta[i * fresh->n + first + j] - setup->samples.shift[i]) /
                        setup->samples.scale[i] +
                    sqrt(1 - bar) * noise[i * n + first + j]);
    network_forward(&setup->shape, parameters, CHUNK, x, y, setup->workspace);
    for (int j = 0; j < CHUNK; j++) {
      double s[2] = {0, 0}, best[2] = {0, 0};
      for (int i = 0; i < d; i++) s[i] = x[i * CHUNK + j];
      exact(bar, s, best);
      for (int i = 0; i < d; i++) {
        double eps = noise[i * n + first + j], found = y[i * CHUNK + j];
        sum.loss += (found - eps) * (found - eps) / (d * n);
        sum.bayes += (best[i] - eps) * (best[i] - eps) / (d * n);
        sum.excess += (found - best[i]) * (found - best[i]) / (d * n);
      }
    }
  }
  free(noise);
  return sum;
}

static void standard_noise_1d(double bar, const double *s, double *eps) { eps[0] = sqrt(1 - bar) * s[0]; }

/* Checks the loss for data 3 + N(0, 0.1^2), standardised: the best predictor is sqrt(1 - alpha_bar) s and its
 * error alpha_bar. What training adds is below 0.006; the reported loss has a standard error of sqrt(2 /
 * 2048) = 3% of itself, and three standard errors are allowed. */
static void test_gaussian_loss(void) {
  SCRATCH_ARENA(memory);
  Samples samples = draw_samples(1, N, false), fresh = draw_samples(1, 4 * N, false);
  for (int j = 0; j < N; j++) samples.theta[j] = 3 + 0.1 * samples.theta[j];
  for (int j = 0; j < 4 * N; j++) fresh.theta[j] = 3 + 0.1 * fresh.theta[j];
  TrainingSetup setup;
  CHECK_OK(training_create(&memory, &standard_fit, &samples, &setup));
  CHECK_NEAR(setup.samples.shift[0], 3, 0.005);
  CHECK_NEAR(setup.samples.scale[0], 0.1, 0.005);
  for (int i = 0, stages[] = {1, 10, 40, 100}; i < 4; i++) {
    float parameters[600];
    double loss, bar = pow(0.97, stages[i]);
    training_stage(&setup, stages[i], parameters, &loss);
    Errors errors = stage_errors(&setup, &fresh, stages[i], parameters, standard_noise_1d);
    CHECK_NEAR(errors.excess, 0, 0.006);
    CHECK_NEAR(loss, bar, 0.1 * bar + 0.006);
  }
  free(samples.theta), free(fresh.theta);
}

/* Checks the loss for the cross. An independent NumPy implementation gave 0.79 and 0.046 per coordinate at t
 * = 1 and 100. The reported loss has a standard error of sqrt(2 / 4096) = 2.2% of itself; 0.03 and 0.004 are
 * one and a half to four standard errors. The excess of training over the exact predictor, which a held-out
 * set cannot blur, is 2% of the loss. */
static void test_cross_loss(void) {
  SCRATCH_ARENA(memory);
  Samples samples = draw_samples(2, N, true), fresh = draw_samples(2, 8 * N, true);
  TrainingSetup setup;
  CHECK_OK(training_create(&memory, &standard_fit, &samples, &setup));
  float parameters[600];
  for (int i = 0, stages[] = {1, 10, 35, 100}; i < 4; i++) {
    double loss;
    training_stage(&setup, stages[i], parameters, &loss);
    Errors errors = stage_errors(&setup, &fresh, stages[i], parameters, cross_noise);
    if (stages[i] == 1) CHECK_NEAR(loss, 0.79, 0.03);
    if (stages[i] == 100) CHECK_NEAR(loss, 0.046, 0.004);
    CHECK_NEAR(loss, errors.loss, 0.07 * errors.loss);
    CHECK_NEAR(errors.excess, 0, 0.02 * errors.bayes + 0.002);
  }
  free(samples.theta), free(fresh.theta);
}

/* Checks few samples: a constant coordinate has a scale of 0 up to rounding; few samples train to something
 * finite. */
static void test_few_samples(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = standard_fit;
  fit.steps = 30;
  for (int i = 0, counts[] = {1, 2, 3, 9, 11, 100}; i < 6; i++) {
    Samples samples = draw_samples(2, counts[i], false);
    for (int j = 0; j < counts[i]; j++) samples.theta[j] = 5;
    TrainingSetup setup;
    float parameters[600];
    double loss;
    CHECK_OK(training_create(&memory, &fit, &samples, &setup));
    CU_ASSERT(setup.samples.scale[0] > 0 && setup.samples.scale[0] < 1e-11);
    CU_ASSERT_EQUAL(setup.samples.shift[0], 5);
    training_stage(&setup, 3, parameters, &loss);
    CU_ASSERT(isfinite(loss) && loss > 0 && loss < 10);
    free(samples.theta);
  }
  Samples none = {2, 0, NULL};
  TrainingSetup setup;
  CHECK_FAILS(training_create(&memory, &fit, &none, &setup), STATUS_INPUT, "no samples");
}

/* Checks that the best is kept: with patience of one check and a learning rate that only does harm, the start
 * is kept and its loss reported. */
static void test_best_is_kept(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = standard_fit;
  Samples samples = draw_samples(1, 500, false);
  float untrained[600], trained[600];
  double start, end;
  TrainingSetup setup;
  fit.patience = 1, fit.learning_rate = 1e-30;
  CHECK_OK(training_create(&memory, &fit, &samples, &setup));
  training_stage(&setup, 5, untrained, &start);
  fit.learning_rate = 3;
  CHECK_OK(training_create(&memory, &fit, &samples, &setup));
  training_stage(&setup, 5, trained, &end);
  CU_ASSERT(end <= start);
  free(samples.theta);
}

/* ---- Prior ---- */

static size_t part_size(const PriorFit *fit, int d) { return prior_diffusion.part_size(fit, d); }

/* Fits parts[T, part_size] in an order that must not matter. */
static double *fit_parts(const PriorFit *fit, const Samples *samples) {
  size_t size = part_size(fit, samples->d);
  int count = prior_diffusion.parts(fit);
  double *parts = doubles((size_t)count * size);
  for (int i = count - 1; i >= 0; i--)
    CHECK_OK(prior_diffusion.fit_part(fit, &(FitSource){.samples = samples}, i, parts + (size_t)i * size));
  return parts;
}

static void test_parts_repeat(void) {
  enum { GROUP = 4 };
  PriorFit fit = standard_fit, other = standard_fit;
  fit.steps = other.steps = 20;
  other.replicate = 1;
  Samples samples = draw_samples(2, 300, true);
  size_t size = part_size(&fit, 2), used = TRAINING_GROUP * training_stage_values(&fit, 2) * sizeof(double);
  double *all = fit_parts(&fit, &samples), *again = doubles(size);
  CHECK_OK(prior_diffusion.fit_part(&fit, &(FitSource){.samples = &samples}, GROUP, again));
  CU_ASSERT(!memcmp(all + GROUP * size, again, used));
  CU_ASSERT(memcmp(all + (GROUP - 1) * size, again, used) != 0);
  CHECK_OK(prior_diffusion.fit_part(&other, &(FitSource){.samples = &samples}, GROUP, again));
  CU_ASSERT(memcmp(all + GROUP * size, again, used) != 0);
  free(all), free(again), free(samples.theta);
}

static Prior assembled(Arena *memory, const PriorFit *fit, const Samples *samples, const double *parts) {
  Prior prior = {.memory = memory, .ops = &prior_diffusion, .d = samples->d};
  CHECK_OK(prior_diffusion.assemble(&prior, fit, &(FitSource){.samples = samples}, parts));
  return prior;
}

/* Checks that the chain's noise and its vector-Jacobian product are those of the plain network of that stage,
 * for any number of lanes. */
static void test_noise(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = standard_fit;
  fit.steps = 50, fit.schedule.stages = 4, fit.hidden_count = 3, fit.hidden[2] = 7;
  Samples samples = draw_samples(2, 300, true);
  double *parts = fit_parts(&fit, &samples);
  Prior prior = assembled(&memory, &fit, &samples, parts);
  NetworkShape shape = network_shape(2, 3, fit.hidden, 2);
  for (int i = 0, counts[] = {1, 63, 64, 65, 200}; i < 5; i++) {
    int lanes = counts[i], t = 1 + i % 4;
    double s[400], v[400], eps[400], out[400], lane_s[2], lane_v[2], expected[2];
    Rng rng = {.key = rng_key(13, RNG_TEST), .run = (uint32_t)i};
    rng_normal(&rng, 2 * lanes, s);
    rng_normal(&rng, 2 * lanes, v);
    prior.chain->noise(prior.chain, t, lanes, s, eps);
    prior.chain->noise_vjp(prior.chain, t, lanes, s, v, out);
    const double *parameters = parts + (size_t)(t - 1) * training_stage_values(&fit, 2);
    for (int n = 0; n < lanes; n++) {
      for (int k = 0; k < 2; k++) lane_s[k] = s[k * lanes + n], lane_v[k] = v[k * lanes + n];
      network_plain_forward(&shape, parameters, lane_s, expected);
      for (int k = 0; k < 2; k++) CHECK_NEAR(eps[k * lanes + n], expected[k], 1e-5);
      network_plain_vjp(&shape, parameters, lane_s, lane_v, expected);
      for (int k = 0; k < 2; k++) CHECK_NEAR(out[k * lanes + n], expected[k], 1e-5);
    }
  }
  free(parts), free(samples.theta);
}

enum { DRAWS = 8192 };

static RngLanes draw_lanes(void) {
  return (RngLanes){.key = rng_key(17, RNG_TEST), .draws = 1, .lanes = DRAWS};
}

typedef struct {
  double mean[2], second[3], agree; /* E theta_i; E theta_1^2, theta_1 theta_2, theta_2^2; P(same sign) */
} Moments;

static Moments moments(const double *theta) {
  Moments m = {{0, 0}, {0, 0, 0}, 0};
  for (int n = 0; n < DRAWS; n++) {
    double a = theta[n], b = theta[DRAWS + n];
    m.mean[0] += a / DRAWS, m.mean[1] += b / DRAWS;
    m.second[0] += a * a / DRAWS, m.second[1] += a * b / DRAWS, m.second[2] += b * b / DRAWS;
    m.agree += (a * b > 0) / (double)DRAWS;
  }
  return m;
}

static void cross_chain_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  for (int n = 0; n < lanes; n++) {
    double found[2];
    cross_noise(chain->schedule.alpha_bar[t], (double[]){s[n], s[lanes + n]}, found);
    eps[n] = found[0], eps[lanes + n] = found[1];
  }
}

/* Checks unconditional draws from the learned cross. 100 stages lose about a tenth of the variance, since
 * beta_tilde is the reverse variance of a single point, so the variances are compared with those of the chain
 * that has the exact noise and uses the same random numbers. Standard errors are 0.011 for a mean, 0.013 for
 * a variance, 0.02 for the covariance and 0.0055 for the share of draws whose coordinates agree in sign
 * (which is sum_k 1/2 (1/2 + asin(c_k) / pi) = 0.549 for the cross); tolerances are two to four of them, and
 * leave the rest for errors of learning. */
static void check_moments(const Chain *learned, const double *theta, double *exact_theta, double *scratch) {
  SCRATCH_ARENA(memory);
  Chain exact;
  RngLanes rng = draw_lanes();
  CHECK_OK(denoiser_chain_create(&memory, &exact, 2, &(ScheduleRule){.stages = 100, .alpha = 0.97},
                                 LAST_STAGE_REPAIRED));
  exact.noise = cross_chain_noise;
  for (int i = 0; i < 2; i++) exact.shift[i] = learned->shift[i], exact.scale[i] = learned->scale[i];
  denoiser_chain_sample(&exact, &rng, exact_theta, scratch);
  Moments found = moments(theta), expected = moments(exact_theta);
  double agree = 0;
  for (int k = 0; k < 2; k++) agree += 0.5 * (0.5 + asin(CROSS[k]) / M_PI);
  for (int i = 0; i < 2; i++) CHECK_NEAR(found.mean[i], 0, 0.05);
  for (int i = 0; i < 3; i++) CHECK_NEAR(found.second[i], expected.second[i], 0.06);
  CHECK_NEAR(found.agree, agree, 0.025);
}

/* Checks that a prior that is written, read and drawn from again gives the same bits, then what is said of a
 * damaged file. */
static void check_file(const Prior *prior, const double *theta) {
  const char *path = "test_diffusion.nc";
  StoreFile *file;
  SCRATCH_ARENA(memory);
  Prior copy = {.memory = &memory, .ops = &prior_diffusion};
  CHECK_OK(store_create(path, &file));
  CHECK_OK(prior_diffusion.save(prior, file));
  CHECK_OK(store_finish(file, STATUS_OK));
  CHECK_OK(store_open(path, &file));
  CHECK_OK(prior_diffusion.load(&copy, file, NULL));
  store_abandon(file);
  double *again = doubles(2 * DRAWS);
  RngLanes rng = draw_lanes();
  prior_diffusion.sample(&copy, &rng, again);
  CU_ASSERT(!memcmp(theta, again, 2 * DRAWS * sizeof *again));
  CU_ASSERT_EQUAL(copy.d, 2);
  CU_ASSERT(!memcmp(prior->chain->loss, copy.chain->loss, 101 * sizeof *copy.chain->loss));
  free(again);
  unlink(path);
}

static void test_prior(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = standard_fit;
  Samples samples = draw_samples(2, N, true);
  double *parts = fit_parts(&fit, &samples), *theta = doubles(2 * DRAWS), *whole = doubles(2 * DRAWS),
         *scratch = doubles(4 * DRAWS);
  Prior prior = assembled(&memory, &fit, &samples, parts);
  RngLanes rng = draw_lanes(), rng_whole = draw_lanes();
  prior_diffusion.sample(&prior, &rng, theta);
  denoiser_chain_sample(prior.chain, &rng_whole, whole, scratch);
  CU_ASSERT(!memcmp(theta, whole, 2 * DRAWS * sizeof *theta));
  CU_ASSERT_EQUAL(rng.position, rng_whole.position);
  check_moments(prior.chain, theta, whole, scratch);
  for (int t = 2; t <= 100; t++) CU_ASSERT(prior.chain->loss[t] < prior.chain->loss[t - 1] * 1.2);
  check_file(&prior, theta);
  free(parts), free(theta), free(whole), free(scratch), free(samples.theta);
}

/* Checks a file by another hand: every fault gives a sentence. */
static void test_bad_files(void) {
  const char *path = "test_diffusion_bad.nc";
  static const struct {
    double alpha, scale;
    float weight;
    int units;
    const char *sentence;
  } cases[] = {{1.2, 1, 0.5f, 1, "between 0 and 1"},
               {0.9, 0, 0.5f, 1, "scale 0"},
               {0.9, 1, INFINITY, 1, "not finite"},
               {0.9, 1, 0.5f, 2, "do not connect"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    StoreFile *file;
    int stage, dim, out;
    double zero = 0;
    float weights[3] = {cases[i].weight, 0.5f, 0.5f};
    SCRATCH_ARENA(memory);
    Prior prior = {.memory = &memory, .ops = &prior_diffusion};
    CHECK_OK(store_create(path, &file));
    CHECK_OK(store_dimension(file, "stage", 1, &stage));
    CHECK_OK(store_dimension(file, "dim", 1, &dim));
    CHECK_OK(store_dimension(file, "out", (size_t)cases[i].units, &out));
    CHECK_OK(store_text_attribute(file, NULL, "last_stage", "repaired"));
    CHECK_OK(store_int_attribute(file, "training_samples", 10));
    CHECK_OK(store_text_attribute(file, NULL, "training_samples_sha256", "0123"));
    const struct {
      const char *name;
      int dimension;
      const double *value;
    } vectors[] = {{"alpha", stage, &cases[i].alpha},
                   {"loss", stage, &zero},
                   {"shift", dim, &zero},
                   {"scale", dim, &cases[i].scale}};
    for (int k = 0; k < 4; k++) {
      CHECK_OK(store_write(file, vectors[k].name, STORE_DOUBLE, 1, &vectors[k].dimension, NULL, NULL,
                           vectors[k].value));
    }
    CHECK_OK(store_write(file, "weight_1", STORE_FLOAT, 3, (int[]){stage, out, dim}, NULL, NULL, weights));
    CHECK_OK(store_write(file, "bias_1", STORE_FLOAT, 2, (int[]){stage, out}, NULL, NULL, weights + 1));
    CHECK_OK(store_finish(file, STATUS_OK));
    CHECK_OK(store_open(path, &file));
    CHECK_FAILS(prior_diffusion.load(&prior, file, NULL), STATUS_INPUT, cases[i].sentence);
    store_abandon(file);
  }
  unlink(path);
}

int main(void) {
  CU_TestInfo tests[] = {{"loss on Gaussian data", test_gaussian_loss},
                         {"loss on the cross", test_cross_loss},
                         {"few samples", test_few_samples},
                         {"the best parameters are kept", test_best_is_kept},
                         {"parts repeat and are independent", test_parts_repeat},
                         {"noise and its derivative", test_noise},
                         {"unconditional draws and the file", test_prior},
                         {"bad files", test_bad_files},
                         CU_TEST_INFO_NULL};
  return harness_run("diffusion", tests);
}

/* Conformance of every registered prior; prior files. */
#include "core/arena.h"
#include "mixture_golden.h"

#include "model/prior/prior.h"

static const int DIMENSIONS[] = {1, 2, 5};
enum { DIMENSION_COUNT = 3, TRAINING = 300, LANES = 4000 };
static const char FILE_NAME[] = "test_prior_file.nc";

/* Draws samples of the golden mixture in d dimensions. */
static Samples training_samples(Arena *memory, int d) {
  StoreFile *file = golden_open();
  Mixture mixture = golden_mixture(memory, file, d);
  Samples samples = {.d = d, .n = TRAINING, .theta = golden_array((size_t)d * TRAINING)};
  RngLanes rng = golden_lanes(TRAINING, 10);
  mixture_sample(&mixture, &rng, samples.theta);
  store_abandon(file);
  return samples;
}

/* Checks that samples of the prior have the training samples' moments. Closed-form fits keep them exactly, so
 * the error of the samples is statistical: 5 standard errors. Twenty coarse stages trained for 150 steps:
 * 0.25 standard deviations of the mean, 0.4 of the covariance, which still reveals a wrong scale, centre or
 * correlation. */
static void check_moments(const Prior *prior, const Samples *samples) {
  int d = prior->d;
  double mean[GOLDEN_MOST], covariance[25], fitted_mean[GOLDEN_MOST], fitted_covariance[25];
  double *theta = golden_array((size_t)d * LANES);
  RngLanes rng = golden_lanes(LANES, 11);
  prior->ops->sample(prior, &rng, theta);
  golden_moments(d, TRAINING, samples->theta, mean, covariance);
  if (prior->mixture) {
    CU_ASSERT(golden_moment_error(d, LANES, theta, mean, covariance) < 5);
  } else {
    golden_moments(d, LANES, theta, fitted_mean, fitted_covariance);
    for (int i = 0; i < d; i++) {
      CHECK_NEAR(fitted_mean[i], mean[i], 0.25 * sqrt(covariance[i * d + i]));
      for (int j = 0; j < d; j++)
        CHECK_NEAR(fitted_covariance[i * d + j], covariance[i * d + j],
                   0.4 * sqrt(covariance[i * d + i] * covariance[j * d + j]));
    }
  }
  free(theta);
}

/* Checks the score by central differences of step 1e-5, which have an error of about 1e-10 here; the
 * densities' rounding adds 1e-10. */
static void check_score(const Prior *prior) {
  enum { POINTS = 50 };
  if (!prior->ops->score || !prior->ops->log_density) return;
  int d = prior->d;
  double theta[GOLDEN_MOST * POINTS], score[GOLDEN_MOST * POINTS], up[POINTS], down[POINTS], step = 1e-5;
  RngLanes rng = golden_lanes(POINTS, 12);
  prior->ops->sample(prior, &rng, theta);
  prior->ops->score(prior, POINTS, theta, score, NULL);
  for (int i = 0; i < d; i++) {
    double *row = theta + i * POINTS;
    for (int n = 0; n < POINTS; n++) row[n] += step;
    prior->ops->log_density(prior, POINTS, theta, up);
    for (int n = 0; n < POINTS; n++) row[n] -= 2 * step;
    prior->ops->log_density(prior, POINTS, theta, down);
    for (int n = 0; n < POINTS; n++) row[n] += step;
    for (int n = 0; n < POINTS; n++) {
      double slope = (up[n] - down[n]) / (2 * step);
      CHECK_NEAR(score[i * POINTS + n], slope, 1e-7 * (1 + fabs(slope)));
    }
  }
}

/* Checks that the score that comes with the Hessian is the score, and the Hessian by central differences of
 * the score, step 1e-5: error about 1e-9 of the third derivatives. */
static void check_hessian(const Prior *prior) {
  enum { POINTS = 50 };
  if (!prior->ops->score || !prior->ops->log_density) return;
  const int d = prior->d, size = d * POINTS;
  const double step = 1e-5;
  double theta[GOLDEN_MOST * POINTS], score[GOLDEN_MOST * POINTS], alone[GOLDEN_MOST * POINTS];
  double up[GOLDEN_MOST * POINTS], down[GOLDEN_MOST * POINTS];
  double *hessian = golden_array(d * size);
  RngLanes rng = golden_lanes(POINTS, 12);
  prior->ops->sample(prior, &rng, theta);
  prior->ops->score(prior, POINTS, theta, alone, NULL);
  prior->ops->score(prior, POINTS, theta, score, hessian);
  for (int k = 0; k < size; k++) CHECK_NEAR(score[k], alone[k], 1e-12 * (1 + fabs(alone[k])));
  for (int j = 0; j < d; j++) {
    double *row = theta + j * POINTS;
    for (int n = 0; n < POINTS; n++) row[n] += step;
    prior->ops->score(prior, POINTS, theta, up, NULL);
    for (int n = 0; n < POINTS; n++) row[n] -= 2 * step;
    prior->ops->score(prior, POINTS, theta, down, NULL);
    for (int n = 0; n < POINTS; n++) row[n] += step;
    for (int k = 0; k < size; k++) {
      const double slope = (up[k] - down[k]) / (2 * step);
      CHECK_NEAR(hessian[(k / POINTS * d + j) * POINTS + k % POINTS], slope, 1e-6 * (1 + fabs(slope)));
    }
  }
  free(hessian);
}

/* Checks u' (J' v) against the difference of v' eps along u. Networks are piecewise linear and in single
 * precision: a longer step, rounding of 1e-4, and one lane in eight may have a kink within the step. */
static void check_noise_vjp(const Prior *prior) {
  enum { POINTS = 64 };
  if (!prior->chain) return;
  const Chain *chain = prior->chain;
  bool smooth = prior->mixture != NULL;
  int d = prior->d, stages[] = {1, chain->schedule.stages / 2, chain->schedule.stages}, missed = 0;
  double s[GOLDEN_MOST * POINTS], u[GOLDEN_MOST * POINTS], v[GOLDEN_MOST * POINTS],
      moved[GOLDEN_MOST * POINTS];
  double up[GOLDEN_MOST * POINTS], down[GOLDEN_MOST * POINTS], out[GOLDEN_MOST * POINTS];
  double step = smooth ? 1e-5 : 2e-3, tolerance = smooth ? 1e-6 : 2e-3;
  for (int k = 0; k < 3; k++) {
    RngLanes rng = golden_lanes(POINTS, 13);
    rng_lanes_normal(&rng, d, s);
    rng_lanes_normal(&rng, d, u);
    rng_lanes_normal(&rng, d, v);
    chain->noise_vjp(chain, stages[k], POINTS, s, v, out);
    for (int i = 0; i < d * POINTS; i++) moved[i] = s[i] + step * u[i];
    chain->noise(chain, stages[k], POINTS, moved, up);
    for (int i = 0; i < d * POINTS; i++) moved[i] = s[i] - step * u[i];
    chain->noise(chain, stages[k], POINTS, moved, down);
    for (int n = 0; n < POINTS; n++) {
      double along = 0, difference = 0;
      for (int i = 0; i < d; i++) {
        along += u[i * POINTS + n] * out[i * POINTS + n];
        difference += v[i * POINTS + n] * (up[i * POINTS + n] - down[i * POINTS + n]) / (2 * step);
      }
      if (smooth) CHECK_NEAR(along, difference, tolerance * (1 + fabs(difference)));
      missed += !(fabs(along - difference) <= tolerance * (1 + fabs(difference)));
    }
  }
  CU_ASSERT(missed <= (smooth ? 0 : 3 * POINTS / 8));
}

/* Checks that both give the same samples, and their chains too, bit for bit. */
static void check_same(const Prior *one, const Prior *two) {
  int d = one->d;
  CU_ASSERT_PTR_EQUAL(one->ops, two->ops);
  CU_ASSERT_EQUAL_FATAL(d, two->d);
  size_t count = (size_t)d * LANES;
  double *first = golden_array(count), *second = golden_array(count), *scratch = golden_array(2 * count);
  RngLanes a = golden_lanes(LANES, 14), b = a;
  one->ops->sample(one, &a, first);
  two->ops->sample(two, &b, second);
  CU_ASSERT_EQUAL(memcmp(first, second, count * sizeof *first), 0);
  CU_ASSERT_EQUAL(a.position, b.position);
  CU_ASSERT_EQUAL(one->chain != NULL, two->chain != NULL);
  if (one->chain && two->chain) {
    a = b = golden_lanes(LANES, 15);
    denoiser_chain_sample(one->chain, &a, first, scratch);
    denoiser_chain_sample(two->chain, &b, second, scratch);
    CU_ASSERT_EQUAL(memcmp(first, second, count * sizeof *first), 0);
    CU_ASSERT_EQUAL(one->chain->loss != NULL, two->chain->loss != NULL);
  }
  free(first), free(second), free(scratch);
}

static void check_round_trip(const Prior *prior, const PriorFit *fit) {
  SCRATCH_ARENA(memory);
  Prior loaded;
  CHECK_OK(prior_save(prior, FILE_NAME));
  CHECK_OK(prior_load(&memory, FILE_NAME, fit, &loaded));
  check_same(prior, &loaded);
  remove(FILE_NAME);
}

/* Checks that parts fitted in the opposite order, each in memory of its own, make the same prior. */
static void check_parts(const Prior *prior, const PriorFit *fit, const Samples *samples) {
  const PriorOps *family = prior->ops;
  int count = prior_parts(family, fit);
  size_t size = family->part_size(fit, samples->d);
  double *parts = golden_array((size_t)count * size);
  for (int part = count - 1; part >= 0; part--) {
    double *out = golden_array(size);
    CHECK_OK(family->fit_part(fit, &(FitSource){.samples = samples}, part, out));
    memcpy(parts + (size_t)part * size, out, size * sizeof *out);
    free(out);
  }
  SCRATCH_ARENA(memory);
  Prior assembled = {.memory = &memory, .ops = family, .d = samples->d};
  CHECK_OK(family->assemble(&assembled, fit, &(FitSource){.samples = samples}, parts));
  check_same(prior, &assembled);
  free(parts);
}

/* Checks that describe_fit prints what changes the fit, and the same for the same settings. */
static void check_description(const PriorOps *family) {
  char first[1024], second[1024], other[1024];
  PriorFit fit = golden_fit(), changed = fit;
  changed.components = 3, changed.steps = 7;
  prior_settle(family, &fit, 2);
  prior_settle(family, &changed, 2);
  const PriorFit *fits[] = {&fit, &fit, &changed};
  char *texts[] = {first, second, other};
  for (int k = 0; k < 3; k++) {
    FILE *out = fmemopen(texts[k], sizeof first, "w");
    family->describe_fit(fits[k], out);
    fclose(out);
  }
  CU_ASSERT_STRING_EQUAL(first, second);
  bool depends = family->part_size(&fit, 2) != family->part_size(&changed, 2) || family->network_size;
  CU_ASSERT_EQUAL(strcmp(first, other) != 0, depends);
}

static void test_conformance(void) {
  SCRATCH_ARENA(memory);
  const PriorOps *family;
  int count = 0;
  for (; (family = prior_family(count)); count++) {
    if (!harness_wants(family->name)) continue;
    CU_ASSERT_PTR_EQUAL(prior_find(family->name), family);
    CU_ASSERT_STRING_EQUAL(prior_name(count), family->name);
    CU_ASSERT(family->summary && family->reference && family->sample && family->save && family->load);
    check_description(family);
    for (int c = 0; c < DIMENSION_COUNT; c++) {
      PriorFit fit = golden_fit();
      Samples samples = training_samples(&memory, DIMENSIONS[c]);
      Prior prior;
      prior_settle(family, &fit, samples.d);
      CHECK_OK(prior_fit(&memory, family, &fit, &samples, &prior));
      CU_ASSERT_EQUAL(prior.d, samples.d);
      CU_ASSERT_EQUAL(prior.chain != NULL, (family->able & PRIOR_CHAIN) != 0);
      CU_ASSERT_EQUAL(prior.mixture != NULL, family->components != NULL);
      if (prior.mixture) CU_ASSERT_EQUAL(prior.mixture->components, family->components(&fit));
      check_moments(&prior, &samples);
      check_score(&prior);
      check_hessian(&prior);
      check_noise_vjp(&prior);
      check_round_trip(&prior, &fit);
      check_parts(&prior, &fit, &samples);
    }
  }
  CU_ASSERT(count >= 3);
  CU_ASSERT_PTR_NULL(prior_find("gaussien"));
  CU_ASSERT_PTR_NULL(prior_name(count));
}

static void test_standard(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = golden_fit();
  Prior prior;
  CHECK_OK(prior_standard(&memory, 3, &fit, &prior));
  CU_ASSERT_STRING_EQUAL(prior.ops->name, "gaussian");
  double theta[3] = {1, 2, -2}, out;
  prior.ops->log_density(&prior, 1, theta, &out);
  CHECK_NEAR(out, -1.5 * log(2 * M_PI) - 4.5, 1e-14);
}

/* The contents of a hand-written file. */
typedef struct {
  const char *prior; /* NULL: no attribute */
  int components, means, columns; /* lengths of the dimensions of weight, mean and the last of covariance */
  const char *names[4]; /* of the dimensions; NULL: component, other, dim, dim2 */
  double weight[2], mean[4], covariance[8];
} Written;

static const Written GOOD = {
    "mixture", 2, 2, 2, {NULL}, {0.25, 0.75}, {0, 0, 1, 1}, {1, 0, 0, 1, 2, 0.5, 0.5, 2}};

static Status write_and_load(Arena *memory, Written written, Prior *out) {
  StoreFile *file;
  PriorFit fit = golden_fit();
  int component, other, dim, dim2;
  static const char *const names[] = {"component", "other", "dim", "dim2"};
  for (int i = 0; i < 4; i++)
    if (!written.names[i]) written.names[i] = names[i];
  CHECK_OK(store_create(FILE_NAME, &file));
  if (written.prior) CHECK_OK(store_text_attribute(file, NULL, "prior", written.prior));
  CHECK_OK(store_dimension(file, written.names[0], (size_t)written.components, &component));
  other = component;
  if (written.means != written.components)
    CHECK_OK(store_dimension(file, written.names[1], (size_t)written.means, &other));
  CHECK_OK(store_dimension(file, written.names[2], 2, &dim));
  CHECK_OK(store_dimension(file, written.names[3], (size_t)written.columns, &dim2));
  CHECK_OK(store_write(file, "weight", STORE_DOUBLE, 1, (int[]){component}, NULL, NULL, written.weight));
  CHECK_OK(store_write(file, "mean", STORE_DOUBLE, 2, (int[]){other, dim}, NULL, NULL, written.mean));
  CHECK_OK(store_write(file, "covariance", STORE_DOUBLE, 3, (int[]){other, dim, dim2}, NULL, NULL,
                       written.covariance));
  CHECK_OK(store_finish(file, STATUS_OK));
  Status status = prior_load(memory, FILE_NAME, &fit, out);
  remove(FILE_NAME);
  return status;
}

static void test_written_files(void) {
  SCRATCH_ARENA(memory);
  Prior prior;
  Written w = GOOD;
  CHECK_OK(write_and_load(&memory, w, &prior));
  CU_ASSERT_EQUAL(prior.mixture->covariance[5], 0.5);
  w = GOOD, w.prior = "gaussian";
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "has 1 component, but the file has 2");
  w = GOOD, w.prior = "gausian";
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "'gausian'");
  w = GOOD, w.prior = NULL;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "prior");
  w = GOOD, w.weight[0] = 0.26;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "sum to 1.01");
  w = GOOD, w.weight[0] = -0.25, w.weight[1] = 1.25;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "weight[0] is -0.25");
  w = GOOD, w.covariance[5] = 0.4;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "component 1 is not symmetric");
  w = GOOD, w.covariance[0] = -1;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT,
              "covariance of component 0 of the mixture is not positive");
  w = GOOD, w.covariance[5] = w.covariance[6] = 3;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT,
              "component 1 of the mixture is not positive definite");
  w = GOOD, w.covariance[4] = INFINITY;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "covariance[1, 0, 0]");
  w = GOOD, w.mean[3] = NAN;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "mean[1, 1]");
  w = GOOD, w.means = 1;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT,
              "'mean' are (other, dim); they must be (component, dim)");
  w = GOOD, w.components = w.means = 1, w.weight[0] = 1, w.names[0] = "k";
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT,
              "'mean' are (k, dim); they must be (component, dim)");
  w = GOOD, w.names[0] = "dim",
  w.names[2] = "component"; /* transposed, and the number of components equals the dimension */
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT,
              "'mean' are (dim, component); they must be (component");
  w = GOOD, w.names[2] = "dim2", w.names[3] = "dim";
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "'mean' are (component, dim2); they must be");
  w = GOOD, w.columns = 1;
  CHECK_FAILS(write_and_load(&memory, w, &prior), STATUS_INPUT, "covariance");
}

/* Checks a file in single precision, from xarray (golden/prior.py). */
static void test_xarray_file(void) {
  SCRATCH_ARENA(memory);
  const char *root = getenv("THOMPSON_SOURCE");
  char path[4096];
  snprintf(path, sizeof path, "%s/tests/golden/prior_mixture.nc", root ? root : "..");
  PriorFit fit = golden_fit();
  Prior prior;
  CHECK_OK(prior_load(&memory, path, &fit, &prior));
  const Mixture *mixture = prior.mixture;
  CU_ASSERT_EQUAL_FATAL(mixture->components, 3);
  CHECK_NEAR(mixture->weight[0] + mixture->weight[1] + mixture->weight[2], 1, 1e-15);
  CHECK_NEAR(mixture->weight[1], 0.6, 1e-7);
  CHECK_NEAR(mixture->mean[3], -1, 0);
  CHECK_NEAR(mixture->covariance[5], -0.1, 1e-8);
  CHECK_FAILS(prior_load(&memory, "no_such_prior.nc", &fit, &prior), STATUS_FILE, "no_such_prior.nc");
}

static void test_fit_errors(void) {
  SCRATCH_ARENA(memory);
  PriorFit fit = golden_fit();
  Prior prior;
  double theta[2] = {1, 2};
  Samples samples = {.d = 2, .n = 1, .theta = theta};
  CHECK_FAILS(prior_fit(&memory, prior_find("mixture"), &fit, &samples, &prior), STATUS_INPUT,
              "2 components");
  prior_settle(prior_find("gaussian"), &fit, samples.d);
  CHECK_OK(prior_fit(&memory, prior_find("gaussian"), &fit, &samples,
                     &prior)); /* the floor makes this a narrow Gaussian */
}

int main(void) {
  CU_TestInfo tests[] = {{"conformance of every family", test_conformance},
                         {"standard prior", test_standard},
                         {"files written by hand", test_written_files},
                         {"a file from xarray", test_xarray_file},
                         {"errors of a fit", test_fit_errors},
                         CU_TEST_INFO_NULL};
  return harness_run("prior", tests);
}

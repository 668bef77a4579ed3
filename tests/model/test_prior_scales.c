/* Whatever a fit saves, the reader of prior files reads: samples of any scale and of odd shapes are either
 * refused in a sentence that names the file, or give a prior that survives its file bit for bit and can be
 * drawn from. */
#include "harness.h"

#include "core/arena.h"
#include "io/io_dataset.h"
#include "model/prior/prior.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { D = 3, MOST_SAMPLES = 12, DRAWS = 64 };

static char samples_path[PATH_MAX], prior_path[PATH_MAX];

/* A sample of a shape, in units of the scale; z is standard normal. */
typedef void Shape(const double z[D], int sample, double out[D]);

static void spread(const double z[D], int sample, double out[D]) {
  (void)sample;
  memcpy(out, z, D * sizeof *out);
}
static void constant_column(const double z[D], int sample, double out[D]) {
  spread(z, sample, out);
  out[1] = 0.7;
}
static void all_constant(const double z[D], int sample, double out[D]) {
  (void)z, (void)sample;
  for (int i = 0; i < D; i++) out[i] = i - 1;
}
static void collinear(const double z[D], int sample, double out[D]) {
  (void)sample;
  for (int i = 0; i < D; i++) out[i] = (i - 1.5) * z[0];
}
static void duplicates(const double z[D], int sample, double out[D]) {
  (void)z;
  for (int i = 0; i < D; i++) out[i] = sample % 2 ? 1.0 + i : -0.5;
}
static void far_from_zero(const double z[D], int sample, double out[D]) {
  (void)sample;
  for (int i = 0; i < D; i++) out[i] = 0.9 + 1e-13 * z[i];
}
static void mixed_scales(const double z[D], int sample, double out[D]) {
  (void)sample;
  for (int i = 0; i < D; i++) out[i] = z[i] * pow(1e-15, i);
}

static Shape *const shapes[] = {spread,     constant_column, all_constant, collinear,
                                duplicates, far_from_zero,   mixed_scales};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void write_samples(Shape *shape, int n, double scale) {
  Rng rng = {.key = rng_key(1, RNG_TEST)};
  FILE *file = fopen(samples_path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(file);
  for (int j = 0; j < n; j++) {
    double z[D], theta[D];
    rng_normal(&rng, D, z);
    shape(z, j, theta);
    for (int i = 0; i < D; i++) fprintf(file, "%.17g%s", theta[i] * scale, i + 1 < D ? "," : "\n");
  }
  fclose(file);
}

static PriorFit small_fit(bool standardise) {
  return (PriorFit){.components = 1,
                    .starts = 2,
                    .schedule.stages = 3,
                    .schedule.alpha = 0.8,
                    .standardise = standardise,
                    .hidden_count = 1,
                    .hidden = {4},
                    .last_stage = LAST_STAGE_REPAIRED,
                    .steps = 20,
                    .batch = 64,
                    .patience = 1000,
                    .learning_rate = 0.01,
                    .seed = 1};
}

/* Checks that draws of two priors are the same numbers, and finite. */
static void check_draws(const Prior *fitted, const Prior *again) {
  double draws[D * DRAWS], same[D * DRAWS];
  RngLanes rng = {.key = rng_key(2, RNG_TEST), .draws = DRAWS, .lanes = DRAWS}, second = rng;
  fitted->ops->sample(fitted, &rng, draws);
  again->ops->sample(again, &second, same);
  CU_ASSERT_EQUAL(memcmp(draws, same, sizeof draws), 0);
  for (int k = 0; k < D * DRAWS; k++) CU_ASSERT(isfinite(draws[k]));
}

/* Fits, saves and reads; tells whether there was a prior at all. */
static bool survives(const PriorOps *family, const PriorFit *fit, const Samples *samples) {
  SCRATCH_ARENA(memory);
  Prior fitted, again;
  PriorFit settled = *fit;
  prior_settle(family, &settled, samples->d);
  Status status = prior_fit(&memory, family, &settled, samples, &fitted);
  if (status != STATUS_OK) {
    CU_ASSERT(status == STATUS_INPUT);
    return false;
  }
  CHECK_OK(prior_save(&fitted, prior_path));
  CHECK_OK(prior_load(&memory, prior_path, fit, &again));
  if (again.ops) check_draws(&fitted, &again);
  return true;
}

/* Tells whether a family must learn: one that offers a mixture, a chain or a denoiser must learn at every
 * ordinary scale; any other may refuse, in a sentence. */
static int promises(const PriorOps *family) { return family->able != 0; }

/* Returns in how many coordinates a family is fitted: only that of a chain asks for `standardise`. */
static int coordinates(const PriorOps *family) { return family->able & PRIOR_CHAIN ? 2 : 1; }

/* Fits all families in all their coordinates; returns how many of the families that must learn gave a prior,
 * or -1 when the samples were refused. */
static int count_priors(int n, double scale, Shape *shape) {
  SCRATCH_ARENA(memory);
  Samples samples;
  write_samples(shape, n, scale);
  Status status = io_dataset_read_samples(&memory, samples_path, &samples);
  if (status != STATUS_OK) {
    CU_ASSERT(status == STATUS_INPUT && strstr(status_message(), samples_path));
    return -1;
  }
  int count = 0;
  for (int f = 0; prior_family(f); f++)
    for (int standardise = 2 - coordinates(prior_family(f)); standardise < 2; standardise++) {
      PriorFit fit = small_fit(standardise);
      const bool made = survives(prior_family(f), &fit, &samples);
      count += made && promises(prior_family(f));
    }
  return count;
}

static void test_any_scale(void) {
  static const int sizes[] = {1, 2, MOST_SAMPLES};
  int most = 0;
  for (int f = 0; prior_family(f); f++) most += promises(prior_family(f)) * coordinates(prior_family(f));
  for (int exponent = -300; exponent <= 300; exponent += exponent >= -60 && exponent < 60 ? 15 : 120)
    for (int s = 0; s < SHAPES; s++)
      for (int n = 0; n < 3; n++) {
        int count = count_priors(sizes[n], pow(10, exponent), shapes[s]);
        /* Ordinary scales work, for all families in all coordinates. */
        if (exponent == 0) CU_ASSERT_EQUAL(count, most);
        /* Far from ordinary scales all work, except a learned chain without standardisation, and columns 1e30
         * apart. */
        if (abs(exponent) <= 30 && shapes[s] != mixed_scales && shapes[s] != far_from_zero)
          CU_ASSERT(count >= most - 1);
        if (exponent > 45) CU_ASSERT(count == -1);
      }
}

static Status read_text(const char *text) {
  SCRATCH_ARENA(memory);
  Samples samples;
  FILE *file = fopen(samples_path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(file);
  fputs(text, file);
  fclose(file);
  Status status = io_dataset_read_samples(&memory, samples_path, &samples);
  return status;
}

static void test_sentences(void) {
  CHECK_FAILS(read_text("1,2\n3,1e200\n"), STATUS_INPUT,
              "line 2, column 2: '1e200' is too large; values are at most 1e+45 in size");
  CHECK_FAILS(read_text("1,2\n-1.1e45,4\n"), STATUS_INPUT, "line 2, column 1: '-1.1e45' is too large");
  CHECK_OK(read_text("1,2\n-1e45,4\n"));
  CHECK_FAILS(read_text("1,5e-50\n1,6e-50\n1,4e-50\n"), STATUS_INPUT,
              "coordinate 2 of theta is between 4e-50 (sample 3) and 6e-50 (sample 2); if it varies at all");
  CHECK_OK(read_text("1,5e-50\n2,5e-50\n"));
}

/* Checks raw samples: without standardisation a chain cannot see the noise next to a large theta. */
static void test_raw_samples(void) {
  SCRATCH_ARENA(memory);
  double theta[4] = {1, 2, 3, 2e6};
  Samples samples = {.d = 2, .n = 2, .theta = theta};
  PriorFit fit = small_fit(false);
  Prior prior;
  CHECK_FAILS(prior_fit(&memory, prior_find("diffusion"), &fit, &samples, &prior), STATUS_INPUT,
              "coordinate 2 of sample 2 of theta is 2e+06; without standardisation");
  fit.standardise = true;
  CHECK_OK(prior_fit(&memory, prior_find("diffusion"), &fit, &samples, &prior));
}

static void test_too_many_dimensions(void) {
  SCRATCH_ARENA(memory);
  enum { MANY = 2049 };
  double *theta;
  CHECK_OK(memory_new((void **)&theta, MANY, sizeof *theta));
  Samples samples = {.d = MANY, .n = 1, .theta = theta};
  PriorFit fit = small_fit(true);
  Prior prior;
  CHECK_FAILS(prior_fit(&memory, prior_find("diffusion"), &fit, &samples, &prior), STATUS_INPUT,
              "a diffusion prior in 2049 dimensions; allowed: 1 to 2048");
  free(theta);
}

int main(void) {
  CU_TestInfo tests[] = {{"any scale", test_any_scale},
                         {"sentences", test_sentences},
                         {"raw samples", test_raw_samples},
                         {"too many dimensions", test_too_many_dimensions},
                         CU_TEST_INFO_NULL};
  snprintf(samples_path, sizeof samples_path, "/tmp/test_prior_scales.%d.csv", (int)getpid());
  snprintf(prior_path, sizeof prior_path, "/tmp/test_prior_scales.%d.nc", (int)getpid());
  int result = harness_run("prior_scales", tests);
  remove(samples_path);
  remove(prior_path);
  return result;
}

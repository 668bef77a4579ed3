#include "mixture_golden.h"

StoreFile *golden_open(void) {
  const char *root = getenv("THOMPSON_SOURCE");
  char path[4096];
  StoreFile *file;
  snprintf(path, sizeof path, "%s/tests/golden/mixture.nc", root ? root : "..");
  if (store_open(path, &file) == STATUS_OK) return file;
  fprintf(stderr, "%s; set THOMPSON_SOURCE to the project's folder\n", status_message());
  abort();
}

void golden_read(StoreFile *file, const char *name, int d, double *out) {
  char full[64];
  snprintf(full, sizeof full, d ? "%s_%d" : "%s", name, d);
  CHECK_OK(store_get_doubles(file, full, out));
}

Mixture golden_mixture(Arena *memory, StoreFile *file, int d) {
  Mixture mixture;
  CHECK_OK(mixture_create(memory, d, d == 1 ? 3 : d == 2 ? 2 : 4, &mixture));
  golden_read(file, "weight", d, mixture.weight);
  golden_read(file, "mean", d, mixture.mean);
  golden_read(file, "covariance", d, mixture.covariance);
  CHECK_OK(mixture_prepare(&mixture));
  return mixture;
}

double *golden_array(size_t count) {
  double *array = (double *)calloc(count, sizeof *array);
  if (!array) abort();
  return array;
}

RngLanes golden_lanes(int lanes, uint32_t round) {
  return (RngLanes){
      .key = rng_key(GOLDEN_SEED, RNG_TEST), .draws = 1, .round = round, .lanes = (uint32_t)lanes};
}

double golden_moment_error(int d, int n, const double *x, const double *mean, const double *covariance) {
  double worst = 0;
  for (int i = 0; i < d; i++) {
    for (int j = -1; j <= i; j++) {
      double sum = 0, squares = 0, expected = j < 0 ? 0 : covariance[i * d + j];
      for (int k = 0; k < n; k++) {
        double value = x[i * n + k] - mean[i];
        if (j >= 0) value *= x[j * n + k] - mean[j];
        sum += value, squares += value * value;
      }
      sum /= n, squares /= n;
      double error = sqrt(fmax(squares - sum * sum, 0) / n);
      worst = fmax(worst, fabs(sum - expected) / (error + 1e-12));
    }
  }
  return worst;
}

void golden_moments(int d, int n, const double *x, double *mean, double *covariance) {
  for (int i = 0; i < d; i++) {
    mean[i] = 0;
    for (int k = 0; k < n; k++) mean[i] += x[i * n + k] / n;
  }
  for (int i = 0; i < d; i++) {
    for (int j = 0; j < d; j++) {
      covariance[i * d + j] = 0;
      for (int k = 0; k < n; k++)
        covariance[i * d + j] += (x[i * n + k] - mean[i]) * (x[j * n + k] - mean[j]) / n;
    }
  }
}

PriorFit golden_fit(void) {
  return (PriorFit){.components = 2,
                    .starts = 5,
                    .schedule.stages = 20,
                    .schedule.alpha = 0.8,
                    .standardise = true,
                    .hidden_count = 2,
                    .hidden = {20, 20},
                    .last_stage = LAST_STAGE_REPAIRED,
                    .steps = 150,
                    .batch = 128,
                    .patience = 1000,
                    .learning_rate = 0.01,
                    .seed = GOLDEN_SEED,
                    .replicate = 3};
}

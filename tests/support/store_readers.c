#include "store_readers.h"

#include "core/arena.h"
#include "io/io_cases.h"
#include "io/io_dataset.h"
#include "model/prior/prior.h"
#include "problem/embedding/embedding_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool all_finite(size_t count, const double *values) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(values[i])) return false;
  return true;
}

bool refused_well(Status status, const char *path) {
  return (status == STATUS_INPUT || status == STATUS_FILE) && strstr(status_message(), path);
}

static bool good_mixture(const Mixture *mixture, int d) {
  if (mixture->d != d || mixture->components < 1) return false;
  size_t count = (size_t)mixture->components, vectors = count * (size_t)d, matrices = vectors * (size_t)d;
  double sum = 0;
  for (size_t c = 0; c < count; c++) {
    if (!(mixture->weight[c] > 0)) return false;
    sum += mixture->weight[c];
  }
  return fabs(sum - 1) < 1e-12 && all_finite(vectors, mixture->mean) &&
         all_finite(matrices, mixture->covariance) && all_finite(matrices, mixture->cholesky) &&
         all_finite(matrices, mixture_precision(mixture, 0)) &&
         all_finite(vectors, mixture_information(mixture, 0)) && all_finite(count, mixture->log_norm);
}

static bool good_chain(const Chain *chain, int d) {
  size_t stages = (size_t)chain->schedule.stages;
  if (chain->d != d || chain->schedule.stages < 1) return false;
  for (size_t t = 1; t <= stages; t++)
    if (!(chain->schedule.alpha[t] > 0 && chain->schedule.alpha[t] < 1)) return false;
  for (int i = 0; i < d; i++)
    if (!(chain->scale[i] > 0)) return false;
  return all_finite((size_t)d, chain->shift) && all_finite((size_t)d, chain->scale) &&
         (!chain->loss || all_finite(stages, chain->loss + 1));
}

/* Draws from a prior and evaluates its noise, so that the sanitizers check both. Closed forms give numbers; a
 * network with weights near the largest float may not. */
static bool can_be_used(const Prior *prior) {
  enum { LANES = 3 };
  size_t count = (size_t)prior->d * LANES;
  double *block = calloc(4 * count, sizeof *block); /* theta, noise, scratch[2], each [d, LANES] */
  if (!block) abort();
  RngLanes rng = {.key = rng_key(1, RNG_TEST), .draws = 1, .lanes = LANES};
  prior->ops->sample(prior, &rng, block);
  if (prior->ops->log_density) prior->ops->log_density(prior, LANES, block, block + count);
  denoiser_chain_sample(prior->chain, &rng, block, block + 2 * count);
  for (size_t i = 0; i < count; i++) block[i] = 0.25 * (double)i;
  prior->chain->noise(prior->chain, 1, LANES, block, block + count);
  bool good = !prior->mixture || all_finite(count, block + count);
  free(block);
  return good;
}

static bool good_prior(const char *path) {
  SCRATCH_ARENA(memory);
  static const PriorFit settings = {.schedule.stages = 3, .schedule.alpha = 0.8, .standardise = true};
  Prior prior;
  Status status = prior_load(&memory, path, &settings, &prior);
  if (status != STATUS_OK) return !prior.ops && !prior.state && refused_well(status, path);
  bool good = prior.ops && prior.d >= 1 && prior.chain && good_chain(prior.chain, prior.d) &&
              (!prior.mixture || good_mixture(prior.mixture, prior.d)) && can_be_used(&prior);
  return good;
}

static bool good_samples(const char *path) {
  SCRATCH_ARENA(memory);
  Samples samples;
  Status status = io_dataset_read_samples(&memory, path, &samples);
  if (status != STATUS_OK) return refused_well(status, path);
  bool good =
      samples.d >= 1 && samples.n >= 1 && all_finite((size_t)samples.d * (size_t)samples.n, samples.theta);
  return good;
}

static bool good_observations(const char *path) {
  SCRATCH_ARENA(memory);
  Observations seen;
  Status status = io_dataset_read_observations(&memory, path, &seen);
  if (status != STATUS_OK) return refused_well(status, path);
  bool good = seen.d >= 1 && seen.rows >= 0 && all_finite((size_t)seen.rows, seen.rewards) &&
              all_finite((size_t)seen.d * (size_t)seen.rows, seen.features);
  return good;
}

static bool good_case(const Case *one, int d) {
  const size_t count = (size_t)one->components, vectors = count * (size_t)d, rows = (size_t)one->rows;
  double sum = 0;
  for (size_t c = 0; c < count; c++) {
    if (!(one->weight[c] > 0) || (one->variance && !(one->variance[c] > 0))) return false;
    sum += one->weight[c];
  }
  return rows >= 1 && fabs(sum - 1) < 1e-12 && !one->variance == !!one->covariance &&
         all_finite(vectors, one->mean) && all_finite(rows, one->y) &&
         (one->variance || all_finite(vectors * (size_t)d, one->covariance)) &&
         all_finite(rows * (size_t)d, one->x) && one->noise >= 0 && isfinite(one->noise) &&
         one->exposure >= 0 && isfinite(one->exposure) && (!one->theta || all_finite((size_t)d, one->theta));
}

static bool good_cases(const char *path) {
  SCRATCH_ARENA(memory);
  CaseFile file;
  Status status = io_cases_read(&memory, path, &file);
  if (status != STATUS_OK) return refused_well(status, path);
  bool good = file.d >= 1 && file.count >= 1 && file.references >= 0 && file.likelihood;
  for (int c = 0; c < file.count; c++) good = good && good_case(&file.cases[c], file.d);
  return good;
}

static bool good_embedding(const char *path) {
  SCRATCH_ARENA(memory);
  Embedding embedding;
  Status status = embedding_read(&memory, path, &embedding);
  if (status != STATUS_OK) return refused_well(status, path);
  size_t d = (size_t)embedding.d;
  bool good = embedding.d >= 1 && embedding.theta.d == embedding.d && embedding.theta.n >= 1 &&
              embedding.arms >= 1 && all_finite((size_t)embedding.theta.n * d, embedding.theta.theta) &&
              all_finite((size_t)embedding.arms * d, embedding.features) &&
              (isnan(embedding.noise) || (isfinite(embedding.noise) && embedding.noise > 0));
  return good;
}

static bool good_operator(const char *path) {
  SCRATCH_ARENA(memory);
  int rows, d;
  double *values;
  Status status = io_dataset_read_operator(&memory, path, &rows, &d, &values);
  if (status != STATUS_OK) return refused_well(status, path);
  return rows >= 1 && d >= 1 && all_finite((size_t)rows * (size_t)d, values);
}

static bool good_table(const char *path) {
  SCRATCH_ARENA(memory);
  EventLog table;
  Status status = io_dataset_read_table(&memory, path, &table);
  if (status != STATUS_OK) return refused_well(status, path);
  size_t rows = (size_t)table.rows;
  bool good = table.d >= 1 && table.rows >= 1 && table.arms >= 2 &&
              all_finite(rows * (size_t)table.d, table.x) &&
              all_finite(rows * (size_t)table.arms, table.rewards);
  return good;
}

static bool good_events(const char *path) {
  SCRATCH_ARENA(memory);
  EventLog log;
  Status status = io_dataset_read_events(&memory, path, &log);
  if (status != STATUS_OK) return refused_well(status, path);
  bool good = log.d >= 1 && log.rows >= 2 && log.arms >= 1 && isfinite(log.noise) && log.noise >= 0;
  size_t rows = (size_t)log.rows, vectors = log.has_features ? rows * (size_t)log.arms : rows;
  good = good && all_finite(vectors * (size_t)log.d, log.x) && all_finite(rows, log.reward);
  for (size_t e = 0; good && e < rows; e++)
    good = log.arm[e] >= 0 && log.arm[e] < log.arms && log.propensity[e] > 0 && log.propensity[e] <= 1;
  for (int e = 0; good && e < log.rows; e++)
    good = arms_number(io_dataset_arms(&log), e) > 0 && arms_has(io_dataset_arms(&log), e, log.arm[e]);
  const size_t columns = (size_t)log.target_columns;
  for (size_t i = 0; good && i < rows * columns; i++) good = log.target[i] >= 0 && log.target[i] <= 1;
  return good;
}

const char *broken_reader(const char *path) {
  if (!good_prior(path)) return "prior";
  if (!good_samples(path)) return "samples";
  if (!good_observations(path)) return "history";
  if (!good_table(path)) return "table of rewards";
  if (!good_events(path)) return "log of events";
  if (!good_cases(path)) return "cases";
  if (!good_operator(path)) return "matrix of an inverse problem";
  return good_embedding(path) ? NULL : "embedding";
}

#include "model/training.h"

#include "core/memory.h"
#include "core/rng.h"
#include "core/simd.h"
#include "model/learning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  CHECKED_LANES = 2048, /* enough that the held-out loss is known to about 2% in d = 2 */
  MOST_HELD_OUT = 2048,
  CHECKS = 20 /* held-out evaluations in a full training */
};

void training_standardise(const PriorFit *fit, const Samples *samples, double *shift, double *scale) {
  int n = samples->n;
  for (int i = 0; i < samples->d; i++) {
    const double *row = samples->theta + (size_t)i * (size_t)n;
    shift[i] = 0, scale[i] = 1;
    if (!fit->standardise) continue;
    double mean = 0,
           squares = 0; /* of the distance to the first sample, so that a constant has variance 0 exactly */
    for (int j = 0; j < n; j++) mean += (row[j] - row[0]) / n;
    for (int j = 0; j < n; j++) squares += (row[j] - row[0] - mean) * (row[j] - row[0] - mean) / n;
    shift[i] = row[0] + mean;
    if (squares > 0) scale[i] = sqrt(squares);
  }
}

/* order[n] <- a random permutation, the same for all stages. Round 0 of the training streams, since stages
 * count from 1. */
static void training_shuffle(const PriorFit *fit, int n, int *order) {
  Rng rng = {.key = rng_key(fit->seed, RNG_NETWORK_TRAINING), .run = fit->replicate};
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)rng_index(&rng, (uint64_t)i + 1), swap = order[i];
    order[i] = order[j], order[j] = swap;
  }
}

/* Samples that are used as they are must be numbers of a size that the noise of a stage, of variance below 1,
 * still shows in: floats have 24 bits. */
static Status training_check_range(const PriorFit *fit, const Samples *samples) {
  const double most = 1e6;
  const size_t n = (size_t)samples->n, count = (size_t)samples->d * n;
  for (size_t k = 0; k < count && !fit->standardise; k++)
    if (fabs(samples->theta[k]) > most)
      return status_set(STATUS_INPUT,
                        "coordinate %zu of sample %zu of theta is %g; without standardisation "
                        "(prior.standardise: false) it is at most %g in size",
                        k / n + 1, k % n + 1, samples->theta[k], most);
  return STATUS_OK;
}

/* Standardised samples in the order of the split. */
static Status create_samples(TrainingSetup *setup, const Samples *samples) {
  int d = samples->d, n = samples->n, *order;
  NEW(setup->shift, d);
  NEW(setup->scale, d);
  training_standardise(setup->fit, samples, setup->shift, setup->scale);
  NEW(setup->z, (size_t)d * (size_t)n);
  NEW(order, n);
  training_shuffle(setup->fit, n, order);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < n; j++) {
      double theta = samples->theta[(size_t)i * (size_t)n + (size_t)order[j]];
      setup->z[(size_t)j * (size_t)d + (size_t)i] = (float)((theta - setup->shift[i]) / setup->scale[i]);
    }
  free(order);
  return STATUS_OK;
}

static Status create_scratch(TrainingSetup *setup) {
  size_t parameters = network_parameters(&setup->shape), d = (size_t)setup->d;
  size_t batch = (size_t)setup->batch, checked = (size_t)setup->checked;
  size_t lanes = d * (batch > checked ? batch : checked);
  NEW(setup->gradient, parameters);
  NEW(setup->first, parameters);
  NEW(setup->second, parameters);
  NEW(setup->best, parameters);
  NEW(setup->x, lanes);
  NEW(setup->noise, lanes);
  NEW(setup->predicted, lanes);
  NEW(setup->held_x, d * checked);
  NEW(setup->held_noise, d * checked);
  NEW(setup->workspace, network_workspace(&setup->shape));
  NEW(setup->uniform, batch);
  NEW(setup->normal, lanes);
  return STATUS_OK;
}

Status training_create(const PriorFit *fit, const Samples *samples, TrainingSetup *out) {
  int n = samples->n, held_out = n / 10 < 1 ? 1 : n / 10 > MOST_HELD_OUT ? MOST_HELD_OUT : n / 10;
  *out = (TrainingSetup){
      .fit = fit, .d = samples->d, .held_out = held_out, .training = n - held_out, .checked = CHECKED_LANES};
  if (n < 1) return status_set(STATUS_INPUT, "a diffusion prior cannot be learned from no samples");
  TRY(training_check_range(fit, samples));
  out->batch = (fit->batch + NETWORK_LANES - 1) / NETWORK_LANES * NETWORK_LANES;
  out->shape = network_shape(samples->d, fit->hidden_count, fit->hidden);
  TRY(schedule_create(fit->stages, fit->alpha, fit->keep_signal, &out->schedule));
  TRY(create_samples(out, samples));
  return create_scratch(out);
}

void training_destroy(TrainingSetup *setup) {
  schedule_destroy(&setup->schedule);
  void *blocks[] = {setup->shift,  setup->scale,      setup->z,         setup->gradient, setup->first,
                    setup->second, setup->best,       setup->x,         setup->noise,    setup->predicted,
                    setup->held_x, setup->held_noise, setup->workspace, setup->uniform,  setup->normal};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
  *setup = (TrainingSetup){0};
}

/* noise[n] = normal, x[n] = signal x + spread normal. */
SIMD_CLONES
static void training_add_noise(size_t n, float signal, float spread, const double *restrict normal,
                               float *restrict x, float *restrict noise) {
  for (size_t i = 0; i < n; i++) {
    noise[i] = (float)normal[i];
    x[i] = signal * x[i] + spread * noise[i];
  }
}

/* From z in x[d, lanes] to s_t, with noise[d, lanes] from the stream. */
static void to_stage(const TrainingSetup *setup, int t, Rng *rng, int lanes, float *x, float *noise) {
  int n = setup->d * lanes;
  double bar = setup->schedule.alpha_bar[t];
  rng_normal(rng, n, setup->normal);
  training_add_noise((size_t)n, (float)sqrt(bar), (float)sqrt(1 - bar), setup->normal, x, noise);
}

/* x[d, lanes], column `lane`: sample j. */
static void put_sample(const TrainingSetup *setup, int j, int lane, int lanes, float *x) {
  const float *z = setup->z + (size_t)j * (size_t)setup->d;
  for (int i = 0; i < setup->d; i++) x[(size_t)i * (size_t)lanes + (size_t)lane] = z[i];
}

/* x[d, batch], noise[d, batch]: training samples drawn with replacement, at stage t. */
static void draw_batch(const TrainingSetup *setup, int t, int step) {
  Rng rng = {rng_key(setup->fit->seed, RNG_NETWORK_TRAINING), setup->fit->replicate, (uint32_t)t,
             (uint32_t)step, 0};
  int lanes = setup->batch, pool = setup->training ? setup->training : setup->held_out;
  rng_uniform(&rng, lanes, setup->uniform);
  for (int lane = 0; lane < lanes; lane++)
    put_sample(setup, (int)(setup->uniform[lane] * pool), lane, lanes, setup->x);
  to_stage(setup, t, &rng, lanes, setup->x, setup->noise);
}

/* held_x, held_noise[d, checked]: the held-out samples in turns, each time with its own noise. */
static void draw_held_out(const TrainingSetup *setup, int t) {
  Rng rng = {rng_key(setup->fit->seed, RNG_HELD_OUT), setup->fit->replicate, (uint32_t)t, 0, 0};
  int lanes = setup->checked;
  for (int lane = 0; lane < lanes; lane++)
    put_sample(setup, setup->training + lane % setup->held_out, lane, lanes, setup->held_x);
  to_stage(setup, t, &rng, lanes, setup->held_x, setup->held_noise);
}

static double held_out_loss(const TrainingSetup *setup, const float *parameters) {
  int n = setup->d * setup->checked;
  network_forward(&setup->shape, parameters, setup->checked, setup->held_x, setup->predicted,
                  setup->workspace);
  double sum = 0;
  for (int i = 0; i < n; i++) {
    double difference = (double)setup->predicted[i] - setup->held_noise[i];
    sum += difference * difference;
  }
  return sum / n;
}

void training_stage(TrainingSetup *setup, int t, float *parameters, double *loss) {
  const PriorFit *fit = setup->fit;
  size_t count = network_parameters(&setup->shape), bytes = count * sizeof *parameters;
  int interval = (fit->steps + CHECKS - 1) / CHECKS, failures = 0;
  Rng start = {rng_key(fit->seed, RNG_NETWORK_START), fit->replicate, (uint32_t)t, 0, 0};
  learning_start(&setup->shape, &start, parameters);
  draw_held_out(setup, t);
  memset(setup->first, 0, bytes);
  memset(setup->second, 0, bytes);
  memcpy(setup->best, parameters, bytes);
  *loss = held_out_loss(setup, parameters);
  for (int step = 1; step <= fit->steps && failures < fit->patience; step++) {
    draw_batch(setup, t, step);
    network_loss_gradient(&setup->shape, parameters, setup->batch, setup->x, setup->noise, setup->gradient,
                          setup->workspace);
    learning_adam(count, learning_rate(fit->learning_rate, step, fit->steps), setup->gradient, setup->first,
                  setup->second, parameters);
    if (step % interval != 0 && step != fit->steps) continue;
    double found = held_out_loss(setup, parameters);
    failures++;
    if (!(found < *loss)) continue;
    failures = 0;
    *loss = found;
    memcpy(setup->best, parameters, bytes);
  }
  memcpy(parameters, setup->best, bytes);
}

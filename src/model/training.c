#include "model/training.h"

#include "core/arena.h"
#include "core/rng.h"
#include "core/simd.h"
#include "model/beside.h"
#include "model/learning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  CHECKED_LANES = 2048, /* enough that the held-out loss is known to about 2% in d = 2 */
  CHECKS = 20 /* held-out evaluations in a full training */
};

static Status create_scratch(Arena *memory, TrainingSetup *setup) {
  size_t parameters = network_parameters(&setup->shape), d = (size_t)setup->d;
  size_t batch = (size_t)setup->batch, checked = (size_t)setup->checked;
  size_t lanes = d * (batch > checked ? batch : checked);
  ALLOCATE(memory, setup->gradient, parameters);
  ALLOCATE(memory, setup->first, parameters);
  ALLOCATE(memory, setup->second, parameters);
  ALLOCATE(memory, setup->best, parameters);
  ALLOCATE(memory, setup->x, lanes);
  ALLOCATE(memory, setup->noise, lanes);
  ALLOCATE(memory, setup->predicted, lanes);
  ALLOCATE(memory, setup->held_x, d * checked);
  ALLOCATE(memory, setup->held_noise, d * checked);
  ALLOCATE(memory, setup->workspace, network_workspace(&setup->shape));
  ALLOCATE(memory, setup->uniform, batch);
  ALLOCATE(memory, setup->normal, lanes);
  return STATUS_OK;
}

Status training_create(Arena *memory, const PriorFit *fit, const Samples *samples, TrainingSetup *out) {
  *out = (TrainingSetup){.fit = fit, .d = samples->d, .checked = CHECKED_LANES};
  TRY(training_samples_create(memory, fit, fit->standardise, samples, &out->samples));
  out->batch = (fit->batch + NETWORK_LANES - 1) / NETWORK_LANES * NETWORK_LANES;
  out->shape = network_shape(samples->d, fit->hidden_count, fit->hidden);
  TRY(schedule_create(memory, &fit->schedule, &out->schedule));
  return create_scratch(memory, out);
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
  const float *z = setup->samples.z + (size_t)j * (size_t)setup->d;
  for (int i = 0; i < setup->d; i++) x[(size_t)i * (size_t)lanes + (size_t)lane] = z[i];
}

/* x[d, batch], noise[d, batch]: training samples drawn with replacement, at stage t. */
static void draw_batch(const TrainingSetup *setup, int t, int step) {
  Rng rng = {rng_key(setup->fit->seed, RNG_NETWORK_TRAINING), setup->fit->replicate, (uint32_t)t,
             (uint32_t)step, 0};
  int lanes = setup->batch;
  rng_uniform(&rng, lanes, setup->uniform);
  for (int lane = 0; lane < lanes; lane++)
    put_sample(setup, training_samples_pick(&setup->samples, setup->uniform[lane]), lane, lanes, setup->x);
  to_stage(setup, t, &rng, lanes, setup->x, setup->noise);
}

/* held_x, held_noise[d, checked]: the held-out samples in turns, each time with its own noise. */
static void draw_held_out(const TrainingSetup *setup, int t) {
  Rng rng = {rng_key(setup->fit->seed, RNG_HELD_OUT), setup->fit->replicate, (uint32_t)t, 0, 0};
  int lanes = setup->checked;
  for (int lane = 0; lane < lanes; lane++)
    put_sample(setup, setup->samples.training + lane % setup->samples.held_out, lane, lanes, setup->held_x);
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

double training_cost(const PriorFit *fit, int d, double samples) {
  const NetworkShape shape = network_shape(d, fit->hidden_count, fit->hidden);
  const double stage = learning_cost(fit->steps, fit->batch, (double)network_parameters(&shape));
  return fit->schedule.stages * stage + beside_part_cost(d, samples);
}

#include "model/prior/training.h"

#include "core/core_tick.h"
#include "core/simd.h"
#include "model/network/learning.h"
#include "model/network/network_kernel.h"

#include <math.h>
#include <string.h>

enum {
  CHECKED_LANES = 2048, /* enough that the held-out loss is known to about 2% in d = 2 */
  CHECKS = 10 /* held-out evaluations per full training */
};

/* Least share of the steps, for the noisiest stages and for a stage that starts from its neighbour. */
static const double LEAST_SHARE = 1.0 / 3;

Status training_create(Arena *memory, const PriorFit *fit, const Samples *samples, TrainingSetup *out) {
  const size_t d = (size_t)samples->d;
  *out = (TrainingSetup){.fit = fit, .d = samples->d, .checked = CHECKED_LANES};
  TRY(training_samples_create(memory, fit, fit->standardise, samples, &out->samples));
  out->batch = (fit->batch + NETWORK_LANES - 1) / NETWORK_LANES * NETWORK_LANES;
  out->shape = network_shape(samples->d, fit->hidden_count, fit->hidden, samples->d);
  TRY(schedule_create(memory, &fit->schedule, &out->schedule));
  const size_t parameters = network_parameters(&out->shape), batch = (size_t)out->batch,
               lanes = d * (batch > CHECKED_LANES ? batch : CHECKED_LANES);
  ALLOCATE_ARRAYS(memory, d, &out->mean, &out->deviation);
  ALLOCATE_ARRAYS(memory, parameters, &out->gradient, &out->first, &out->second, &out->best);
  ALLOCATE_ARRAYS(memory, lanes, &out->x, &out->noise, &out->predicted);
  ALLOCATE(memory, out->normal, lanes);
  ALLOCATE_ARRAYS(memory, d * CHECKED_LANES, &out->held_x, &out->held_noise);
  ALLOCATE(memory, out->workspace, network_workspace(&out->shape));
  ALLOCATE(memory, out->uniform, batch / 2);
  training_standardise(!fit->standardise, samples, out->mean, out->deviation);
  return STATUS_OK;
}

/* ---- the start of a stage's training: the best predictor of its noise that is linear in each coordinate,
 * plus random hidden units that the output does not use yet. In eight dimensions it saves more than half of
 * the steps; the last stages, where a state is nearly all noise, hardly need more than it. */

/* Makes row k of a layer with weights[out, in] take only input j, times slope. */
static void pass_input(const NetworkShape *shape, int layer, int k, int j, double slope, float *weights) {
  const size_t in = (size_t)shape->width[layer], out = (size_t)shape->width[layer + 1];
  float *row = weights + (size_t)k * in;
  memset(row, 0, in * sizeof *row);
  row[j] = (float)slope;
  weights[out * in + (size_t)k] = 0;
}

void training_start(const NetworkShape *shape, double alpha_bar, const double *mean, const double *deviation,
                    Rng *rng, float *parameters) {
  const int last = shape->layers - 1, d = shape->width[0];
  const size_t in = (size_t)shape->width[last], out = (size_t)shape->width[last + 1];
  /* Units 2 i and 2 i + 1 of each hidden layer pass x_i on, as max(0, x_i) and max(0, -x_i), if these units
   * are at most half of every layer. */
  bool linear = true;
  for (int l = 1; l <= last; l++) linear = linear && shape->width[l] >= 4 * d;
  for (int l = 0; l < last; l++) {
    const int count = shape->width[l + 1] * (shape->width[l] + 1);
    learning_draw_weights(shape->width[l], count, rng, parameters);
    if (linear)
      for (int k = 0; k < 2 * d; k++)
        pass_input(shape, l, k, l ? k : k / 2, l || k % 2 == 0 ? 1 : -1, parameters);
    parameters += count;
  }
  memset(parameters, 0, out * (in + 1) * sizeof *parameters);
  /* Output i is offset_i + slope_i x_i: the regression of eps on s = sqrt(bar) z + sqrt(1 - bar) eps. */
  if (!linear) return;
  for (int i = 0; i < d; i++) {
    const double slope = sqrt(1 - alpha_bar) / (alpha_bar * deviation[i] * deviation[i] + 1 - alpha_bar);
    pass_input(shape, last, i, last ? 2 * i : i, slope, parameters);
    if (last) parameters[(size_t)i * in + (size_t)(2 * i + 1)] = (float)-slope;
    parameters[out * in + (size_t)i] = (float)(-slope * sqrt(alpha_bar) * mean[i]);
  }
}

/* ---- steps */

/* Diffuses x[n] from z to s_t; noise[n] = sign normal is the noise that is added. */
SIMD_CLONES
static void training_diffuse(const TrainingSetup *setup, int t, int n, float sign,
                             const double *restrict normal, float *restrict x, float *restrict noise) {
  const double bar = setup->schedule.alpha_bar[t];
  const float signal = (float)sqrt(bar), spread = (float)sqrt(1 - bar);
  for (int i = 0; i < n; i++) {
    noise[i] = sign * (float)normal[i];
    x[i] = signal * x[i] + spread * noise[i];
  }
}

/* Writes sample j into column `lane` of x[d, lanes]. */
static void training_put_sample(const TrainingSetup *setup, int j, int lane, int lanes, float *x) {
  const float *z = setup->samples.z + (size_t)j * (size_t)setup->d;
  for (int i = 0; i < setup->d; i++) x[(size_t)i * (size_t)lanes + (size_t)lane] = z[i];
}

/* Draws x[d, batch], noise[d, batch]: training samples drawn with replacement, at stage t, each once with a
 * noise and once with its negative (antithetic variates). */
static void training_draw_batch(const TrainingSetup *setup, int t, int step) {
  Rng rng = {.key = rng_key(setup->fit->seed, RNG_NETWORK_TRAINING),
             .run = setup->fit->replicate,
             .round = (uint32_t)t,
             .draw = (uint32_t)step};
  const int lanes = setup->batch, pairs = lanes / 2;
  rng_uniform(&rng, pairs, setup->uniform);
  for (int lane = 0; lane < lanes; lane++)
    training_put_sample(setup, training_samples_pick(&setup->samples, setup->uniform[lane % pairs]), lane,
                        lanes, setup->x);
  rng_normal(&rng, setup->d * pairs, setup->normal);
  for (int i = 0; i < setup->d; i++) {
    const size_t row = (size_t)i * (size_t)lanes;
    const double *normal = setup->normal + (size_t)i * (size_t)pairs;
    training_diffuse(setup, t, pairs, 1, normal, setup->x + row, setup->noise + row);
    training_diffuse(setup, t, pairs, -1, normal, setup->x + row + pairs, setup->noise + row + pairs);
  }
}

static double training_held_out_loss(const TrainingSetup *setup, const float *parameters) {
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

/* Returns the fraction of the steps that a stage takes: all of them if it starts afresh, fewer if it starts
 * from the network of the stage before, whose signal-to-noise ratio is close. */
static double training_stage_share(const Schedule *schedule, int t) {
  const double *bar = schedule->alpha_bar;
  if ((t - 1) % TRAINING_GROUP == 0) return 1;
  const double drop = log(bar[t - 1] / (1 - bar[t - 1]) * (1 - bar[t]) / bar[t]);
  return fmin(1, fmax(LEAST_SHARE, drop / 2));
}

/* Returns the number of steps of a stage; very noisy stages have less to learn. */
static int training_stage_steps(const PriorFit *fit, const Schedule *schedule, int t, double share) {
  return (int)ceil(share * fit->steps * fmax(schedule->alpha_bar[t], LEAST_SHARE));
}

/* Returns how much of a group of stages is done with this fraction of stage t. */
static double training_group_done(int t, double fraction) {
  return ((t - 1) % TRAINING_GROUP + fraction) / TRAINING_GROUP;
}

/* Trains a stage from the current parameters[]: the smaller its share, the smaller the learning rate. */
static void train_stage(TrainingSetup *setup, int t, double share, float *parameters, double *loss) {
  const PriorFit *fit = setup->fit;
  const int steps = training_stage_steps(fit, &setup->schedule, t, share),
            interval = (steps + CHECKS - 1) / CHECKS;
  size_t count = network_parameters(&setup->shape), bytes = count * sizeof *parameters;
  const double rate = share * share * fit->learning_rate;
  int failures = 0;
  /* The held-out samples in turn, each time with new noise. */
  Rng rng = {.key = rng_key(fit->seed, RNG_HELD_OUT), .run = fit->replicate, .round = (uint32_t)t};
  for (int lane = 0; lane < setup->checked; lane++)
    training_put_sample(setup, setup->samples.training + lane % setup->samples.held_out, lane, setup->checked,
                        setup->held_x);
  rng_normal(&rng, setup->d * setup->checked, setup->normal);
  training_diffuse(setup, t, setup->d * setup->checked, 1, setup->normal, setup->held_x, setup->held_noise);
  memset(setup->first, 0, bytes);
  memset(setup->second, 0, bytes);
  memcpy(setup->best, parameters, bytes);
  *loss = training_held_out_loss(setup, parameters);
  for (int step = 1; step <= steps && failures < fit->patience; step++) {
    if (!core_tick_allows(training_group_done(t, (double)step / steps))) break;
    training_draw_batch(setup, t, step);
    network_loss_gradient(&setup->shape, parameters, setup->batch, setup->x, setup->noise, setup->gradient,
                          setup->workspace);
    learning_adam(count, learning_rate(rate, step, steps), setup->gradient, setup->first, setup->second,
                  parameters);
    if (step % interval != 0 && step != steps) continue;
    double found = training_held_out_loss(setup, parameters);
    failures++;
    if (!(found < *loss)) continue;
    failures = 0;
    *loss = found;
    memcpy(setup->best, parameters, bytes);
  }
  memcpy(parameters, setup->best, bytes);
}

void training_stage(TrainingSetup *setup, int t, float *parameters, double *loss) {
  Rng start = {.key = rng_key(setup->fit->seed, RNG_NETWORK_START),
               .run = setup->fit->replicate,
               .round = (uint32_t)t};
  training_start(&setup->shape, setup->schedule.alpha_bar[t], setup->mean, setup->deviation, &start,
                 parameters);
  train_stage(setup, t, 1, parameters, loss);
}

int training_groups(const PriorFit *fit) {
  return (fit->schedule.stages + TRAINING_GROUP - 1) / TRAINING_GROUP;
}

size_t training_stage_values(const PriorFit *fit, int d) {
  NetworkShape shape = network_shape(d, fit->hidden_count, fit->hidden, d);
  return network_parameters(&shape) + 1;
}

Status training_group(TrainingSetup *setup, int group, double *out) {
  SCRATCH_ARENA(scratch);
  const int first = group * TRAINING_GROUP + 1, last = first + TRAINING_GROUP - 1;
  size_t count = network_parameters(&setup->shape);
  float *parameters;
  ALLOCATE(&scratch, parameters, count);
  for (int t = first; t <= last && t <= setup->schedule.stages; t++) {
    const double share = training_stage_share(&setup->schedule, t);
    if (share < 1)
      train_stage(setup, t, share, parameters, &out[count]);
    else
      training_stage(setup, t, parameters, &out[count]);
    TRY(core_tick_check(training_group_done(t, 1)));
    for (size_t i = 0; i < count; i++) out[i] = parameters[i];
    out += count + 1;
  }
  return STATUS_OK;
}

void training_settle(PriorFit *fit, int d) {
  if (fit->hidden_count == 0) {
    fit->hidden_count = 2;
    fit->hidden[0] = fit->hidden[1] = 10 * d;
  }
  double widest = 1;
  for (int i = 0; i < fit->hidden_count; i++) widest = fmax(widest, fit->hidden[i]);
  if (fit->steps == 0) fit->steps = 1500;
  if (fit->batch == 0) fit->batch = 128;
  if (fit->learning_rate == 0) fit->learning_rate = fmin(0.02, 1.5 / widest);
}

#include "problem/embedding/embedding_classifier.h"

#include "core/arena.h"
#include "model/network/learning.h"
#include "model/network/network_kernel.h"

#include <string.h>

enum { LAYERS = 4, FIRST_HIDDEN = 128, SECOND_HIDDEN = 64 };

static const double LEARNING_RATE = 2e-3, ON_SHARE = 0.01;

/* The data and scratch of one training. A batch is the next CLASSIFIER_BATCH digits in the order, which
 * starts over at its end. */
typedef struct {
  const Digits *digits;
  int *order; /* [count] */
  float *x, *target; /* [inputs, batch], [labels, batch] */
  float *gradient, *first, *second, *workspace;
} Training;

/* Writes the pixels of the digits digit[count] into columns 0 .. count - 1 of x[inputs, lanes]. Handles a few
 * digits at a time, so that whole cache lines are written. */
static void digits_put_pixels(const Digits *digits, int count, const int *digit, int lanes, float *x) {
  enum { TOGETHER = 16 };
  for (int first = 0; first < count; first += TOGETHER) {
    const int together = count - first < TOGETHER ? count - first : TOGETHER;
    const unsigned char *pixels[TOGETHER];
    for (int n = 0; n < together; n++)
      pixels[n] = digits->pixels + (size_t)digit[first + n] * (size_t)digits->inputs;
    for (int i = 0; i < digits->inputs; i++)
      for (int n = 0; n < together; n++)
        x[(size_t)i * (size_t)lanes + (size_t)(first + n)] = (float)pixels[n][i] * (1.0f / 255);
  }
}

static Status digit_training_create(Arena *memory, const Digits *digits, const NetworkShape *shape,
                                    Training *out) {
  size_t parameters = network_parameters(shape);
  *out = (Training){.digits = digits};
  ALLOCATE(memory, out->order, digits->count);
  ALLOCATE(memory, out->x, (size_t)digits->inputs * CLASSIFIER_BATCH);
  ALLOCATE(memory, out->target, IDX_LABELS * CLASSIFIER_BATCH);
  ALLOCATE_ARRAYS(memory, parameters, out->gradient, out->first, out->second);
  ALLOCATE(memory, out->workspace, network_workspace(shape));
  for (int i = 0; i < digits->count; i++) out->order[i] = i;
  return STATUS_OK;
}

/* Shuffles the digits, from their order in the epoch before. */
static void digits_shuffle(Training *training, uint64_t seed, int start, int epoch) {
  Rng rng = {.key = rng_key(seed, RNG_NETWORK_TRAINING), .run = (uint32_t)start, .round = (uint32_t)epoch};
  for (int i = training->digits->count - 1; i > 0; i--) {
    int j = (int)rng_index(&rng, (uint64_t)i + 1), swap = training->order[i];
    training->order[i] = training->order[j], training->order[j] = swap;
  }
}

static void digits_fill_batch(Training *training, int step) {
  const Digits *digits = training->digits;
  int digit[CLASSIFIER_BATCH];
  memset(training->target, 0, IDX_LABELS * CLASSIFIER_BATCH * sizeof *training->target);
  for (int lane = 0; lane < CLASSIFIER_BATCH; lane++) {
    digit[lane] = training->order[((int64_t)step * CLASSIFIER_BATCH + lane) % digits->count];
    training->target[digits->label[digit[lane]] * CLASSIFIER_BATCH + lane] = 1;
  }
  digits_put_pixels(digits, CLASSIFIER_BATCH, digit, CLASSIFIER_BATCH, training->x);
}

/* Trains for one epoch; returns the mean loss over the epoch. */
static double digit_classifier_train_epoch(const Classifier *classifier, Training *training, int epoch,
                                           int epochs) {
  const NetworkShape *shape = &classifier->shape;
  int steps = (training->digits->count + CLASSIFIER_BATCH - 1) / CLASSIFIER_BATCH;
  double loss = 0;
  for (int step = 0; step < steps; step++) {
    digits_fill_batch(training, step);
    loss += network_entropy_gradient(shape, classifier->parameters, CLASSIFIER_BATCH, training->x,
                                     training->target, training->gradient, training->workspace) /
            steps;
    float rate = learning_rate(LEARNING_RATE, (epoch - 1) * steps + step + 1, epochs * steps);
    learning_adam(network_parameters(shape), rate, training->gradient, training->first, training->second,
                  classifier->parameters);
  }
  return loss;
}

void embedding_classifier_destroy(Classifier *classifier) {
  free(classifier->parameters);
  *classifier = (Classifier){0};
}

/* Computes y[count, outputs], the output for each digit of the layers in `shape`, which are the first ones of
 * the classifier. */
static Status digit_classifier_apply(const Classifier *classifier, const NetworkShape *shape,
                                     const Digits *digits, float *y) {
  enum { LANES = 4 * NETWORK_LANES };
  int outputs = shape->width[shape->layers];
  float *x, *part, *workspace;
  SCRATCH_ARENA(scratch);
  ALLOCATE(&scratch, x, (size_t)digits->inputs * LANES);
  ALLOCATE(&scratch, part, outputs * LANES);
  ALLOCATE(&scratch, workspace, network_workspace(shape));
  for (int first = 0; first < digits->count; first += LANES) {
    int digit[LANES], lanes = digits->count - first < LANES ? digits->count - first : LANES;
    for (int lane = 0; lane < lanes; lane++) digit[lane] = first + lane;
    digits_put_pixels(digits, lanes, digit, LANES, x);
    network_forward(shape, classifier->parameters, LANES, x, part, workspace);
    for (int lane = 0; lane < lanes; lane++)
      for (int j = 0; j < outputs; j++)
        y[(size_t)(first + lane) * (size_t)outputs + (size_t)j] = part[j * LANES + lane];
  }
  return STATUS_OK;
}

Status embedding_classifier_accuracy(const Classifier *classifier, const Digits *digits, double *accuracy) {
  SCRATCH_ARENA(scratch);
  float *y;
  int right = 0;
  ALLOCATE(&scratch, y, (size_t)digits->count * IDX_LABELS);
  TRY(digit_classifier_apply(classifier, &classifier->shape, digits, y));
  for (int i = 0; i < digits->count; i++) {
    const float *output = y + (size_t)i * IDX_LABELS;
    int best = 0;
    for (int j = 1; j < IDX_LABELS; j++)
      if (output[j] > output[best]) best = j;
    right += best == digits->label[i];
  }
  *accuracy = (double)right / digits->count;
  return STATUS_OK;
}

Status embedding_classifier_embed(const Classifier *classifier, const Digits *digits, double *features) {
  NetworkShape shape = classifier->shape;
  shape.layers--; /* the parameters of the layers up to the embedding come first */
  size_t values = (size_t)digits->count * CLASSIFIER_EMBEDDING;
  SCRATCH_ARENA(scratch);
  float *y;
  ALLOCATE(&scratch, y, values);
  TRY(digit_classifier_apply(classifier, &shape, digits, y));
  for (size_t i = 0; i < values; i++) features[i] = y[i] > 0 ? (double)y[i] : 0;
  return STATUS_OK;
}

/* Counts the units of the embedding that are on for at least ON_SHARE of the digits. */
static Status digit_classifier_count_alive(const Classifier *classifier, const Digits *digits, int *alive) {
  SCRATCH_ARENA(scratch);
  double *features;
  int on[CLASSIFIER_EMBEDDING] = {0};
  ALLOCATE(&scratch, features, (size_t)digits->count * CLASSIFIER_EMBEDDING);
  TRY(embedding_classifier_embed(classifier, digits, features));
  for (int i = 0; i < digits->count; i++)
    for (int j = 0; j < CLASSIFIER_EMBEDDING; j++)
      on[j] += features[(size_t)i * CLASSIFIER_EMBEDDING + (size_t)j] > 0;
  *alive = 0;
  for (int j = 0; j < CLASSIFIER_EMBEDDING; j++) *alive += on[j] >= ON_SHARE * digits->count;
  return STATUS_OK;
}

static Status digit_classifier_train_start(const Digits *digits, int epochs, uint64_t seed, int start,
                                           ClassifierProgress *progress, Classifier *out) {
  SCRATCH_ARENA(scratch);
  Training training;
  Rng rng = {.key = rng_key(seed, RNG_NETWORK_START), .run = (uint32_t)start};
  learning_start(&out->shape, &rng, out->parameters);
  TRY(digit_training_create(&scratch, digits, &out->shape, &training));
  for (int epoch = 1; epoch <= epochs; epoch++) {
    digits_shuffle(&training, seed, start, epoch);
    double loss = digit_classifier_train_epoch(out, &training, epoch, epochs);
    if (progress) progress(start, epoch, loss);
  }
  return STATUS_OK;
}

Status embedding_classifier_train(const Digits *digits, int epochs, uint64_t seed,
                                  ClassifierProgress *progress, Classifier *out) {
  *out = (Classifier){
      .shape = {LAYERS, {digits->inputs, FIRST_HIDDEN, SECOND_HIDDEN, CLASSIFIER_EMBEDDING, IDX_LABELS}}};
  NEW(out->parameters, network_parameters(&out->shape));
  while (out->alive < CLASSIFIER_EMBEDDING && out->starts < CLASSIFIER_STARTS) {
    TRY(digit_classifier_train_start(digits, epochs, seed, ++out->starts, progress, out));
    TRY(digit_classifier_count_alive(out, digits, &out->alive));
  }
  return STATUS_OK;
}

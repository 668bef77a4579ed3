#include "problem/embedding/embedding_classifier.h"

#include "model/network/learning.h"
#include "model/network/network_kernel.h"

#include <string.h>

enum { LAYERS = 4, FIRST_HIDDEN = 128, SECOND_HIDDEN = 64 };

static const double LEARNING_RATE = 2e-3, ON_SHARE = 0.01;

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

/* Trains one start. Digits are shuffled from their order in the epoch before; a batch is the next
 * CLASSIFIER_BATCH digits in the order, which starts over at its end. */
static Status digit_classifier_train_start(const Digits *digits, int epochs, uint64_t seed, int start,
                                           ClassifierProgress *progress, Classifier *out) {
  enum { BATCH = CLASSIFIER_BATCH };
  SCRATCH_ARENA(scratch);
  const NetworkShape *shape = &out->shape;
  const size_t parameters = network_parameters(shape);
  const int steps = (digits->count + BATCH - 1) / BATCH;
  int *order, digit[BATCH]; /* [count]; those of a batch */
  float *x, *target; /* [inputs, batch], [labels, batch] */
  float *gradient, *first, *second, *workspace; /* [parameters] each, network_workspace */
  ALLOCATE(&scratch, order, digits->count);
  ALLOCATE(&scratch, x, (size_t)digits->inputs * BATCH);
  ALLOCATE(&scratch, target, IDX_LABELS * BATCH);
  ALLOCATE_ARRAYS(&scratch, parameters, &gradient, &first, &second);
  ALLOCATE(&scratch, workspace, network_workspace(shape));
  for (int i = 0; i < digits->count; i++) order[i] = i;
  Rng rng = {.key = rng_key(seed, RNG_NETWORK_START), .run = (uint32_t)start};
  learning_start(shape, &rng, out->parameters);
  for (int epoch = 1; epoch <= epochs; epoch++) {
    rng = (Rng){.key = rng_key(seed, RNG_NETWORK_TRAINING), .run = (uint32_t)start, .round = (uint32_t)epoch};
    for (int i = digits->count - 1; i > 0; i--) {
      const int j = (int)rng_index(&rng, (uint64_t)i + 1), swap = order[i];
      order[i] = order[j], order[j] = swap;
    }
    double loss = 0; /* the mean over the epoch */
    for (int step = 0; step < steps; step++) {
      memset(target, 0, IDX_LABELS * BATCH * sizeof *target);
      for (int lane = 0; lane < BATCH; lane++) {
        digit[lane] = order[((int64_t)step * BATCH + lane) % digits->count];
        target[digits->label[digit[lane]] * BATCH + lane] = 1;
      }
      digits_put_pixels(digits, BATCH, digit, BATCH, x);
      loss += network_entropy_gradient(shape, out->parameters, BATCH, x, target, gradient, workspace) / steps;
      const float rate = learning_rate(LEARNING_RATE, (epoch - 1) * steps + step + 1, epochs * steps);
      learning_adam(parameters, rate, gradient, first, second, out->parameters);
    }
    if (progress) progress(start, epoch, loss);
  }
  return STATUS_OK;
}

Status embedding_classifier_train(Arena *memory, const Digits *digits, int epochs, uint64_t seed,
                                  ClassifierProgress *progress, Classifier *out) {
  SCRATCH_ARENA(scratch);
  const size_t values = (size_t)digits->count * CLASSIFIER_EMBEDDING;
  double *features;
  *out = (Classifier){
      .shape = {LAYERS, {digits->inputs, FIRST_HIDDEN, SECOND_HIDDEN, CLASSIFIER_EMBEDDING, IDX_LABELS}}};
  ALLOCATE(&scratch, features, values);
  ALLOCATE(memory, out->parameters, network_parameters(&out->shape));
  while (out->alive < CLASSIFIER_EMBEDDING && out->starts < CLASSIFIER_STARTS) {
    TRY(digit_classifier_train_start(digits, epochs, seed, ++out->starts, progress, out));
    TRY(embedding_classifier_embed(out, digits, features));
    int on[CLASSIFIER_EMBEDDING] = {0}; /* digits for which each unit of the embedding is on */
    for (size_t i = 0; i < values; i++) on[i % CLASSIFIER_EMBEDDING] += features[i] > 0;
    out->alive = 0;
    for (int j = 0; j < CLASSIFIER_EMBEDDING; j++) out->alive += on[j] >= ON_SHARE * digits->count;
  }
  return STATUS_OK;
}

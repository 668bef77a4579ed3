/* The classifier of digits and the means of its training: gradients against differences, outputs against the
 * plain double-precision network, a separable problem. */
#include "harness.h"
#include "levels.h"
#include "model/network/network_plain.h"

#include "core/arena.h"
#include "core/rng.h"
#include "model/network/learning.h"
#include "model/network/network_kernel.h"
#include "problem/embedding/embedding_classifier.h"

#include <stdlib.h>
#include <string.h>

DECLARE_LEVELS(network_entropy_gradient);

enum { LEVELS = 3, MOST_WIDTH = 256 };

typedef float Gradient(const NetworkShape *, const float *, int, const float *, const float *, float *,
                       float *);
static const struct {
  SimdLevel level;
  Gradient *gradient;
} kernels[LEVELS] = {{SIMD_V1, network_entropy_gradient_v1},
                     {SIMD_V3, network_entropy_gradient_v3},
                     {SIMD_V4, network_entropy_gradient_v4}};

static const NetworkShape shapes[] = {
    {1, {3, 4}}, {2, {5, 7, 3}}, {4, {20, 128, 64, 8, 10}}, {3, {9, 33, 16, 2}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void *zeros(size_t count, size_t size) {
  void *out;
  CU_ASSERT_FATAL(memory_new(&out, count, size) == STATUS_OK);
  return out;
}

/* A network with inputs and targets; the two precisions hold the same numbers. */
typedef struct {
  const NetworkShape *shape;
  int lanes, in, out;
  size_t parameters;
  double *p, *x, *target;
  float *p_single, *x_single, *target_single, *gradient, *workspace;
} Example;

static double *normals(Rng *rng, size_t n, double scale, float **single) {
  double *out = zeros(n, sizeof *out);
  *single = zeros(n, sizeof **single);
  rng_normal(rng, (int)n, out);
  for (size_t i = 0; i < n; i++) out[i] = (*single)[i] = (float)(scale * out[i]);
  return out;
}

/* Draws targets: a certain class in even lanes, probabilities in odd lanes. */
static void draw_targets(Example *e, Rng *rng) {
  e->target = zeros((size_t)e->out * (size_t)e->lanes, sizeof *e->target);
  e->target_single = zeros((size_t)e->out * (size_t)e->lanes, sizeof *e->target_single);
  for (int lane = 0; lane < e->lanes; lane++) {
    int label = (int)rng_index(rng, (uint64_t)e->out), other = (label + 1) % e->out;
    e->target[label * e->lanes + lane] = lane % 2 ? 0.75 : 1;
    if (lane % 2) e->target[other * e->lanes + lane] = 0.25;
  }
  for (int i = 0; i < e->out * e->lanes; i++) e->target_single[i] = (float)e->target[i];
}

static Example example(int index, int lanes) {
  const NetworkShape *shape = &shapes[index];
  Example e = {.shape = shape, .lanes = lanes, .in = shape->width[0], .out = shape->width[shape->layers]};
  Rng rng = {.key = rng_key(1, RNG_TEST), .run = (uint32_t)index};
  e.parameters = network_parameters(shape);
  e.p = normals(&rng, e.parameters, 0.3, &e.p_single);
  e.x = normals(&rng, (size_t)e.in * (size_t)lanes, 1, &e.x_single);
  e.gradient = zeros(e.parameters, sizeof *e.gradient);
  e.workspace = zeros(network_workspace(shape), sizeof *e.workspace);
  draw_targets(&e, &rng);
  return e;
}

static void example_free(Example *e) {
  void *blocks[] = {e->p,        e->x,        e->target, e->p_single, e->x_single, e->target_single,
                    e->gradient, e->workspace};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* Computes the mean cross entropy by its definition, through the reference network. */
static double reference_loss(const Example *e) {
  double loss = 0, x[MOST_WIDTH], y[MOST_WIDTH];
  for (int lane = 0; lane < e->lanes; lane++) {
    double sum = 0;
    for (int i = 0; i < e->in; i++) x[i] = e->x[i * e->lanes + lane];
    network_plain_forward(e->shape, e->p, x, y);
    for (int j = 0; j < e->out; j++) sum += exp(y[j]);
    for (int j = 0; j < e->out; j++) loss -= e->target[j * e->lanes + lane] * log(exp(y[j]) / sum) / e->lanes;
  }
  return loss;
}

/* Returns slope[parameters]: central differences of the reference loss for every `stride`-th parameter. */
static double *differences(Example *e, size_t stride) {
  const double h = 1e-6;
  double *slope = zeros(e->parameters, sizeof *slope);
  for (size_t j = 0; j < e->parameters; j += stride) {
    double keep = e->p[j], up, down;
    e->p[j] = keep + h;
    up = reference_loss(e);
    e->p[j] = keep - h;
    down = reference_loss(e);
    e->p[j] = keep;
    slope[j] = (up - down) / (2 * h);
  }
  return slope;
}

/* Checks gradients against differences, which are good to about 1e-9 here; float32 to 5e-6 of the largest
 * entry, as in test_network.c. */
static void test_gradient_against_differences(void) {
  for (int i = 0; i < SHAPES; i++) {
    Example e = example(i, i == 0 ? 64 : 192);
    size_t stride = 1 + e.parameters / 200;
    double loss = reference_loss(&e), *slope = differences(&e, stride);
    for (int k = 0; k < LEVELS && kernels[k].level <= simd_level(); k++) {
      float found;
      double error = 0, largest = 0;
      found = kernels[k].gradient(e.shape, e.p_single, e.lanes, e.x_single, e.target_single, e.gradient,
                                  e.workspace);
      CHECK_NEAR(found, loss, 2e-6 * loss);
      for (size_t j = 0; j < e.parameters; j += stride) {
        error = fmax(error, fabs(e.gradient[j] - slope[j]));
        largest = fmax(largest, fabs(slope[j]));
      }
      CU_ASSERT(largest > 0);
      CHECK_NEAR(error / largest, 0, 5e-6);
    }
    free(slope);
    example_free(&e);
  }
}

static void test_same_bits(void) {
  if (simd_level() < SIMD_V4) return;
  for (int i = 0; i < SHAPES; i++) {
    Example e = example(i, 128), f = example(i, 128);
    float loss_e, loss_f;
    loss_e =
        kernels[1].gradient(e.shape, e.p_single, 128, e.x_single, e.target_single, e.gradient, e.workspace);
    loss_f =
        kernels[2].gradient(f.shape, f.p_single, 128, f.x_single, f.target_single, f.gradient, f.workspace);
    CU_ASSERT(!memcmp(&loss_e, &loss_f, sizeof loss_e));
    CU_ASSERT(!memcmp(e.gradient, f.gradient, e.parameters * sizeof *e.gradient));
    example_free(&e), example_free(&f);
  }
}

/* Checks outputs 1000 apart: exp must neither overflow nor give a zero divisor; the loss is the distance of
 * the outputs. */
static void test_extreme_outputs(void) {
  const NetworkShape shape = {1, {1, 2}};
  const float parameters[4] = {1000, -1000, 0, 0};
  float x[NETWORK_LANES], target[2 * NETWORK_LANES] = {0}, gradient[4], loss;
  float *workspace = zeros(network_workspace(&shape), sizeof *workspace);
  for (int lane = 0; lane < NETWORK_LANES; lane++) x[lane] = 0.5f, target[NETWORK_LANES + lane] = 1;
  loss = network_entropy_gradient(&shape, parameters, NETWORK_LANES, x, target, gradient, workspace);
  CHECK_NEAR(loss, 1000, 0);
  CHECK_NEAR(gradient[0], 0.5, 1e-6);
  CHECK_NEAR(gradient[1], -0.5, 1e-6);
  CHECK_NEAR(gradient[2], 1, 1e-6);
  free(workspace);
}

/* Checks that weights start with variance 2 / inputs (128 x 20 and 64 x 128 of them: 4 standard errors of a
 * variance), and biases at 0. */
static void test_start(void) {
  const NetworkShape *shape = &shapes[2];
  float *parameters = zeros(network_parameters(shape), sizeof *parameters), *p = parameters;
  Rng rng = {.key = rng_key(3, RNG_TEST)};
  learning_start(shape, &rng, parameters);
  for (int l = 0; l < shape->layers; l++) {
    int in = shape->width[l], out = shape->width[l + 1], n = in * out;
    double mean = 0, square = 0, variance = 2.0 / in;
    for (int i = 0; i < n; i++) mean += p[i] / (double)n, square += (double)p[i] * p[i] / n;
    CHECK_NEAR(mean, 0, 4 * sqrt(variance / n));
    CHECK_NEAR(square, variance, 4 * variance * sqrt(2.0 / n));
    for (int j = 0; j < out; j++) CU_ASSERT(p[n + j] == 0);
    p += n + out;
  }
  free(parameters);
}

/* Checks Adam (Kingma and Ba): a constant gradient of any size moves a parameter by the rate in each step. */
static void test_adam(void) {
  enum { STEPS = 100 };
  const float gradient[3] = {1e-3f, -50, 0};
  float first[3] = {0}, second[3] = {0}, parameters[3] = {1, 2, 3};
  double moved = 0;
  for (int step = 1; step <= STEPS; step++) {
    double fall = 0.5 * (1 + cos(M_PI * (step - 1) / STEPS)), rise = step < 5 ? step / 5.0 : 1;
    moved += 0.01 * fall * rise;
    learning_adam(3, learning_rate(0.01, step, STEPS), gradient, first, second, parameters);
  }
  CHECK_NEAR(parameters[0], 1 - moved, 1e-4); /* its constant 1e-8 is 1e-5 of the gradient */
  CHECK_NEAR(parameters[1], 2 + moved, 1e-5);
  CHECK_NEAR(parameters[2], 3, 0);
  CHECK_NEAR(learning_rate(1, STEPS, STEPS), 0, 1e-3);
}

static Arena kept; /* what is read and trained; freed at the end */

/* Makes digits: label l lights pixel l of 16, at random strength, and the others are noise below it:
 * separable by the largest pixel. */
static Digits toy_digits(int count, uint32_t run) {
  Digits digits = {.count = count, .inputs = 16};
  Rng rng = {.key = rng_key(2, RNG_TEST), .run = run};
  if (arena_new(&kept, (void **)&digits.pixels, (size_t)count, 16) ||
      arena_new(&kept, (void **)&digits.label, (size_t)count, 1))
    abort();
  for (int i = 0; i < count; i++) {
    digits.label[i] = (unsigned char)rng_index(&rng, IDX_LABELS);
    for (int j = 0; j < 16; j++) digits.pixels[i * 16 + j] = (unsigned char)rng_index(&rng, 90);
    digits.pixels[i * 16 + digits.label[i]] = (unsigned char)(150 + rng_index(&rng, 106));
  }
  return digits;
}

static int told, last_start, last_epoch;
static double first_loss, last_loss;
static void tell(int start, int epoch, double loss) {
  if (start == 1 && epoch == 1) first_loss = loss;
  told++, last_start = start, last_epoch = epoch, last_loss = loss;
}

static void test_separable_problem(void) {
  Digits training = toy_digits(1000, 0), test = toy_digits(300, 1);
  Classifier classifier;
  double accuracy;
  told = 0;
  CHECK_OK(embedding_classifier_train(&kept, &training, 40, 1, tell, &classifier));
  CU_ASSERT_EQUAL(classifier.alive, CLASSIFIER_EMBEDDING);
  CU_ASSERT_EQUAL(told, 40 * classifier.starts);
  CU_ASSERT_EQUAL(last_start, classifier.starts);
  CU_ASSERT_EQUAL(last_epoch, 40);
  CHECK_NEAR(first_loss, log(10), 0.7); /* nothing learned yet: about the loss of a guess */
  CU_ASSERT(last_loss < 0.02);
  CHECK_OK(embedding_classifier_accuracy(&classifier, &test, &accuracy));
  CHECK_NEAR(accuracy, 1, 0.01);
}

static void test_same_seed_same_classifier(void) {
  Digits training = toy_digits(200, 0);
  Classifier one, two, other;
  CHECK_OK(embedding_classifier_train(&kept, &training, 3, 5, NULL, &one));
  CHECK_OK(embedding_classifier_train(&kept, &training, 3, 5, NULL, &two));
  CHECK_OK(embedding_classifier_train(&kept, &training, 3, 6, NULL, &other));
  size_t bytes = network_parameters(&one.shape) * sizeof *one.parameters;
  CU_ASSERT(!memcmp(one.parameters, two.parameters, bytes));
  CU_ASSERT(memcmp(one.parameters, other.parameters, bytes));
}

/* Checks embeddings and accuracy of 300 digits (more than one chunk, the last one partly full) against the
 * reference network. */
static void test_outputs_against_the_reference(void) {
  Digits digits = toy_digits(300, 2);
  Classifier classifier;
  double features[300 * CLASSIFIER_EMBEDDING], accuracy, p[128 * 17 + 64 * 129 + 8 * 65 + 10 * 9];
  int right = 0;
  CHECK_OK(embedding_classifier_train(&kept, &digits, 2, 1, NULL,
                                      &classifier)); /* training not finished: some digits are wrong */
  CHECK_OK(embedding_classifier_embed(&classifier, &digits, features));
  CHECK_OK(embedding_classifier_accuracy(&classifier, &digits, &accuracy));
  NetworkShape whole = {4, {16, 128, 64, 8, 10}}, part = {3, {16, 128, 64, 8}};
  CU_ASSERT_EQUAL_FATAL(network_parameters(&whole), sizeof p / sizeof *p);
  for (size_t i = 0; i < sizeof p / sizeof *p; i++) p[i] = classifier.parameters[i];
  for (int i = 0; i < digits.count; i++) {
    double x[16], hidden[8], y[10];
    int best = 0;
    for (int j = 0; j < 16; j++) x[j] = digits.pixels[i * 16 + j] / 255.0;
    network_plain_forward(&part, p, x, hidden);
    network_plain_forward(&whole, p, x, y);
    for (int j = 0; j < 8; j++) CHECK_NEAR(features[i * 8 + j], fmax(0, hidden[j]), 1e-5);
    for (int j = 0; j < 10; j++)
      if (y[j] > y[best]) best = j;
    right += best == digits.label[i];
  }
  CU_ASSERT(right > 10 && right < 295);
  CHECK_NEAR(accuracy, right / 300.0, 1e-12);
}

/* Checks dead units: black images leave every unit off, whatever the start, so all starts are tried and the
 * outcome is reported. */
static void test_dead_units_are_noticed(void) {
  Digits digits = toy_digits(128, 0);
  Classifier classifier;
  memset(digits.pixels, 0, 128 * 16);
  CHECK_OK(embedding_classifier_train(&kept, &digits, 1, 1, NULL, &classifier));
  CU_ASSERT_EQUAL(classifier.alive, 0);
  CU_ASSERT_EQUAL(classifier.starts, CLASSIFIER_STARTS);
}

int main(void) {
  CU_TestInfo tests[] = {{"gradient against differences", test_gradient_against_differences},
                         {"v3 and v4 give the same bits", test_same_bits},
                         {"extreme outputs", test_extreme_outputs},
                         {"start", test_start},
                         {"Adam", test_adam},
                         {"separable problem", test_separable_problem},
                         {"same seed, same classifier", test_same_seed_same_classifier},
                         {"outputs against the reference", test_outputs_against_the_reference},
                         {"dead units are noticed", test_dead_units_are_noticed},
                         CU_TEST_INFO_NULL};
  const int status = harness_run("classifier", tests);
  arena_free(&kept);
  return status;
}

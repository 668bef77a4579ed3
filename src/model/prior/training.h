/* Fits the noise predictor of one stage by regression (DiffTS paper, equation 15): it minimises E |eps -
 * network(s_t)|^2 with s_t = sqrt(alpha_bar_t) z + sqrt(1 - alpha_bar_t) eps, with fresh noise in every step,
 * and each noise paired with its negative. Adam starts from the best linear predictor (training_start), with
 * a learning rate that rises over a twentieth of the steps and then falls to zero along a cosine; the
 * parameters that are best on held-out samples are kept. A group of stages depends only on (fit, samples,
 * group). */
#pragma once

#include "model/network/network.h"
#include "model/prior/training_samples.h"

/* What all stages share. `fit` is not owned. */
typedef struct {
  const PriorFit *fit;
  Schedule schedule;
  NetworkShape shape;
  int d;
  TrainingSamples samples; /* the same for all stages */
  double *mean, *deviation; /* [d], of the samples as the network sees them: 0 and 1 if standardised */
  /* Scratch of training_stage. */
  int batch, checked; /* lanes of a step and of a held-out evaluation */
  float *gradient, *first, *second,
      *best; /* [parameters]: Adam's gradient and moments; the best parameters so far */
  float *x, *noise, *predicted; /* [d, batch or checked, whichever is larger] */
  float *held_x, *held_noise; /* [d, checked] */
  float *workspace; /* of the network */
  double *uniform, *normal; /* [batch / 2], [d, batch or checked] */
} TrainingSetup;

/* Creates the setup. Returns STATUS_INPUT if there are no samples, or if they are too large to be used
 * without standardisation. */
Status training_create(Arena *memory, const PriorFit *fit, const Samples *samples, TrainingSetup *out);

/* Trains parameters[network_parameters] of stage t = 1 .. T from their own start; *loss is the mean squared
 * error of the noise per coordinate on held-out samples. It takes alpha_bar_t times the steps of `fit`, or a
 * third of them if that is more. The batch is rounded up to a multiple of NETWORK_LANES. */
void training_stage(TrainingSetup *setup, int t, float *parameters, double *loss);

/* The stages of a group are trained one after the other: the first from its own start, each later one from
 * the network of the stage before, with a share of the steps and the square of that share of the rate. The
 * share is half the drop of log(alpha_bar / (1 - alpha_bar)) between the two stages, and at least a third; a
 * stage whose share would be 1 or more has its own start. Groups do not depend on each other. */
enum { TRAINING_GROUP = 10 };
int training_groups(const PriorFit *fit);
/* Returns the number of doubles per stage: its parameters and its loss. */
size_t training_stage_values(const PriorFit *fit, int d);
/* Computes out[TRAINING_GROUP, training_stage_values] of group 0 .. training_groups - 1; the last group may
 * have fewer stages. Returns STATUS_STOPPED if the thread's tick (core/core_tick.h), which is asked before
 * each step, gives up. */
Status training_group(TrainingSetup *setup, int group, double *out);

/* Settles a fit (PriorOps.settle): two hidden layers of 10 d units; wide networks get a smaller learning
 * rate. */
void training_settle(PriorFit *fit, int d);

/* Starts parameters[network_parameters] of a noise predictor at a stage of this alpha_bar, for samples with
 * mean[d] and deviation[d]. Hidden weights and biases are N(0, 2 / inputs), a bias being the weight of an
 * input of 1: with biases of 0 every kink of the first layer would begin at the origin. A hidden layer
 * narrower than 4 d has no room for the linear predictor: the network is then 0 everywhere at first. */
void training_start(const NetworkShape *shape, double alpha_bar, const double *mean, const double *deviation,
                    Rng *rng, float *parameters);

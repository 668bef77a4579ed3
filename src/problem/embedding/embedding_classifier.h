/* The classifier of digits whose last hidden layer gives their embeddings (DiffTS paper, Appendix C.2):
 * inputs - 128 - 64 - 8 - 10, ReLU after every layer but the last (so embeddings are not negative), softmax
 * cross entropy. Only the 8 is given in the paper.
 *
 * It is trained by Adam on minibatches of 128, with each digit once per epoch, in a new random order, and
 * with the step sizes of network.h. Pixels enter as value / 255. A classifier depends only on the digits,
 * the epochs and the seed; processors with and without fused multiply-add may differ in the last digits, as
 * everywhere in network.h.
 *
 * A ReLU unit that is off for all digits has no gradient and stays off: the embedding would have fewer than 8
 * dimensions. With He's random start this happens to at least one unit in about one start in five, whatever
 * the first biases or the rate (0 to 1, 1e-3 and 2e-3 were tried). So a classifier with a unit that is on for
 * less than 1% of the digits is discarded, and another start is trained. */
#pragma once

#include "model/network/network.h"
#include "problem/embedding/embedding_idx.h"

#include <stdint.h>

enum { CLASSIFIER_EMBEDDING = 8, CLASSIFIER_BATCH = 2 * NETWORK_LANES, CLASSIFIER_STARTS = 10 };

typedef struct {
  NetworkShape shape;
  float *parameters;
  int starts; /* starts that were trained; the last one is kept */
  int alive; /* units of the embedding that are on for at least 1% of the training digits */
} Classifier;

/* Called with the mean loss of each epoch; start and epoch count from 1. */
typedef void ClassifierProgress(int start, int epoch, double loss);

/* Trains until all units of the embedding are alive, from at most CLASSIFIER_STARTS starts; `progress` may be
 * NULL. */
Status embedding_classifier_train(Arena *memory, const Digits *digits, int epochs, uint64_t seed,
                                  ClassifierProgress *progress, Classifier *out);

/* Computes the share of the digits whose largest output is that of their label. */
Status embedding_classifier_accuracy(const Classifier *classifier, const Digits *digits, double *accuracy);
/* Computes features[count, CLASSIFIER_EMBEDDING]: the last hidden layer, after its ReLU. */
Status embedding_classifier_embed(const Classifier *classifier, const Digits *digits, double *features);

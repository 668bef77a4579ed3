/* The samples of theta from which a network learns a prior: standardised, shuffled, and some of them held
 * out. Also contaminated samples, from which any family can learn. */
#pragma once

#include "io/digest.h"
#include "model/prior/prior.h"

typedef struct {
  int d, training, held_out; /* numbers of samples; the held-out ones are last */
  double *shift, *scale; /* [d]: theta = shift + scale z */
  float *z; /* [training + held_out, d], standardised, in the order of the split */
} TrainingSamples;

/* Computes shift[d] and scale[d] of the standardisation of theta[d, n]: mean and standard deviation of each
 * coordinate (1 if that is zero), or 0 and 1 if it is not wanted. */
void training_standardise(bool wanted, const Samples *samples, double *shift, double *scale);

/* Holds out a tenth of the samples (1 .. 2048 of them); a single sample serves as both. The split depends
 * only on the seed and replicate of `fit`. */
Status training_samples_create(Arena *memory, const PriorFit *fit, bool standardise, const Samples *samples,
                               TrainingSamples *out);

/* Returns the place in z of the training sample that this uniform number picks. */
int training_samples_pick(const TrainingSamples *samples, double uniform);

/* The samples that a prior with networks was fitted to, as its file tells. */
typedef struct {
  int64_t count;
  char sha256[DIGEST_SIZE]; /* of theta */
} TrainingOrigin;
Status training_origin_find(const Samples *samples, TrainingOrigin *out);
/* Saves and loads it, with shift[d] and scale[d]; `dim` is the dimension of theta. */
Status training_origin_save(const TrainingOrigin *origin, const double *shift, const double *scale,
                            StoreFile *file, int dim);
Status training_origin_load(StoreFile *file, size_t d, TrainingOrigin *out, double *shift, double *scale);
/* Checks that shift and scale, fitted or read, are finite and that scale is above 0. */
Status training_check_scale(const char *name, int d, const double *shift, const double *scale);

/* Replaces each of the samples theta[d, n], with probability fit->contamination, by a draw from a Gaussian
 * with the samples' mean, independent coordinates and fit->guard_width times the samples' standard
 * deviations: a simple alternative to a guard (sampler/guard.h), since a prior learned from them has some
 * density wherever the wide Gaussian has. */
Status training_samples_contaminate(const PriorFit *fit, Samples *samples);

#include "model/prior/training_samples.h"

#include "model/mixture/mixture_frame.h"

#include <math.h>
#include <stdio.h>

enum { MOST_HELD_OUT = 2048 };

void training_standardise(bool wanted, const Samples *samples, double *shift, double *scale) {
  int n = samples->n;
  double least = INFINITY;
  for (int i = 0; i < samples->d; i++) {
    const double *row = samples->theta + (size_t)i * (size_t)n;
    shift[i] = 0, scale[i] = 1;
    if (!wanted) continue;
    double mean = 0, squares = 0; /* of distances to the first sample, so that constants have variance 0 */
    for (int j = 0; j < n; j++) mean += (row[j] - row[0]) / n;
    for (int j = 0; j < n; j++) squares += (row[j] - row[0] - mean) * (row[j] - row[0] - mean) / n;
    shift[i] = row[0] + mean;
    scale[i] = sqrt(squares);
    if (squares > 0) least = fmin(least, scale[i]);
  }
  for (int i = 0; i < samples->d; i++)
    if (scale[i] == 0) scale[i] = mixture_frame_constant_width(shift[i], least);
}

Status training_samples_create(Arena *memory, const PriorFit *fit, bool standardise, const Samples *samples,
                               TrainingSamples *out) {
  SCRATCH_ARENA(scratch);
  int d = samples->d, n = samples->n, tenth = n / 10, *order;
  const int held_out = tenth < 1 ? 1 : tenth > MOST_HELD_OUT ? MOST_HELD_OUT : tenth;
  const size_t rows = (size_t)n, values = (size_t)d * rows;
  /* Without standardisation the noise of a stage, of variance below 1, must still show in floats, which have
   * 24 bits. */
  const double most = standardise ? INFINITY : 1e6;
  *out = (TrainingSamples){.d = d, .training = n - held_out, .held_out = held_out};
  if (n < 1) return status_set(STATUS_INPUT, "a prior cannot be learned from no samples");
  for (size_t k = 0; k < values; k++)
    if (fabs(samples->theta[k]) > most)
      return status_set(STATUS_INPUT,
                        "coordinate %zu of sample %zu of theta is %g; without standardisation "
                        "(prior.standardise: false) its absolute value must be at most %g",
                        k / rows + 1, k % rows + 1, samples->theta[k], most);
  ALLOCATE_ARRAYS(memory, d, &out->shift, &out->scale);
  training_standardise(standardise, samples, out->shift, out->scale);
  ALLOCATE(memory, out->z, values);
  ALLOCATE(&scratch, order, n);
  /* Everything learned from these samples uses the same order. It is drawn from round 0 of the training
   * streams, since stages count from 1. */
  rng_permutation(&(Rng){.key = rng_key(fit->seed, RNG_NETWORK_TRAINING), .run = fit->replicate}, n, order);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < n; j++) {
      double theta = samples->theta[(size_t)i * (size_t)n + (size_t)order[j]];
      out->z[(size_t)j * (size_t)d + (size_t)i] = (float)((theta - out->shift[i]) / out->scale[i]);
    }
  return STATUS_OK;
}

int training_samples_pick(const TrainingSamples *samples, double uniform) {
  return (int)(uniform * (samples->training ? samples->training : samples->held_out));
}

Status training_origin_find(const Samples *samples, TrainingOrigin *out) {
  const size_t values = (size_t)samples->d * (size_t)samples->n;
  out->count = samples->n;
  return digest_hex(samples->theta, values * sizeof *samples->theta, out->sha256);
}

Status training_origin_save(const TrainingOrigin *origin, const double *shift, const double *scale,
                            StoreFile *file, int dim) {
  TRY(store_int_attribute(file, "training_samples", origin->count));
  TRY(store_text_attribute(file, NULL, "training_samples_sha256", origin->sha256));
  TRY(store_write(file, "shift", STORE_DOUBLE, 1, &dim,
                  "theta = shift + scale z: mean of the training samples", "1", shift));
  return store_write(file, "scale", STORE_DOUBLE, 1, &dim,
                     "theta = shift + scale z: standard deviation of the training samples", "1", scale);
}

Status training_origin_load(StoreFile *file, size_t d, TrainingOrigin *out, double *shift, double *scale) {
  SCRATCH_ARENA(scratch);
  const char *text;
  TRY(store_shape(file, "shift", 1, &d));
  TRY(store_shape(file, "scale", 1, &d));
  TRY(store_get_doubles(file, "shift", shift));
  TRY(store_get_doubles(file, "scale", scale));
  TRY(store_get_int_attribute(file, "training_samples", &out->count));
  TRY(store_get_text_attribute(&scratch, file, "training_samples_sha256", &text));
  snprintf(out->sha256, sizeof out->sha256, "%s", text);
  return STATUS_OK;
}

Status training_check_scale(const char *name, int d, const double *shift, const double *scale) {
  for (int i = 0; i < d; i++)
    if (!isfinite(shift[i]) || !(scale[i] > 0) || !isfinite(scale[i]))
      return status_set(STATUS_INPUT,
                        "%s: shift %g, scale %g of coordinate %d; both must be finite, and scale above 0",
                        name, shift[i], scale[i], i);
  return STATUS_OK;
}

Status training_samples_contaminate(const PriorFit *fit, Samples *samples) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)samples->d, n = (size_t)samples->n;
  double *shift, *scale, *normal;
  if (!(fit->contamination > 0)) return STATUS_OK;
  ALLOCATE_ARRAYS(&scratch, d, &shift, &scale, &normal);
  training_standardise(true, samples, shift, scale);
  for (size_t j = 0; j < n; j++) {
    Rng rng = {.key = rng_key(fit->seed, RNG_CONTAMINATION), .run = fit->replicate, .draw = (uint32_t)j};
    double uniform;
    rng_uniform(&rng, 1, &uniform);
    if (uniform >= fit->contamination) continue;
    rng_normal(&rng, samples->d, normal);
    for (size_t i = 0; i < d; i++)
      samples->theta[i * n + j] = shift[i] + fit->guard_width * scale[i] * normal[i];
  }
  return STATUS_OK;
}

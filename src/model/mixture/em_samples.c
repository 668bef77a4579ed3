#include "model/mixture/em_samples.h"

#include "core/lanes.h"

#include <cblas.h>
#include <string.h>

/* Limits of a chunk: in many dimensions it has fewer samples, for the sake of their features. */
enum { MOST_FEATURES = 1 << 21, LEAST_CHUNK = 8 };

/* Fills features[F, chunk] of the chunk at z. */
SIMD_CLONES
static void em_fill_features(int d, int chunk, size_t stride, const double *restrict z,
                             double *restrict features) {
  double *restrict row = features + (size_t)(1 + d) * (size_t)chunk;
  for (int n = 0; n < chunk; n++) features[n] = 1;
  for (int i = 0; i < d; i++) {
    const double *restrict z_i = z + (size_t)i * stride;
    memcpy(features + (1 + i) * chunk, z_i, (size_t)chunk * sizeof *features);
    for (int j = 0; j <= i; j++, row += chunk) {
      const double *restrict z_j = z + (size_t)j * stride;
      for (int n = 0; n < chunk; n++) row[n] = z_i[n] * z_j[n];
    }
  }
}

/* Multiplies each row of features[F, chunk] by factor[chunk]. */
SIMD_CLONES
static void em_scale_features(int rows, int chunk, const double *restrict factor, double *restrict features) {
  for (int f = 0; f < rows; f++)
    for (int n = 0; n < chunk; n++) features[f * chunk + n] *= factor[n];
}

/* Adds share features' to sums[C, F]. */
static void em_add_features(const EmSamples *self, int components, double *sums) {
  const int features = (int)em_features(self->data.d);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, components, features, self->chunk, 1, self->share,
              self->chunk, self->features, self->chunk, 1, sums, features);
}

static double em_samples_expect(EmData *data, int items, const Mixture *mixture, double *sums) {
  EmSamples *self = (EmSamples *)data;
  const int features = (int)em_features(data->d), components = mixture->components, chunk = self->chunk;
  double top[CHUNK_SAMPLES], total[CHUNK_SAMPLES], sum = 0;
  /* coefficient[C, F] multiplies the features in log weight_c N(z | c). */
  double *coefficient = self->coefficient;
  for (size_t c = 0, d = (size_t)data->d; c < (size_t)components; c++) {
    const double *precision = mixture->precision + c * d * d, *information = mixture->information + c * d;
    double *constant = coefficient++;
    *constant = mixture->log_norm[c];
    for (size_t i = 0; i < d; i++) {
      *constant -= 0.5 * mixture->mean[c * d + i] * information[i];
      *coefficient++ = information[i];
    }
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j <= i; j++) *coefficient++ = (i == j ? -0.5 : -1) * precision[i * d + j];
  }
  for (int first = 0; first < items; first += chunk) {
    double own = 0;
    em_fill_features(data->d, chunk, (size_t)self->padded, self->z + first, self->features);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, components, chunk, features, 1, self->coefficient,
                features, self->features, chunk, 0, self->share, chunk);
    lanes_exponentiate(components, chunk, self->share, top, total);
    for (int n = 0; n < chunk && first + n < items; n++) own += top[n] + log(total[n]);
    for (int n = 0; n < chunk; n++) total[n] = first + n < items ? 1 / total[n] : 0;
    em_scale_features(features, chunk, total, self->features);
    em_add_features(self, components, sums);
    sum += own;
  }
  return sum;
}

/* Lowers distance[padded] and sets nearest[padded] where `centre` is closer than all before; returns the sum
 * of the squared distances of the first `items`. */
SIMD_CLONES
static double em_approach_centre(EmSamples *self, int items, int c) {
  const size_t stride = (size_t)self->padded;
  const int chunk = self->chunk;
  const double *restrict z = self->z;
  double *restrict distance = self->distance, sum = 0;
  int *restrict nearest = self->nearest;
  for (int first = 0; first < items; first += chunk) {
    double square[CHUNK_SAMPLES] = {0};
    for (size_t i = 0; i < (size_t)self->data.d; i++) {
      const double *restrict z_i = z + i * stride + (size_t)first;
      double centre = self->centre[i];
      for (int n = 0; n < chunk; n++) square[n] += (z_i[n] - centre) * (z_i[n] - centre);
    }
    for (int n = 0; n < chunk; n++) {
      int nearer = c == 0 || square[n] < distance[first + n];
      nearest[first + n] = nearer ? c : nearest[first + n];
      distance[first + n] = nearer ? square[n] : distance[first + n];
    }
  }
  for (int n = 0; n < items; n++) sum += distance[n];
  return sum;
}

static void em_samples_place(EmData *data, int item, double *z) {
  const EmSamples *self = (const EmSamples *)data;
  for (size_t i = 0; i < (size_t)data->d; i++) z[i] = self->z[i * (size_t)self->padded + (size_t)item];
}

/* Chooses samples as centres: by k-means++ in even starts, with probability proportional to the squared
 * distance from the centres so far; uniformly in odd starts, which finds optima where one component lies on
 * another (measured: swirl). Every sample is assigned to the nearest centre. */
static void em_samples_seed(EmData *data, int items, int components, Rng *rng, double *sums) {
  EmSamples *self = (EmSamples *)data;
  const int chunk = self->chunk;
  double sum = 0;
  for (int c = 0; c < components; c++) {
    int k = (int)rng_index(rng, (uint64_t)items);
    if (sum > 0 && rng->round % 2 == 0) {
      double u;
      rng_uniform(rng, 1, &u);
      double below = u * sum;
      for (k = 0; k + 1 < items && below >= self->distance[k]; k++) below -= self->distance[k];
    }
    em_samples_place(data, k, self->centre);
    sum = em_approach_centre(self, items, c);
  }
  for (int first = 0; first < items; first += chunk) {
    for (int c = 0; c < components; c++)
      for (int n = 0; n < chunk; n++)
        self->share[c * chunk + n] = first + n < items && self->nearest[first + n] == c;
    em_fill_features(data->d, chunk, (size_t)self->padded, self->z + first, self->features);
    em_add_features(self, components, sums);
  }
}

Status em_samples_create(Arena *memory, int d, int n, const double *z, int first, int items, int components,
                         EmSamples *out) {
  const size_t features = em_features(d), count = (size_t)components;
  int chunk = CHUNK_SAMPLES;
  while (chunk > LEAST_CHUNK && features * (size_t)chunk > MOST_FEATURES) chunk /= 2;
  const int padded = (items + chunk - 1) / chunk * chunk;
  *out = (EmSamples){.data = {.d = d,
                              .items = items,
                              .expect = em_samples_expect,
                              .seed = em_samples_seed,
                              .place = em_samples_place},
                     .chunk = chunk,
                     .padded = padded};
  ALLOCATE(memory, out->z, (size_t)d * (size_t)padded);
  ALLOCATE(memory, out->features, features * (size_t)chunk);
  ALLOCATE(memory, out->coefficient, count * features);
  ALLOCATE(memory, out->share, count * (size_t)chunk);
  ALLOCATE_ARRAYS(memory, padded, out->distance, out->nearest);
  ALLOCATE(memory, out->centre, d);
  for (size_t i = 0; i < (size_t)d; i++) {
    const double *from = z + i * (size_t)n;
    double *to = out->z + i * (size_t)padded;
    for (int k = 0; k < items; k++) to[k] = from[(first + k) % n];
  }
  return STATUS_OK;
}

double em_samples_cost(int d, double components) {
  const double features = (double)em_features(d);
  return 26 + 1.7 * features + (80 + 5 * features) / components;
}

#include "model/mixture/em_samples.h"

#include "core/lanes.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* A chunk has at most this many numbers of features. */
enum { MOST_FEATURES = 1 << 21 };

/* Fills features[F, chunk] of the chunk at z. */
SIMD_CLONES
static void em_fill_features(int d, size_t stride, const double *restrict z, double *restrict features) {
  const int chunk = CHUNK_SAMPLES;
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
static void em_scale_features(int rows, const double *restrict factor, double *restrict features) {
  const int chunk = CHUNK_SAMPLES;
  for (int f = 0; f < rows; f++)
    for (int n = 0; n < chunk; n++) features[f * chunk + n] *= factor[n];
}

/* Adds share features' to sums[C, F]. */
static void em_add_features(const EmSamples *self, int components, double *sums) {
  const int features = (int)em_features(self->data.d), chunk = CHUNK_SAMPLES;
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, components, features, chunk, 1, self->share, chunk,
              self->features, chunk, 1, sums, features);
}

/* Computes coefficient[C, F], which multiplies the features in log weight_c N(z | c). */
static void em_samples_find_coefficients(const EmSamples *self, const Mixture *mixture) {
  double *coefficient = self->coefficient;
  for (size_t c = 0, d = (size_t)mixture->d; c < (size_t)mixture->components; c++) {
    const double *precision = mixture_precision(mixture, (int)c),
                 *information = mixture_information(mixture, (int)c);
    double *constant = coefficient++;
    *constant = mixture->log_norm[c];
    for (size_t i = 0; i < d; i++) {
      *constant -= 0.5 * mixture->mean[c * d + i] * information[i];
      *coefficient++ = information[i];
    }
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j <= i; j++) *coefficient++ = (i == j ? -0.5 : -1) * precision[i * d + j];
  }
}

static double em_samples_expect(EmData *data, int items, const Mixture *mixture, double *sums) {
  EmSamples *self = (EmSamples *)data;
  const int features = (int)em_features(data->d), components = mixture->components, chunk = CHUNK_SAMPLES;
  double top[CHUNK_SAMPLES], total[CHUNK_SAMPLES], sum = 0;
  em_samples_find_coefficients(self, mixture);
  for (int first = 0; first < items; first += chunk) {
    double own = 0;
    em_fill_features(data->d, (size_t)self->padded, self->z + first, self->features);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, components, chunk, features, 1, self->coefficient,
                features, self->features, chunk, 0, self->share, chunk);
    lanes_exponentiate(components, chunk, self->share, top, total);
    for (int n = 0; n < chunk && first + n < items; n++) own += top[n] + log(total[n]);
    for (int n = 0; n < chunk; n++) total[n] = first + n < items ? 1 / total[n] : 0;
    em_scale_features(features, total, self->features);
    em_add_features(self, components, sums);
    sum += own;
  }
  return sum;
}

/* ---- in many dimensions */

/* Computes log weight_c N(z | c) of the chunk that begins at item `first`: share[c, first ..]. */
static void em_samples_find_density(const EmSamples *self, const Mixture *mixture, int c, int first) {
  const size_t d = (size_t)mixture->d, stride = (size_t)self->padded;
  const int chunk = CHUNK_SAMPLES;
  const double *mean = mixture->mean + (size_t)c * d;
  double *density = self->share + (size_t)c * stride + first;
  for (size_t i = 0; i < d; i++)
    for (int n = 0; n < chunk; n++)
      self->part[i * CHUNK_SAMPLES + (size_t)n] = self->z[i * stride + (size_t)(first + n)] - mean[i];
  cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, mixture->d, chunk, 1,
              mixture->cholesky + (size_t)c * d * d, mixture->d, self->part, chunk);
  for (int n = 0; n < chunk; n++) density[n] = mixture->log_norm[c];
  for (size_t i = 0; i < d; i++) {
    const double *row = self->part + i * CHUNK_SAMPLES;
    for (int n = 0; n < chunk; n++) density[n] -= 0.5 * row[n] * row[n];
  }
}

/* Adds the features of the samples item[count], at most CHUNK_SAMPLES, of component c: those of z_i z_j to
 * the lower triangle of self->square. */
static void em_samples_add_part(const EmSamples *self, int c, int count, const int *item, double *sums) {
  const int d = self->data.d, chunk = CHUNK_SAMPLES;
  const size_t stride = (size_t)self->padded;
  double root[CHUNK_SAMPLES];
  for (int n = 0; n < count; n++) {
    const double share = self->share[(size_t)c * stride + (size_t)item[n]];
    root[n] = sqrt(share);
    sums[0] += share;
  }
  for (int i = 0; i < d; i++)
    for (int n = 0; n < count; n++)
      self->part[i * chunk + n] = root[n] * self->z[(size_t)i * stride + (size_t)item[n]];
  cblas_dgemv(CblasRowMajor, CblasNoTrans, d, count, 1, self->part, chunk, root, 1, 1, sums + 1, 1);
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, d, count, 1, self->part, chunk, 1, self->square, d);
}

/* Adds to sums[F] the features of the samples of component c, without those of which it has so small a share
 * that they change nothing. */
static void em_samples_add_component(const EmSamples *self, int c, int items, double *sums) {
  const size_t d = (size_t)self->data.d;
  const double *share = self->share + (size_t)c * (size_t)self->padded;
  int item[CHUNK_SAMPLES], count = 0;
  memset(self->square, 0, d * d * sizeof *self->square);
  for (int n = 0; n < items; n++) {
    if (share[n] > DBL_EPSILON) item[count++] = n;
    if (count < CHUNK_SAMPLES) continue;
    em_samples_add_part(self, c, count, item, sums);
    count = 0;
  }
  if (count > 0) em_samples_add_part(self, c, count, item, sums);
  double *out = sums + 1 + d;
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++) *out++ += self->square[i * d + j];
}

static double em_samples_expect_wide(EmData *data, int items, const Mixture *mixture, double *sums) {
  EmSamples *self = (EmSamples *)data;
  const int components = mixture->components;
  const size_t features = em_features(data->d), stride = (size_t)self->padded;
  double sum = 0;
  for (int c = 0; c < components; c++)
    for (int first = 0; first < items; first += CHUNK_SAMPLES)
      em_samples_find_density(self, mixture, c, first);
  lanes_exponentiate(components, self->padded, self->share, self->distance, self->total);
  for (int n = 0; n < items; n++) sum += self->distance[n] + log(self->total[n]);
  for (size_t c = 0; c < (size_t)components; c++) {
    for (int n = 0; n < items; n++) self->share[c * stride + (size_t)n] /= self->total[n];
    em_samples_add_component(self, (int)c, items, sums + c * features);
  }
  return sum;
}

/* ---- seeds */

/* Lowers distance[padded] and sets nearest[padded] where `centre` is closer than all before; returns the sum
 * of the squared distances of the first `items`. */
SIMD_CLONES
static double em_approach_centre(EmSamples *self, int items, int c) {
  const size_t stride = (size_t)self->padded;
  const int chunk = CHUNK_SAMPLES;
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

/* Adds to sums[C, F] the features of every sample, for the component whose centre is nearest. */
static void em_samples_add_nearest(EmSamples *self, int items, int components, double *sums) {
  const int chunk = CHUNK_SAMPLES;
  for (int first = 0; first < items; first += chunk) {
    for (int c = 0; c < components; c++)
      for (int n = 0; n < chunk; n++)
        self->share[c * chunk + n] = first + n < items && self->nearest[first + n] == c;
    em_fill_features(self->data.d, (size_t)self->padded, self->z + first, self->features);
    em_add_features(self, components, sums);
  }
}

static void em_samples_add_nearest_wide(EmSamples *self, int items, int components, double *sums) {
  const size_t features = em_features(self->data.d), stride = (size_t)self->padded;
  for (size_t c = 0; c < (size_t)components; c++) {
    for (int n = 0; n < items; n++) self->share[c * stride + (size_t)n] = self->nearest[n] == (int)c;
    em_samples_add_component(self, (int)c, items, sums + c * features);
  }
}

/* Chooses samples as centres: by k-means++ in even starts, with probability proportional to the squared
 * distance from the centres so far; uniformly in odd starts, which finds optima where one component lies on
 * another (measured: swirl). Every sample is assigned to the nearest centre. */
static void em_samples_seed(EmData *data, int items, int components, Rng *rng, double *sums) {
  EmSamples *self = (EmSamples *)data;
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
  (self->wide ? em_samples_add_nearest_wide : em_samples_add_nearest)(self, items, components, sums);
}

Status em_samples_create(Arena *memory, int d, int n, const double *z, int first, int items, int components,
                         EmSamples *out) {
  const size_t features = em_features(d), count = (size_t)components, dimensions = (size_t)d;
  const int chunk = CHUNK_SAMPLES, padded = (items + chunk - 1) / chunk * chunk;
  const bool wide = features * CHUNK_SAMPLES > MOST_FEATURES;
  *out = (EmSamples){.data = {.d = d,
                              .items = items,
                              .expect = wide ? em_samples_expect_wide : em_samples_expect,
                              .seed = em_samples_seed,
                              .place = em_samples_place},
                     .wide = wide,
                     .padded = padded};
  ALLOCATE(memory, out->z, dimensions * (size_t)padded);
  ALLOCATE(memory, out->distance, padded);
  ALLOCATE(memory, out->nearest, padded);
  ALLOCATE(memory, out->centre, d);
  if (wide) {
    ALLOCATE(memory, out->share, count * (size_t)padded);
    ALLOCATE(memory, out->total, padded);
    ALLOCATE(memory, out->part, dimensions * CHUNK_SAMPLES);
    ALLOCATE(memory, out->square, dimensions * dimensions);
  } else {
    ALLOCATE(memory, out->share, count * CHUNK_SAMPLES);
    ALLOCATE(memory, out->features, features * CHUNK_SAMPLES);
    ALLOCATE(memory, out->coefficient, count * features);
  }
  for (size_t i = 0; i < dimensions; i++) {
    const double *from = z + i * (size_t)n;
    double *to = out->z + i * (size_t)padded;
    for (int k = 0; k < items; k++) to[k] = from[(first + k) % n];
  }
  return STATUS_OK;
}

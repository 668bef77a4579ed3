/* Expectation maximisation for Gaussian mixtures with full covariances (Dempster, Laird and Rubin 1977),
 * started by k-means++ seeding (Arthur and Vassilvitskii 2007).
 *
 * Samples are standardised for each coordinate first, so that the floor on the variances means the same at
 * any scale. All starts run TRIAL_ITERATIONS; the FINALISTS best ones run until the mean log likelihood rises
 * by less than TOLERANCE of itself, and the best of these wins. Letters: C components, n samples, sample
 * last; z[d, padded] holds the standardised samples, padded with zeros to whole chunks. */
#include "model/mixture.h"

#include "core/arena.h"
#include "core/linalg.h"
#include "core/memory.h"
#include "core/simd.h"
#include "core/special.h"
#include "core/tiling.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16, TRIAL_ITERATIONS = 60, FINALISTS = 5, MOST_ITERATIONS = 1000 };
static const double FLOOR =
    1e-6; /* added to each variance, of standardised samples; scikit-learn's reg_covar */
static const double TOLERANCE = 1e-8; /* of the mean log likelihood, for each iteration */
/* A component that explains fewer samples than this is started again. */
static const double LEAST_COUNT = 1e-3;

typedef struct {
  int d, n, components, padded;
  double *shift, *scale, *z; /* [d], [d], [d, padded] */
  double *weight, *mean, *covariance; /* [C], [C, d], [C, d, d]: the present parameters, one block */
  double *whiten, *whitened_mean, *constant; /* W = L^-1 [C, d, d], W m [C, d], log weight - log det L [C] */
  double *responsibility; /* [C, CHUNK_SAMPLES] */
  double *count, *sum, *square; /* [C], [C, d], [C, d, d]: sums of r, r z, r z z' */
  double *distance; /* [padded], to the nearest centre */
  int *nearest; /* [padded] */
  double *centre; /* [d] */
  Rng rng;
} Em;

static size_t parameter_count(int d, int components) {
  return (size_t)components * (1 + (size_t)d + (size_t)d * (size_t)d);
}

static bool is_constant(int n, const double *row) {
  for (int k = 1; k < n; k++)
    if (row[k] != row[0]) return false;
  return true;
}

/* Mean and standard deviation of each coordinate; a coordinate that does not vary keeps its unit: its
 * variance is 0, whatever the rounding of its mean makes of it. */
static void mixture_fit_standardise(Em *em, const double *theta) {
  for (size_t i = 0; i < (size_t)em->d; i++) {
    const double *row = theta + i * (size_t)em->n;
    double variance, *z = em->z + i * (size_t)em->padded;
    linalg_moments(1, em->n, row, &em->shift[i], &variance);
    bool constant = is_constant(em->n, row);
    if (constant) em->shift[i] = row[0];
    em->scale[i] = !constant && variance > 0 ? sqrt(variance) : 1;
    for (int k = 0; k < em->n; k++) z[k] = (row[k] - em->shift[i]) / em->scale[i];
  }
}

static Status em_create(Arena *memory, int d, int n, const double *theta, int components, Em *em) {
  *em = (Em){.d = d,
             .n = n,
             .components = components,
             .padded = (n + CHUNK_SAMPLES - 1) / CHUNK_SAMPLES * CHUNK_SAMPLES};
  size_t count = (size_t)components, vectors = count * (size_t)d, matrices = vectors * (size_t)d;
  ALLOCATE(memory, em->shift, d);
  ALLOCATE(memory, em->scale, d);
  ALLOCATE(memory, em->z, (size_t)d * (size_t)em->padded);
  ALLOCATE(memory, em->weight, parameter_count(d, components));
  em->mean = em->weight + count;
  em->covariance = em->mean + vectors;
  ALLOCATE(memory, em->whiten, matrices);
  ALLOCATE(memory, em->whitened_mean, vectors);
  ALLOCATE(memory, em->constant, count);
  ALLOCATE(memory, em->responsibility, count * CHUNK_SAMPLES);
  ALLOCATE(memory, em->count, parameter_count(d, components));
  em->sum = em->count + count;
  em->square = em->sum + vectors;
  ALLOCATE(memory, em->distance, em->padded);
  ALLOCATE(memory, em->nearest, em->padded);
  ALLOCATE(memory, em->centre, d);
  mixture_fit_standardise(em, theta);
  return STATUS_OK;
}

/* W and the constants of the present parameters. */
static Status mixture_fit_whiten(Em *em) {
  size_t d = (size_t)em->d;
  for (size_t c = 0; c < (size_t)em->components; c++) {
    double *w = em->whiten + c * d * d;
    memcpy(w, em->covariance + c * d * d, d * d * sizeof *w);
    TRY(linalg_cholesky(em->d, w));
    em->constant[c] = log(em->weight[c]) - 0.5 * linalg_log_determinant(em->d, w);
    linalg_invert_triangle(em->d, w);
    linalg_multiply_lanes(em->d, 1, w, em->mean + c * d, em->whitened_mean + c * d);
  }
  return STATUS_OK;
}

/* Fill responsibility[C, CHUNK_SAMPLES] for the chunk at z; returns the sum over its first `used` samples of
 * log sum_c weight_c N(z | c), without the factor (2 pi)^(-d/2). */
SIMD_CLONES
static double mixture_fit_expect(const Em *em, const double *restrict z, int used) {
  size_t d = (size_t)em->d, stride = (size_t)em->padded;
  double *restrict r = em->responsibility;
  double row[CHUNK_SAMPLES], top[CHUNK_SAMPLES], total[CHUNK_SAMPLES];
  for (int n = 0; n < CHUNK_SAMPLES; n++) top[n] = -DBL_MAX;
  for (size_t c = 0; c < (size_t)em->components; c++) {
    double *restrict r_c = r + c * CHUNK_SAMPLES;
    for (int n = 0; n < CHUNK_SAMPLES; n++) r_c[n] = em->constant[c];
    for (size_t i = 0; i < d; i++) {
      const double *w = em->whiten + (c * d + i) * d;
      double offset = em->whitened_mean[c * d + i];
      for (int n = 0; n < CHUNK_SAMPLES; n++) row[n] = -offset;
      for (size_t j = 0; j <= i; j++) {
        const double *restrict z_j = z + j * stride;
        for (int n = 0; n < CHUNK_SAMPLES; n++) row[n] += w[j] * z_j[n];
      }
      for (int n = 0; n < CHUNK_SAMPLES; n++) r_c[n] -= 0.5 * row[n] * row[n];
    }
    for (int n = 0; n < CHUNK_SAMPLES; n++) top[n] = r_c[n] > top[n] ? r_c[n] : top[n];
  }
  for (int n = 0; n < CHUNK_SAMPLES; n++) total[n] = 0;
  for (size_t c = 0; c < (size_t)em->components; c++) {
    double *restrict r_c = r + c * CHUNK_SAMPLES;
    for (int n = 0; n < CHUNK_SAMPLES; n++) {
      r_c[n] = special_exp(r_c[n] - top[n]);
      total[n] += r_c[n];
    }
  }
  for (int n = 0; n < CHUNK_SAMPLES; n++) row[n] = 1 / total[n];
  for (size_t c = 0; c < (size_t)em->components; c++) {
    double *restrict r_c = r + c * CHUNK_SAMPLES;
    for (int n = 0; n < CHUNK_SAMPLES; n++) r_c[n] *= row[n];
    for (int n = used; n < CHUNK_SAMPLES; n++) r_c[n] = 0;
  }
  /* total is in [1, C]: a product of PARTS of them cannot overflow, and one logarithm does for all. */
  double sum = 0;
  for (int n = used; n < CHUNK_SAMPLES; n++) total[n] = 1;
  for (int n = 0; n < used; n++) sum += top[n];
  for (int k = 0; k < CHUNK_SAMPLES / PARTS; k++) {
    double product = 1;
    for (int n = k; n < CHUNK_SAMPLES; n += CHUNK_SAMPLES / PARTS) product *= total[n];
    sum += log(product);
  }
  return sum;
}

/* Sum of a b over a chunk, in PARTS partial sums that vector instructions can hold. */
static inline double chunk_product(const double *restrict a, const double *restrict b) {
  double part[PARTS] = {0}, sum = 0;
  for (int n = 0; n < CHUNK_SAMPLES; n += PARTS)
    for (int k = 0; k < PARTS; k++) part[k] += a[n + k] * b[n + k];
  for (int k = 0; k < PARTS; k++) sum += part[k];
  return sum;
}

/* Add the chunk at z to the sums of r, r z, r z z' (lower triangle). */
SIMD_CLONES
static void accumulate(Em *em, const double *restrict z) {
  size_t d = (size_t)em->d, stride = (size_t)em->padded;
  double ones[CHUNK_SAMPLES], weighted[CHUNK_SAMPLES];
  for (int n = 0; n < CHUNK_SAMPLES; n++) ones[n] = 1;
  for (size_t c = 0; c < (size_t)em->components; c++) {
    const double *restrict r = em->responsibility + c * CHUNK_SAMPLES;
    em->count[c] += chunk_product(r, ones);
    for (size_t i = 0; i < d; i++) {
      const double *restrict z_i = z + i * stride;
      for (int n = 0; n < CHUNK_SAMPLES; n++) weighted[n] = r[n] * z_i[n];
      em->sum[c * d + i] += chunk_product(weighted, ones);
      for (size_t j = 0; j <= i; j++)
        em->square[(c * d + i) * d + j] += chunk_product(weighted, z + j * stride);
    }
  }
}

static void clear_sums(Em *em) {
  memset(em->count, 0, parameter_count(em->d, em->components) * sizeof *em->count);
}

/* An index in [0, n), and the sample there as the mean of component c with the covariance of all samples. */
static void start_afresh(Em *em, size_t c) {
  size_t d = (size_t)em->d, k = rng_index(&em->rng, (uint64_t)em->n);
  em->weight[c] = 1.0 / em->n;
  memset(em->covariance + c * d * d, 0, d * d * sizeof *em->covariance);
  for (size_t i = 0; i < d; i++) {
    em->mean[c * d + i] = em->z[i * (size_t)em->padded + k];
    em->covariance[(c * d + i) * d + i] = 1;
  }
}

/* Parameters from the sums. */
static void maximise(Em *em) {
  size_t d = (size_t)em->d;
  double total = 0;
  for (size_t c = 0; c < (size_t)em->components; c++) {
    double count = em->count[c], *mean = em->mean + c * d, *covariance = em->covariance + c * d * d;
    if (count < LEAST_COUNT) {
      start_afresh(em, c);
    } else {
      em->weight[c] = count / em->n;
      for (size_t i = 0; i < d; i++) mean[i] = em->sum[c * d + i] / count;
      for (size_t i = 0; i < d; i++) {
        for (size_t j = 0; j <= i; j++)
          covariance[i * d + j] = covariance[j * d + i] =
              em->square[(c * d + i) * d + j] / count - mean[i] * mean[j];
        covariance[i * d + i] = fmax(covariance[i * d + i], 0) + FLOOR;
      }
    }
    total += em->weight[c];
  }
  for (int c = 0; c < em->components; c++) em->weight[c] /= total;
}

/* One iteration; *likelihood is the mean log likelihood of z under the parameters before it. */
static Status iterate(Em *em, double *likelihood) {
  TRY(mixture_fit_whiten(em));
  clear_sums(em);
  double sum = 0;
  for (int first = 0; first < em->n; first += CHUNK_SAMPLES) {
    sum +=
        mixture_fit_expect(em, em->z + first, em->n - first < CHUNK_SAMPLES ? em->n - first : CHUNK_SAMPLES);
    accumulate(em, em->z + first);
  }
  maximise(em);
  *likelihood = sum / em->n - 0.5 * em->d * log(2 * M_PI);
  return STATUS_OK;
}

/* Lower distance[padded] and set nearest[padded] where `centre` is nearer than all before; returns the sum of
 * distances. */
SIMD_CLONES
static double approach(Em *em, int c) {
  size_t stride = (size_t)em->padded;
  const double *restrict z = em->z;
  double *restrict distance = em->distance, sum = 0;
  int *restrict nearest = em->nearest;
  for (int first = 0; first < em->n; first += CHUNK_SAMPLES) {
    double square[CHUNK_SAMPLES] = {0};
    for (size_t i = 0; i < (size_t)em->d; i++) {
      const double *restrict z_i = z + i * stride + (size_t)first;
      double centre = em->centre[i];
      for (int n = 0; n < CHUNK_SAMPLES; n++) square[n] += (z_i[n] - centre) * (z_i[n] - centre);
    }
    for (int n = 0; n < CHUNK_SAMPLES; n++) {
      int nearer = c == 0 || square[n] < distance[first + n];
      nearest[first + n] = nearer ? c : nearest[first + n];
      distance[first + n] = nearer ? square[n] : distance[first + n];
    }
  }
  for (int n = 0; n < em->n; n++) sum += distance[n];
  return sum;
}

/* Centres are samples: by k-means++ in even starts, with probability proportional to the squared distance
 * from the centres so far; uniform in odd starts, which finds optima where one component lies on another
 * (measured: swirl). The first parameters are the moments of the samples nearest to each centre. */
static void seed(Em *em) {
  size_t stride = (size_t)em->padded;
  double sum = 0;
  for (int c = 0; c < em->components; c++) {
    size_t k = rng_index(&em->rng, (uint64_t)em->n);
    if (sum > 0 && em->rng.round % 2 == 0) {
      double u;
      rng_uniform(&em->rng, 1, &u);
      double below = u * sum;
      for (k = 0; k + 1 < (size_t)em->n && below >= em->distance[k]; k++) below -= em->distance[k];
    }
    for (size_t i = 0; i < (size_t)em->d; i++) em->centre[i] = em->z[i * stride + k];
    sum = approach(em, c);
  }
  clear_sums(em);
  for (int first = 0; first < em->n; first += CHUNK_SAMPLES) {
    for (int c = 0; c < em->components; c++)
      for (int n = 0; n < CHUNK_SAMPLES; n++)
        em->responsibility[c * CHUNK_SAMPLES + n] = first + n < em->n && em->nearest[first + n] == c;
    accumulate(em, em->z + first);
  }
  maximise(em);
}

/* The parameters of the best start are left in em. One component needs no iteration: its seed is the fit. */
static Status run_starts(Em *em, int starts, RngKey key, uint32_t run) {
  if (em->components == 1) {
    seed(em);
    return STATUS_OK;
  }
  size_t size = parameter_count(em->d, em->components);
  double *parameters, *likelihood, *best;
  SCRATCH_ARENA(scratch);
  ALLOCATE(&scratch, parameters, (size_t)starts * size);
  ALLOCATE(&scratch, likelihood, starts);
  ALLOCATE(&scratch, best, size);
  for (int start = 0; start < starts; start++) {
    em->rng = (Rng){.key = key, .run = run, .round = (uint32_t)start};
    seed(em);
    for (int k = 0; k < TRIAL_ITERATIONS; k++) TRY(iterate(em, &likelihood[start]));
    memcpy(parameters + (size_t)start * size, em->weight, size * sizeof *best);
  }
  double highest = -INFINITY;
  for (int rank = 0; rank < FINALISTS && rank < starts; rank++) {
    int chosen = 0;
    for (int start = 1; start < starts; start++)
      if (likelihood[start] > likelihood[chosen]) chosen = start;
    double before = likelihood[chosen], now = before;
    likelihood[chosen] = -INFINITY;
    memcpy(em->weight, parameters + (size_t)chosen * size, size * sizeof *best);
    em->rng = (Rng){.key = rng_subkey(key, RNG_MIXTURE_REPAIR), .run = run, .round = (uint32_t)chosen};
    for (int k = 0; k < MOST_ITERATIONS; k++) {
      TRY(iterate(em, &now));
      if (k > 0 && fabs(now - before) <= TOLERANCE * (1 + fabs(now))) break;
      before = now;
    }
    if (now > highest) {
      highest = now;
      memcpy(best, em->weight, size * sizeof *best);
    }
  }
  memcpy(em->weight, best, size * sizeof *best);
  return STATUS_OK;
}

/* Back to the coordinates of the samples. */
static Status unstandardise(Arena *memory, const Em *em, Mixture *out) {
  size_t d = (size_t)em->d;
  TRY(mixture_create(memory, em->d, em->components, out));
  for (size_t c = 0; c < (size_t)em->components; c++) {
    out->weight[c] = em->weight[c];
    for (size_t i = 0; i < d; i++) {
      out->mean[c * d + i] = em->shift[i] + em->scale[i] * em->mean[c * d + i];
      for (size_t j = 0; j < d; j++)
        out->covariance[(c * d + i) * d + j] =
            em->scale[i] * em->scale[j] * em->covariance[(c * d + i) * d + j];
    }
  }
  return mixture_prepare(out);
}

Status mixture_fit(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out, double *mean_log_likelihood) {
  *out = (Mixture){0};
  ASSERT(starts >= 1 && components >= 1);
  if (n < components)
    return status_set(STATUS_INPUT,
                      "a mixture of %d components needs at least as many samples, but there are %d",
                      components, n);
  Em em;
  SCRATCH_ARENA(scratch);
  TRY(em_create(&scratch, d, n, theta, components, &em));
  TRY(run_starts(&em, starts, key, run));
  TRY(unstandardise(memory, &em, out));
  if (mean_log_likelihood) {
    double *densities;
    ALLOCATE(&scratch, densities, n);
    mixture_log_density(out, n, theta, densities);
    double sum = 0;
    for (int k = 0; k < n; k++) sum += densities[k];
    *mean_log_likelihood = sum / n;
  }
  return STATUS_OK;
}

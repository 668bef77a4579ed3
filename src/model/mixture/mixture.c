/* Parameters and samples of a Gaussian mixture. */
#include "model/mixture/mixture.h"

#include "core/chunk.h"
#include "core/linalg/linalg.h"
#include "core/real.h"

#include <cblas.h>
#include <pthread.h>

Status mixture_create(Arena *memory, int d, int components, Mixture *out) {
  ASSERT(d >= 1 && components >= 1);
  *out = (Mixture){.d = d, .components = components};
  size_t count = (size_t)components, vectors = count * (size_t)d, matrices = vectors * (size_t)d;
  ALLOCATE_ARRAYS(memory, count, &out->weight, &out->log_norm);
  ALLOCATE_ARRAYS(memory, vectors, &out->mean, &out->inverse.information);
  ALLOCATE_ARRAYS(memory, matrices, &out->covariance, &out->cholesky, &out->inverse.precision);
  ALLOCATE(memory, out->inverse.found, 1);
  return STATUS_OK;
}

Status mixture_prepare(Mixture *mixture) {
  int d = mixture->d;
  size_t matrix = (size_t)d * (size_t)d;
  mixture->widest = 0;
  for (int c = 0; c < mixture->components; c++) {
    double weight = mixture->weight[c], trace = 0;
    if (!(weight > 0 && weight <= 1))
      return status_set(STATUS_INPUT, "component %d of the mixture has weight %g; weights must be in (0, 1]",
                        c, weight);
    double *cholesky = mixture->cholesky + (size_t)c * matrix;
    memcpy(cholesky, mixture->covariance + (size_t)c * matrix, matrix * sizeof *cholesky);
    if (linalg_cholesky(d, cholesky) != STATUS_OK)
      return status_set(STATUS_INPUT,
                        "the covariance of component %d of the mixture is not positive definite", c);
    mixture->log_norm[c] = log(weight) - 0.5 * (linalg_log_determinant(d, cholesky) + d * log(2 * M_PI));
    for (int i = 0; i < d; i++) trace += mixture->covariance[(size_t)c * matrix + (size_t)(i * (d + 1))];
    mixture->widest = fmax(mixture->widest, trace);
  }
  atomic_store(mixture->inverse.found, false);
  return STATUS_OK;
}

/* Fills precision and information. */
static void mixture_find_inverse(const Mixture *mixture) {
  const int d = mixture->d;
  const size_t matrix = (size_t)d * (size_t)d;
  for (size_t c = 0; c < (size_t)mixture->components; c++) {
    double *precision = mixture->inverse.precision + c * matrix;
    linalg_inverse(d, mixture->cholesky + c * matrix, precision);
    linalg_lanes_multiply(d, 1, precision, mixture->mean + c * (size_t)d,
                          mixture->inverse.information + c * (size_t)d);
  }
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void mixture_before_fork(void) { pthread_mutex_lock(&turn); }
void mixture_after_fork(void) { pthread_mutex_unlock(&turn); }

void mixture_invert(const Mixture *mixture) {
  if (atomic_load(mixture->inverse.found)) return;
  pthread_mutex_lock(&turn);
  if (!atomic_load(mixture->inverse.found)) mixture_find_inverse(mixture);
  atomic_store(mixture->inverse.found, true);
  pthread_mutex_unlock(&turn);
}

const double *mixture_precision(const Mixture *mixture, int c) {
  mixture_invert(mixture);
  return mixture->inverse.precision + (size_t)c * (size_t)mixture->d * (size_t)mixture->d;
}

const double *mixture_information(const Mixture *mixture, int c) {
  mixture_invert(mixture);
  return mixture->inverse.information + (size_t)c * (size_t)mixture->d;
}

void mixture_copy_parameters(const Mixture *from, const Mixture *to) {
  const size_t count = (size_t)from->components, vectors = count * (size_t)from->d;
  ASSERT(to->components == from->components && to->d == from->d);
  memcpy(to->weight, from->weight, count * sizeof *to->weight);
  memcpy(to->mean, from->mean, vectors * sizeof *to->mean);
  memcpy(to->covariance, from->covariance, vectors * (size_t)from->d * sizeof *to->covariance);
}

Status mixture_copy(Arena *memory, const Mixture *mixture, Mixture *out) {
  TRY(mixture_create(memory, mixture->d, mixture->components, out));
  mixture_copy_parameters(mixture, out);
  return mixture_prepare(out);
}

size_t mixture_packed_size(int d, int components) {
  const size_t n = (size_t)d;
  return 1 + (size_t)components * (1 + n + n * n);
}

void mixture_pack(const Mixture *mixture, double *out) {
  const size_t count = (size_t)mixture->components, vectors = count * (size_t)mixture->d;
  *out++ = mixture->components;
  memcpy(out, mixture->weight, count * sizeof *out);
  memcpy(out + count, mixture->mean, vectors * sizeof *out);
  memcpy(out + count + vectors, mixture->covariance, vectors * (size_t)mixture->d * sizeof *out);
}

Status mixture_unpack(Arena *memory, int d, const double *values, Mixture *out) {
  const size_t count = (size_t)*values++, vectors = count * (size_t)d;
  TRY(mixture_create(memory, d, (int)count, out));
  memcpy(out->weight, values, count * sizeof *values);
  memcpy(out->mean, values + count, vectors * sizeof *values);
  memcpy(out->covariance, values + count + vectors, vectors * (size_t)d * sizeof *values);
  return STATUS_OK;
}

Status mixture_transform(Mixture *mixture, const double *shift, const double *scale) {
  const size_t d = (size_t)mixture->d;
  for (size_t c = 0; c < (size_t)mixture->components; c++)
    for (size_t i = 0; i < d; i++) {
      mixture->mean[c * d + i] = shift[i] + scale[i] * mixture->mean[c * d + i];
      for (size_t j = 0; j < d; j++) mixture->covariance[(c * d + i) * d + j] *= scale[i] * scale[j];
    }
  return mixture_prepare(mixture);
}

Status mixture_standardise(Mixture *mixture, const double *shift, const double *scale) {
  const size_t d = (size_t)mixture->d;
  for (size_t c = 0; c < (size_t)mixture->components; c++)
    for (size_t i = 0; i < d; i++) {
      mixture->mean[c * d + i] = (mixture->mean[c * d + i] - shift[i]) / scale[i];
      for (size_t j = 0; j < d; j++) mixture->covariance[(c * d + i) * d + j] /= scale[i] * scale[j];
    }
  return mixture_prepare(mixture);
}

Status mixture_project(Arena *memory, const Mixture *mixture, int m, const double *axis, Mixture *out) {
  SCRATCH_ARENA(scratch);
  const int d = mixture->d;
  const size_t square = (size_t)d * (size_t)d;
  double *image; /* [m, d]: axis S */
  ALLOCATE(&scratch, image, (size_t)m * (size_t)d);
  TRY(mixture_create(memory, m, mixture->components, out));
  memcpy(out->weight, mixture->weight, (size_t)mixture->components * sizeof *out->weight);
  for (int c = 0; c < mixture->components; c++) {
    double *own = out->covariance + (ptrdiff_t)c * m * m;
    cblas_dgemv(CblasRowMajor, CblasNoTrans, m, d, 1, axis, d, mixture->mean + (ptrdiff_t)c * d, 1, 0,
                out->mean + (ptrdiff_t)c * m, 1);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, d, d, 1, axis, d,
                mixture->covariance + (size_t)c * square, d, 0, image, d);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, m, d, 1, image, d, axis, d, 0, own, m);
    linalg_lanes_symmetrise(m, 1, own);
  }
  return mixture_prepare(out);
}

bool mixture_is_white(const Mixture *mixture) {
  const int d = mixture->d;
  for (int i = 0; i < d * d; i++)
    if (mixture->covariance[i] != (i % (d + 1) == 0)) return false;
  return mixture->components == 1;
}

void mixture_moments(const Mixture *mixture, double *mean, double *covariance) {
  size_t d = (size_t)mixture->d, count = (size_t)mixture->components;
  memset(mean, 0, d * sizeof *mean);
  memset(covariance, 0, d * d * sizeof *covariance);
  for (size_t c = 0; c < count; c++)
    for (size_t i = 0; i < d; i++) mean[i] += mixture->weight[c] * mixture->mean[c * d + i];
  for (size_t c = 0; c < count; c++) {
    const double *m = mixture->mean + c * d, *s = mixture->covariance + c * d * d;
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j < d; j++)
        covariance[i * d + j] += mixture->weight[c] * (s[i * d + j] + (m[i] - mean[i]) * (m[j] - mean[j]));
  }
}

void mixture_spread(const Mixture *mixture, double *mean, double *deviation) {
  const size_t d = (size_t)mixture->d, count = (size_t)mixture->components;
  for (size_t i = 0; i < d; i++) {
    double variance = 0;
    mean[i] = 0;
    for (size_t c = 0; c < count; c++) mean[i] += mixture->weight[c] * mixture->mean[c * d + i];
    for (size_t c = 0; c < count; c++) {
      const double gap = mixture->mean[c * d + i] - mean[i];
      variance += mixture->weight[c] * (mixture->covariance[(c * d + i) * d + i] + gap * gap);
    }
    deviation[i] = sqrt(variance);
  }
}

/* Colours normals: theta[d, count], with rows `stride` apart, holds z and becomes mean_c + L_c z, where
 * c[count] are the components. Rows are computed from the last to the first, so that row i still finds z_j, j
 * <= i. */
SIMD_CLONES
static void mixture_colour_normals(const Mixture *mixture, const int *restrict c, int count, size_t stride,
                                   double *restrict theta) {
  int d = mixture->d;
  const double *restrict mean = mixture->mean, *restrict cholesky = mixture->cholesky;
  for (int i = d - 1; i >= 0; i--) {
    double sum[CHUNK_LANES];
    for (int n = 0; n < count; n++) sum[n] = mean[(size_t)c[n] * (size_t)d + (size_t)i];
    for (int j = 0; j <= i; j++) {
      const double *restrict z = theta + (size_t)j * stride, *restrict l = cholesky + i * (size_t)d + j;
      for (int n = 0; n < count; n++) sum[n] += l[(size_t)c[n] * (size_t)d * (size_t)d] * z[n];
    }
    memcpy(theta + (size_t)i * stride, sum, (size_t)count * sizeof *sum);
  }
}

void mixture_sample(const Mixture *mixture, RngLanes *rng, double *theta) {
  const RngLanes uniforms = *rng;
  rng->position++; /* that of the uniform */
  rng_lanes_normal(rng, mixture->d, theta);
  for (Chunk chunk = chunk_begin(uniforms); chunk.lanes > 0; chunk_next(&chunk, uniforms)) {
    double u[CHUNK_LANES], below = 0;
    int chosen[CHUNK_LANES] = {0};
    rng_lanes_uniform(&chunk.rng, 1, u);
    for (int c = 0; c + 1 < mixture->components; c++) {
      below += mixture->weight[c];
      for (int n = 0; n < chunk.lanes; n++) chosen[n] += u[n] >= below;
    }
    mixture_colour_normals(mixture, chosen, chunk.lanes, rng->lanes, theta + chunk.first);
  }
}

/* Density, score and samples of a Gaussian mixture. Lanes are processed CHUNK_LANES at a time; every inner
 * loop runs over them.
 *
 * With precision P_c, mean m_c and l_c = log_norm_c - 1/2 (x - m_c)' P_c (x - m_c): the log density is log
 * sum_c exp l_c, and r_c = exp(l_c) / sum exp l is the responsibility of component c. The largest l so far
 * ("top") is factored out of the running sum, so that a point far from all components is as safe as any. */
#include "model/mixture/mixture.h"

#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg.h"
#include "core/real.h"

Status mixture_create(Arena *memory, int d, int components, Mixture *out) {
  ASSERT(d >= 1 && components >= 1);
  *out = (Mixture){.d = d, .components = components};
  size_t count = (size_t)components, vectors = count * (size_t)d, matrices = vectors * (size_t)d;
  ALLOCATE_ARRAYS(memory, count, out->weight, out->log_norm);
  ALLOCATE_ARRAYS(memory, vectors, out->mean, out->information);
  ALLOCATE_ARRAYS(memory, matrices, out->covariance, out->cholesky, out->precision);
  return STATUS_OK;
}

Status mixture_prepare(Mixture *mixture) {
  int d = mixture->d;
  size_t matrix = (size_t)d * (size_t)d;
  for (int c = 0; c < mixture->components; c++) {
    double weight = mixture->weight[c];
    if (!(weight > 0 && weight <= 1))
      return status_set(STATUS_INPUT, "component %d of the mixture has weight %g; weights must be in (0, 1]",
                        c, weight);
    double *cholesky = mixture->cholesky + (size_t)c * matrix,
           *precision = mixture->precision + (size_t)c * matrix;
    memcpy(cholesky, mixture->covariance + (size_t)c * matrix, matrix * sizeof *cholesky);
    if (linalg_cholesky(d, cholesky) != STATUS_OK)
      return status_set(STATUS_INPUT,
                        "the covariance of component %d of the mixture is not positive definite", c);
    linalg_inverse(d, cholesky, precision);
    mixture->log_norm[c] = log(weight) - 0.5 * (linalg_log_determinant(d, cholesky) + d * log(2 * M_PI));
    linalg_multiply_lanes(d, 1, precision, mixture->mean + (size_t)c * (size_t)d,
                          mixture->information + (size_t)c * (size_t)d);
  }
  return STATUS_OK;
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

/* A chunk of points: rows `stride` apart, `count` of them used. */
typedef struct {
  size_t stride;
  int count;
  const double *x;
} Points;

/* Computes out[rows] = rows i, i + 1, .. of P_c (x - m_c), for the lanes `at`: each vector of x that is
 * loaded serves several rows, whose sums stay in registers. */
enum { PULL_ROWS = 4 };
INLINE void pull_rows(const Mixture *mixture, int c, size_t i, const int rows, RealLanes at, const double *x,
                      Real *out) {
  const size_t d = (size_t)mixture->d;
  const double *mean = mixture->mean + (size_t)c * d, *row = mixture->precision + ((size_t)c * d + i) * d;
  for (int r = 0; r < rows; r++) out[r] = (Real){0};
  for (size_t j = 0; j < d; j++) {
    Real gap;
    bool zero = true; /* components with independent coordinates cost d, not d^2 */
    for (int r = 0; r < rows; r++) zero &= row[(size_t)r * d + j] == 0;
    if (zero) continue;
    real_load(at, 1, x + j * at.lanes, &gap);
    gap -= mean[j];
    for (int r = 0; r < rows; r++) out[r] += row[(size_t)r * d + j] * gap;
  }
}

/* Subtracts (x - m_c)_i (P_c (x - m_c))_i / 2 from log_density for rows i, i + 1, ..; unless gradient[d,
 * CHUNK_LANES] is NULL, writes these rows of g_c to it. */
INLINE void add_rows(const Mixture *mixture, int c, size_t i, const int rows, RealLanes at, const double *x,
                     Real *log_density, double *gradient) {
  Real pulled[PULL_ROWS];
  pull_rows(mixture, c, i, rows, at, x, pulled);
  for (int r = 0; r < rows; r++) {
    Real gap;
    real_load(at, 1, x + (i + (size_t)r) * at.lanes, &gap);
    gap -= mixture->mean[(size_t)c * (size_t)mixture->d + i + (size_t)r];
    *log_density -= 0.5 * pulled[r] * gap;
    pulled[r] = -pulled[r];
  }
  if (gradient)
    real_store((RealLanes){at.first, at.count, CHUNK_LANES}, rows, pulled, gradient + i * CHUNK_LANES);
}

/* Computes out[n] = l_c, and gradient[d, CHUNK_LANES] = g_c unless it is NULL. */
INLINE void component_gradient(const Mixture *mixture, int c, Points points, double *gradient, double *out) {
  const size_t d = (size_t)mixture->d;
  for (int first = 0; first < points.count; first += VECTOR_LANES) {
    const RealLanes block = real_at((size_t)first, (size_t)points.count),
                    at = {block.first, block.count, points.stride};
    Real log_density = (Real){0} + mixture->log_norm[c];
    size_t i = 0;
    for (; i + PULL_ROWS <= d; i += PULL_ROWS)
      add_rows(mixture, c, i, PULL_ROWS, at, points.x, &log_density, gradient);
    for (; i < d; i++) add_rows(mixture, c, i, 1, at, points.x, &log_density, gradient);
    real_store(block, 1, &log_density, out);
  }
}

/* Computes top[count] and total[count] with log density = top + log total. */
SIMD_CLONES
static void mixture_log_density_chunk(const Mixture *mixture, Points points, double *restrict top,
                                      double *restrict total) {
  double log_density[CHUNK_LANES], old_share[CHUNK_LANES], share[CHUNK_LANES];
  for (int c = 0; c < mixture->components; c++) {
    component_gradient(mixture, c, points, NULL, log_density);
    lanes_join(c == 0, points.count, log_density, top, total, old_share, share);
  }
}

/* Computes density and score in one pass over the components; gradient[d, CHUNK_LANES] is scratch. */
SIMD_CLONES
static void mixture_density_chunk(const Mixture *mixture, Points points, double *restrict gradient,
                                  double *restrict top, double *restrict total, double *restrict score) {
  double log_density[CHUNK_LANES], old_share[CHUNK_LANES], share[CHUNK_LANES];
  for (int c = 0; c < mixture->components; c++) {
    component_gradient(mixture, c, points, gradient, log_density);
    lanes_join(c == 0, points.count, log_density, top, total, old_share, share);
    for (int i = 0; i < mixture->d; i++) {
      double *restrict score_i = score + (size_t)i * points.stride;
      const double *restrict row = gradient + i * CHUNK_LANES;
      if (c == 0)
        for (int n = 0; n < points.count; n++) score_i[n] = row[n];
      else
        for (int n = 0; n < points.count; n++)
          score_i[n] = special_two_products(old_share[n], score_i[n], share[n], row[n]);
    }
  }
  if (mixture->components == 1) return;
  for (int n = 0; n < points.count; n++) share[n] = 1 / total[n];
  for (int i = 0; i < mixture->d; i++) {
    double *restrict score_i = score + (size_t)i * points.stride;
    for (int n = 0; n < points.count; n++) score_i[n] *= share[n];
  }
}

/* Adds component c to the running mean of the scores, score[d], and to the running sum hessian[d, d], lower
 * triangle, by updates of weighted moments (West 1979), so that nothing cancels where scores are large.
 * gradient[d, CHUNK_LANES] holds g_c and becomes g_c - score. */
static inline void mixture_join_hessian(const Mixture *mixture, int c, Points points,
                                        const double *restrict old_share, const double *restrict share,
                                        const double *restrict step, const double *restrict spread,
                                        double *restrict gradient, double *restrict score,
                                        double *restrict hessian) {
  const size_t d = (size_t)mixture->d;
  const double *precision = mixture->precision + (size_t)c * d * d;
  for (size_t i = 0; i < d; i++) {
    double *restrict row = gradient + i * CHUNK_LANES, *restrict score_i = score + i * points.stride;
    for (int n = 0; n < points.count; n++) {
      row[n] -= score_i[n];
      score_i[n] += step[n] * row[n];
    }
    for (size_t j = 0; j <= i; j++) {
      const double *restrict other = gradient + j * CHUNK_LANES, p = precision[i * d + j];
      double *restrict h = hessian + (i * d + j) * points.stride;
      for (int n = 0; n < points.count; n++)
        h[n] = special_two_products(old_share[n], h[n], spread[n] * row[n], other[n]) - share[n] * p;
    }
  }
}

/* Computes H = sum_c r_c ((g_c - g) (g_c - g)' - P_c). */
SIMD_CLONES
static void mixture_score_hessian_chunk(const Mixture *mixture, Points points, double *restrict gradient,
                                        double *restrict score, double *restrict hessian) {
  const size_t d = (size_t)mixture->d;
  double log_density[CHUNK_LANES], top[CHUNK_LANES], total[CHUNK_LANES], old_share[CHUNK_LANES],
      share[CHUNK_LANES], step[CHUNK_LANES], spread[CHUNK_LANES];
  for (size_t i = 0; i < d; i++) {
    for (int n = 0; n < points.count; n++) score[i * points.stride + (size_t)n] = 0;
    for (size_t j = 0; j <= i; j++)
      for (int n = 0; n < points.count; n++) hessian[(i * d + j) * points.stride + (size_t)n] = 0;
  }
  for (int c = 0; c < mixture->components; c++) {
    component_gradient(mixture, c, points, gradient, log_density);
    lanes_join(c == 0, points.count, log_density, top, total, old_share, share);
    for (int n = 0; n < points.count; n++) {
      step[n] = share[n] / total[n];
      spread[n] = (total[n] - share[n]) * step[n];
    }
    mixture_join_hessian(mixture, c, points, old_share, share, step, spread, gradient, score, hessian);
  }
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++) {
      double *restrict low = hessian + (i * d + j) * points.stride, *restrict high =
                                                                        hessian + (j * d + i) * points.stride;
      for (int n = 0; n < points.count; n++) low[n] /= total[n];
      if (j < i) memcpy(high, low, (size_t)points.count * sizeof *high);
    }
}

static Points mixture_chunk_points(int lanes, int first, const double *theta) {
  return (Points){.stride = (size_t)lanes,
                  .count = lanes - first < CHUNK_LANES ? lanes - first : CHUNK_LANES,
                  .x = theta + first};
}

/* Computes out[count] += log total, which is 0 for one component. */
SIMD_CLONES
static void mixture_add_logs(const Mixture *mixture, int count, const double *total, double *out) {
  if (mixture->components == 1) return;
  for (RealLanes at = real_begin(count); at.count > 0; real_next(&at)) {
    Real x, sum;
    real_load(at, 1, total, &x);
    real_load(at, 1, out, &sum);
    x = real_log(x);
    sum += x;
    real_store(at, 1, &sum, out);
  }
}

void mixture_log_density(const Mixture *mixture, int lanes, const double *theta, double *out) {
  for (int first = 0; first < lanes; first += CHUNK_LANES) {
    double total[CHUNK_LANES];
    Points points = mixture_chunk_points(lanes, first, theta);
    mixture_log_density_chunk(mixture, points, out + first, total);
    mixture_add_logs(mixture, points.count, total, out + first);
  }
}

void mixture_density(const Mixture *mixture, int lanes, const double *theta, double *gradient,
                     double *log_density, double *score) {
  for (int first = 0; first < lanes; first += CHUNK_LANES) {
    double total[CHUNK_LANES];
    Points points = mixture_chunk_points(lanes, first, theta);
    mixture_density_chunk(mixture, points, gradient, log_density + first, total, score + first);
    mixture_add_logs(mixture, points.count, total, log_density + first);
  }
}

/* Allocates scratch[size]. If memory is short, returns NULL and fills out[count] with NaN, so that the draws
 * that need it are not finite and count as fallbacks. */
static double *mixture_scratch(Arena *memory, size_t size, size_t count, double *out) {
  void *scratch;
  if (arena_new(memory, &scratch, size, sizeof *out) == STATUS_OK) return scratch;
  for (size_t k = 0; k < count; k++) out[k] = NAN;
  return NULL;
}

void mixture_score(const Mixture *mixture, int lanes, const double *theta, double *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  double top[CHUNK_LANES], total[CHUNK_LANES],
      *gradient = mixture_scratch(&scratch, d * CHUNK_LANES, d * (size_t)lanes, out);
  for (int first = 0; gradient && first < lanes; first += CHUNK_LANES)
    mixture_density_chunk(mixture, mixture_chunk_points(lanes, first, theta), gradient, top, total,
                          out + first);
}

void mixture_score_hessian(const Mixture *mixture, int lanes, const double *theta, double *score,
                           double *hessian) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  double *gradient = mixture_scratch(&scratch, d * CHUNK_LANES, d * d * (size_t)lanes, hessian);
  if (!gradient) memcpy(score, hessian, d * (size_t)lanes * sizeof *score); /* NaN too */
  for (int first = 0; gradient && first < lanes; first += CHUNK_LANES)
    mixture_score_hessian_chunk(mixture, mixture_chunk_points(lanes, first, theta), gradient, score + first,
                                hessian + first);
}

/* Computes H v for `count` lanes of v and of out, whose rows are `stride` apart: hessian[d, d, count]. */
SIMD_CLONES
static void mixture_apply_hessian(size_t d, int count, const double *restrict hessian, size_t stride,
                                  const double *restrict v, double *restrict out) {
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++, hessian += count)
      for (int n = 0; n < count; n++)
        out[i * stride + (size_t)n] =
            (j > 0 ? out[i * stride + (size_t)n] : 0) + hessian[n] * v[j * stride + (size_t)n];
}

void mixture_hessian_product(const Mixture *mixture, int lanes, const double *theta, const double *v,
                             double *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d, part = d * VECTOR_LANES;
  double *hessian = mixture_scratch(&scratch, (d + 2) * part, d * (size_t)lanes, out);
  if (!hessian) return;
  double *x = hessian + d * part, *score = x + part;
  for (int first = 0; first < lanes; first += VECTOR_LANES) {
    const int count = lanes - first < VECTOR_LANES ? lanes - first : VECTOR_LANES;
    lanes_copy(mixture->d, count, theta + first, lanes, x, count);
    mixture_score_hessian(mixture, count, x, score, hessian);
    mixture_apply_hessian(d, count, hessian, (size_t)lanes, v + first, out + first);
  }
}

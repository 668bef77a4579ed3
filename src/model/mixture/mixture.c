/* Density, score and samples of a Gaussian mixture.
 *
 * With precision P_c, mean m_c and l_c = log_norm_c - 1/2 (x - m_c)' P_c (x - m_c): the log density is log
 * sum_c exp l_c, and r_c = exp(l_c) / sum exp l is the responsibility of component c. The largest l so far
 * ("top") is factored out of the running sum, so that a point far from all components is as safe as any. */
#include "model/mixture/mixture.h"

#include "core/chunk.h"
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

/* ---- densities, a vector of lanes at a time: `at` are its lanes in arrays [.., N], OWN those of scratch */

static const RealLanes OWN = {0, VECTOR_LANES, VECTOR_LANES};

/* The sum over components so far relative to exp(top), and the shares of the old sum and of the component. */
typedef struct {
  Real top, total, old_share, share;
} Sums;

/* Adds a component to the sums, as lanes_join does. */
INLINE void join_component(bool first, Real log_density, Sums *sums) {
  const Real one = real_of(1), rise = first ? one : log_density - sums->top;
  const Mask higher = real_above(rise, real_of(0));
  const Real ratio = first ? real_of(0) : real_exp(real_choose(higher, -rise, rise));
  sums->old_share = real_choose(higher, ratio, one);
  sums->share = real_choose(higher, one, ratio);
  sums->top = real_choose(higher, log_density, sums->top);
  sums->total = first ? one : sums->old_share * sums->total + sums->share;
}

/* Computes out[rows] = rows i, i + 1, .. of P_c (x - m_c): each vector of x that is loaded serves several
 * rows, whose sums stay in registers. */
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
 * VECTOR_LANES] is NULL, writes these rows of g_c to it. */
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
  if (gradient) real_store(OWN, rows, pulled, gradient + i * VECTOR_LANES);
}

/* Adds component c to the sums; unless gradient[d, VECTOR_LANES] is NULL, computes it as g_c. */
INLINE void add_component(const Mixture *mixture, int c, RealLanes at, const double *x, double *gradient,
                          Sums *sums) {
  const size_t d = (size_t)mixture->d;
  Real log_density = real_of(mixture->log_norm[c]);
  size_t i = 0;
  for (; i + PULL_ROWS <= d; i += PULL_ROWS)
    add_rows(mixture, c, i, PULL_ROWS, at, x, &log_density, gradient);
  for (; i < d; i++) add_rows(mixture, c, i, 1, at, x, &log_density, gradient);
  join_component(c == 0, log_density, sums);
}

/* Stores the log density. */
INLINE void store_log_density(const Mixture *mixture, RealLanes at, const Sums *sums, double *out) {
  const Real log_density = mixture->components > 1 ? sums->top + real_log(sums->total) : sums->top;
  real_store(at, 1, &log_density, out);
}

SIMD_CLONES
void mixture_log_density(const Mixture *mixture, int lanes, const double *theta, double *out) {
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Sums sums = {.top = {0}};
    for (int c = 0; c < mixture->components; c++) add_component(mixture, c, at, theta, NULL, &sums);
    store_log_density(mixture, at, &sums, out);
  }
}

SIMD_CLONES
void mixture_density(const Mixture *mixture, int lanes, const double *theta, double *gradient,
                     double *log_density, double *score) {
  const size_t d = (size_t)mixture->d;
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Sums sums = {.top = {0}};
    for (int c = 0; c < mixture->components; c++) {
      add_component(mixture, c, at, theta, gradient, &sums);
      for (size_t i = 0; i < d; i++) {
        Real own, sum;
        real_load(OWN, 1, gradient + i * VECTOR_LANES, &own);
        if (c > 0) {
          real_load(at, 1, score + i * at.lanes, &sum);
          own = real_two_products(sums.old_share, sum, sums.share, own);
        }
        real_store(at, 1, &own, score + i * at.lanes);
      }
    }
    if (log_density) store_log_density(mixture, at, &sums, log_density);
    const Real inverse = 1 / sums.total;
    for (size_t i = 0; i < d && mixture->components > 1; i++) {
      Real sum;
      real_load(at, 1, score + i * at.lanes, &sum);
      sum *= inverse;
      real_store(at, 1, &sum, score + i * at.lanes);
    }
  }
}

/* Computes, in the lanes `to`, the score and H = sum_c r_c ((g_c - g) (g_c - g)' - P_c), both triangles, by
 * updates of weighted moments (West 1979), so that nothing cancels where scores are large. Scratch:
 * gradient[d, VECTOR_LANES]. */
INLINE void score_hessian_vector(const Mixture *mixture, RealLanes at, const double *x, double *gradient,
                                 RealLanes to, double *score, double *hessian) {
  const size_t d = (size_t)mixture->d;
  Sums sums = {.top = {0}};
  for (int c = 0; c < mixture->components; c++) {
    const double *precision = mixture->precision + (size_t)c * d * d;
    add_component(mixture, c, at, x, gradient, &sums);
    const Real step = sums.share / sums.total, spread = (sums.total - sums.share) * step;
    for (size_t i = 0; i < d; i++) {
      Real own, other, mean = {0}, h = {0};
      real_load(OWN, 1, gradient + i * VECTOR_LANES, &own);
      if (c > 0) real_load(to, 1, score + i * to.lanes, &mean);
      own -= mean;
      mean += step * own;
      real_store(OWN, 1, &own, gradient + i * VECTOR_LANES);
      real_store(to, 1, &mean, score + i * to.lanes);
      for (size_t j = 0; j <= i; j++) {
        double *low = hessian + (i * d + j) * to.lanes;
        real_load(OWN, 1, gradient + j * VECTOR_LANES, &other);
        if (c > 0) real_load(to, 1, low, &h);
        h = real_two_products(sums.old_share, h, spread * own, other) - sums.share * precision[i * d + j];
        real_store(to, 1, &h, low);
      }
    }
  }
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++) {
      Real h;
      real_load(to, 1, hessian + (i * d + j) * to.lanes, &h);
      h /= sums.total;
      real_store(to, 1, &h, hessian + (i * d + j) * to.lanes);
      real_store(to, 1, &h, hessian + (j * d + i) * to.lanes);
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
  double *gradient = mixture_scratch(&scratch, d * VECTOR_LANES, d * (size_t)lanes, out);
  if (gradient) mixture_density(mixture, lanes, theta, gradient, NULL, out);
}

SIMD_CLONES
void mixture_score_hessian(const Mixture *mixture, int lanes, const double *theta, double *score,
                           double *hessian) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  double *gradient = mixture_scratch(&scratch, d * VECTOR_LANES, d * d * (size_t)lanes, hessian);
  if (!gradient) memcpy(score, hessian, d * (size_t)lanes * sizeof *score); /* NaN too */
  for (RealLanes at = real_begin(lanes); at.count > 0 && gradient; real_next(&at))
    score_hessian_vector(mixture, at, theta, gradient, at, score, hessian);
}

SIMD_CLONES
void mixture_hessian_product(const Mixture *mixture, int lanes, const double *theta, const double *v,
                             double *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d, part = d * VECTOR_LANES;
  double *gradient = mixture_scratch(&scratch, (d + 2) * part, d * (size_t)lanes, out);
  for (RealLanes at = real_begin(lanes); at.count > 0 && gradient; real_next(&at)) {
    double *score = gradient + part, *hessian = score + part;
    score_hessian_vector(mixture, at, theta, gradient, OWN, score, hessian);
    for (size_t i = 0; i < d; i++) {
      Real h, along, sum = {0};
      for (size_t j = 0; j < d; j++) {
        real_load(OWN, 1, hessian + (i * d + j) * VECTOR_LANES, &h);
        real_load(at, 1, v + j * at.lanes, &along);
        sum += h * along;
      }
      real_store(at, 1, &sum, out + i * at.lanes);
    }
  }
}

#include "model/denoiser/denoiser_isotropic.h"

#include "core/lanes.h"
#include "core/special.h"
#include "model/mixture/mixture_density.h"

#include <math.h>

Status denoiser_isotropic_create(Arena *memory, int d, int components, Isotropic *out) {
  ASSERT(components >= 1 && components <= ISOTROPIC_COMPONENTS);
  *out = (Isotropic){.d = d, .components = components};
  ALLOCATE(memory, out->mean, (size_t)components * (size_t)d);
  return STATUS_OK;
}

Status denoiser_isotropic_copy(Arena *memory, const Isotropic *from, Isotropic *out) {
  const size_t entries = (size_t)from->components * (size_t)from->d;
  TRY(denoiser_isotropic_create(memory, from->d, from->components, out));
  memcpy(out->weight, from->weight, sizeof out->weight);
  memcpy(out->variance, from->variance, sizeof out->variance);
  memcpy(out->mean, from->mean, entries * sizeof *out->mean);
  return STATUS_OK;
}

void denoiser_isotropic_sample(const Isotropic *mixture, RngLanes *rng, double *theta) {
  RngLanes uniforms = *rng;
  const size_t lanes = rng->lanes, d = (size_t)mixture->d;
  rng->position++; /* the position of the uniform */
  rng_lanes_normal(rng, mixture->d, theta);
  for (size_t n = 0; n < lanes; n++) {
    RngLanes one = uniforms;
    one.first_lane += (uint32_t)n;
    one.lanes = 1;
    double u, below = 0;
    rng_lanes_uniform(&one, 1, &u);
    size_t chosen = 0;
    for (int c = 0; c + 1 < mixture->components; c++) {
      below += mixture->weight[c];
      chosen += u >= below;
    }
    const double *mean = mixture->mean + chosen * d, deviation = sqrt(mixture->variance[chosen]);
    for (size_t i = 0; i < d; i++) theta[i * lanes + n] = mean[i] + deviation * theta[i * lanes + n];
  }
}

void denoiser_isotropic_moments(const Isotropic *mixture, double *mean, double *variance) {
  const size_t d = (size_t)mixture->d, count = (size_t)mixture->components;
  for (size_t i = 0; i < d; i++) {
    mean[i] = variance[i] = 0;
    for (size_t c = 0; c < count; c++) mean[i] += mixture->weight[c] * mixture->mean[c * d + i];
    for (size_t c = 0; c < count; c++) {
      const double step = mixture->mean[c * d + i] - mean[i];
      variance[i] += mixture->weight[c] * (mixture->variance[c] + step * step);
    }
  }
}

void denoiser_isotropic_standardise(const double *shift, double scale, Isotropic *mixture) {
  const size_t d = (size_t)mixture->d;
  for (size_t c = 0; c < (size_t)mixture->components; c++) {
    for (size_t i = 0; i < d; i++) mixture->mean[c * d + i] = (mixture->mean[c * d + i] - shift[i]) / scale;
    mixture->variance[c] /= scale * scale;
  }
}

void denoiser_isotropic_transform(const double *shift, double scale, Isotropic *mixture) {
  const size_t d = (size_t)mixture->d;
  for (size_t c = 0; c < (size_t)mixture->components; c++) {
    for (size_t i = 0; i < d; i++) mixture->mean[c * d + i] = shift[i] + scale * mixture->mean[c * d + i];
    mixture->variance[c] *= scale * scale;
  }
}

/* At most CHUNK_LANES neighbouring columns of arrays whose rows are `stride` apart. */
typedef struct {
  int lanes;
  size_t stride;
} Columns;

/* Returns the columns from `first` on of arrays with `lanes` of them; none are left: lanes <= 0. */
static Columns columns_from(int first, int lanes) {
  return (Columns){.lanes = lanes - first < CHUNK_LANES ? lanes - first : CHUNK_LANES,
                   .stride = (size_t)lanes};
}

/* Computes part[C, CHUNK_LANES], the logarithm of weight times density of each component. */
SIMD_CLONES
static void log_parts(const Isotropic *mixture, double signal, Columns columns, const double *restrict s,
                      double (*restrict part)[CHUNK_LANES]) {
  const int lanes = columns.lanes;
  const double root = sqrt(signal);
  for (int c = 0; c < mixture->components; c++) {
    const double variance = signal * mixture->variance[c] + (1 - signal);
    const double *mean = mixture->mean + (size_t)c * (size_t)mixture->d;
    double square[CHUNK_LANES] = {0};
    for (int i = 0; i < mixture->d; i++) {
      const double centre = root * mean[i], *restrict row = s + (size_t)i * columns.stride;
      for (int n = 0; n < lanes; n++) square[n] += (row[n] - centre) * (row[n] - centre);
    }
    for (int n = 0; n < lanes; n++)
      part[c][n] = log(mixture->weight[c]) - 0.5 * (mixture->d * log(variance) + square[n] / variance);
  }
}

/* Turns logarithms part[C, CHUNK_LANES] into responsibilities over variances; log_density[N] unless NULL. */
static void denoiser_isotropic_pull(const Isotropic *mixture, double signal, int lanes,
                                    double (*part)[CHUNK_LANES], double *log_density) {
  const int count = mixture->components;
  for (int n = 0; n < lanes; n++) {
    double top = part[0][n], total = 0;
    for (int c = 1; c < count; c++) top = fmax(top, part[c][n]);
    for (int c = 0; c < count; c++) total += part[c][n] = exp(fmax(part[c][n] - top, -700));
    for (int c = 0; c < count; c++) part[c][n] /= total * (signal * mixture->variance[c] + (1 - signal));
    if (log_density) log_density[n] = top + log(total);
  }
}

/* Computes score = sum_c pull_c (sqrt(signal) m_c - s). */
SIMD_CLONES
static void denoiser_isotropic_mixture_score(const Isotropic *mixture, double signal, Columns columns,
                                             const double *restrict s, double (*restrict pull)[CHUNK_LANES],
                                             double *restrict score) {
  const int lanes = columns.lanes;
  const double root = sqrt(signal);
  const size_t d = (size_t)mixture->d;
  for (size_t i = 0; i < d; i++) {
    const double *restrict row = s + i * columns.stride;
    double *restrict out = score + i * columns.stride;
    for (int n = 0; n < lanes; n++) out[n] = 0;
    for (size_t c = 0; c < (size_t)mixture->components; c++) {
      const double centre = root * mixture->mean[c * d + i], *restrict by = pull[c];
      for (int n = 0; n < lanes; n++) out[n] += by[n] * (centre - row[n]);
    }
  }
}

void denoiser_isotropic_density(const Isotropic *mixture, double signal, int lanes, const double *s,
                                double *log_density, double *score) {
  double part[ISOTROPIC_COMPONENTS][CHUNK_LANES];
  for (int first = 0; first < lanes; first += CHUNK_LANES) {
    const Columns columns = columns_from(first, lanes);
    log_parts(mixture, signal, columns, s + first, part);
    denoiser_isotropic_pull(mixture, signal, columns.lanes, part, log_density ? log_density + first : NULL);
    if (score) denoiser_isotropic_mixture_score(mixture, signal, columns, s + first, part, score + first);
  }
}

/* Computes out[d, N] = H v, the Hessian of the log density at s times v. With g_c the score of component c,
 * of variance t_c, and r_c its responsibility, H = sum_c r_c (g_c g_c' - I / t_c) - g g' with g = sum_c r_c
 * g_c. pull = r_c / t_c. */
SIMD_CLONES
static void denoiser_isotropic_hessian_product(const Isotropic *mixture, double signal, Columns columns,
                                               const double *restrict s, double (*restrict pull)[CHUNK_LANES],
                                               const double *restrict v, double *restrict out) {
  const double root = sqrt(signal);
  const int d = mixture->d, count = mixture->components, lanes = columns.lanes;
  double along[ISOTROPIC_COMPONENTS][CHUNK_LANES];
  double total[CHUNK_LANES] = {0};
  double all[CHUNK_LANES] = {0};
  for (int c = 0; c < count; c++) { /* along = g_c' v, all = g' v, total = sum_c r_c / t_c */
    const double variance = signal * mixture->variance[c] + (1 - signal);
    const double *mean = mixture->mean + (size_t)c * (size_t)d;
    for (int n = 0; n < lanes; n++) along[c][n] = 0;
    for (int i = 0; i < d; i++) {
      const double *restrict at = s + (size_t)i * columns.stride;
      const double *restrict to = v + (size_t)i * columns.stride;
      for (int n = 0; n < lanes; n++) along[c][n] += (root * mean[i] - at[n]) / variance * to[n];
    }
    for (int n = 0; n < lanes; n++) {
      total[n] += pull[c][n];
      all[n] += pull[c][n] * variance * along[c][n];
    }
  }
  for (int i = 0; i < d; i++) {
    const size_t start = (size_t)i * columns.stride;
    const double *restrict at = s + start;
    const double *restrict to = v + start;
    double *restrict row = out + start;
    for (int n = 0; n < lanes; n++) row[n] = -total[n] * to[n];
    for (int c = 0; c < count; c++) {
      const double centre = root * mixture->mean[(size_t)c * (size_t)d + (size_t)i];
      for (int n = 0; n < lanes; n++) row[n] += pull[c][n] * (along[c][n] - all[n]) * (centre - at[n]);
    }
  }
}

void denoiser_isotropic_shares(const Isotropic *mixture, const double *q, int lanes, const double *b,
                               double *share, double *log_sum) {
  const int count = mixture->components;
  double top[CHUNK_LANES], total[CHUNK_LANES];
  ASSERT(lanes <= CHUNK_LANES);
  for (int c = 0; c < count; c++) {
    double *restrict out = share + c * lanes;
    const double v = mixture->variance[c];
    for (int n = 0; n < lanes; n++) out[n] = log(mixture->weight[c]);
    for (int i = 0; i < mixture->d; i++) {
      const double p = q[i], m = mixture->mean[c * mixture->d + i], spread = log1p(p * v);
      const double *restrict row = b + i * lanes;
      for (int n = 0; n < lanes; n++)
        out[n] += 0.5 * ((special_two_products(row[n] * row[n], v, 2 * row[n], m) - m * m * p) / (1 + p * v) -
                         spread);
    }
  }
  lanes_exponentiate(count, lanes, share, top, total);
  for (int k = 0; k < count * lanes; k++) share[k] /= total[k % lanes];
  if (!log_sum) return;
  for (int n = 0; n < lanes; n++) log_sum[n] = top[n] + log(total[n]);
}

void denoiser_isotropic_nearest(const Isotropic *mixture, int lanes, const double *theta, int *component) {
  double part[ISOTROPIC_COMPONENTS][CHUNK_LANES];
  ASSERT(lanes <= CHUNK_LANES);
  log_parts(mixture, 1, columns_from(0, lanes), theta, part);
  for (int n = 0; n < lanes; n++) {
    component[n] = 0;
    for (int c = 1; c < mixture->components; c++)
      if (part[c][n] > part[component[n]][n]) component[n] = c;
  }
}

/* ---- the chain */

static void denoiser_isotropic_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  const double signal = chain->schedule.alpha_bar[t], factor = -sqrt(1 - signal);
  denoiser_isotropic_density(chain->state, signal, lanes, s, NULL, eps);
  for (size_t k = 0; k < (size_t)chain->d * (size_t)lanes; k++) eps[k] *= factor;
}

/* Computes eps, unless it is NULL, and products; responsibilities are found once for all. */
static void denoiser_isotropic_noise_products(const Chain *chain, int t, int lanes, const double *s,
                                              double *eps, const ChainProducts *products) {
  const Isotropic *mixture = chain->state;
  const double signal = chain->schedule.alpha_bar[t], factor = -sqrt(1 - signal);
  const size_t entries = (size_t)chain->d * (size_t)lanes, all = (size_t)products->count * entries;
  double pull[ISOTROPIC_COMPONENTS][CHUNK_LANES];
  for (int first = 0; first < lanes; first += CHUNK_LANES) {
    const Columns columns = columns_from(first, lanes);
    log_parts(mixture, signal, columns, s + first, pull);
    denoiser_isotropic_pull(mixture, signal, columns.lanes, pull, NULL);
    if (eps) denoiser_isotropic_mixture_score(mixture, signal, columns, s + first, pull, eps + first);
    for (size_t k = (size_t)first; k < all; k += entries)
      denoiser_isotropic_hessian_product(mixture, signal, columns, s + first, pull, products->v + k,
                                         products->out + k);
  }
  if (eps)
    for (size_t k = 0; k < entries; k++) eps[k] *= factor;
  for (size_t k = 0; k < all; k++) products->out[k] *= factor;
}

static void denoiser_isotropic_noise_vjp(const Chain *chain, int t, int lanes, const double *s,
                                         const double *v, double *out) {
  const ChainProducts one = {.count = 1, .v = v, .out = out};
  denoiser_isotropic_noise_products(chain, t, lanes, s, NULL, &one);
}

static void denoiser_isotropic_noised_density(const Chain *chain, int t, int lanes, const double *s,
                                              double *log_density, double *score) {
  denoiser_isotropic_density(chain->state, chain->schedule.alpha_bar[t], lanes, s, log_density, score);
}

Status denoiser_isotropic_chain(Arena *memory, const Isotropic *mixture, const ScheduleRule *rule,
                                Chain *out) {
  TRY(denoiser_chain_create(memory, out, mixture->d, rule, LAST_STAGE_REPAIRED));
  out->state = mixture;
  out->noise = denoiser_isotropic_noise;
  out->noise_vjp = denoiser_isotropic_noise_vjp;
  out->noise_products = denoiser_isotropic_noise_products;
  out->density = denoiser_isotropic_noised_density;
  return STATUS_OK;
}

Chain denoiser_isotropic_chain_like(const Chain *like, const Isotropic *mixture) {
  return (Chain){.d = mixture->d,
                 .schedule = like->schedule,
                 .last_stage = like->last_stage,
                 .state = mixture,
                 .noise = denoiser_isotropic_noise,
                 .noise_vjp = denoiser_isotropic_noise_vjp,
                 .noise_products = denoiser_isotropic_noise_products,
                 .density = denoiser_isotropic_noised_density};
}

/* The guard of states, and unconditional sampling from a reverse chain (DiffTS paper,
 * Algorithm 2 without history). */
#include "model/denoiser/denoiser_chain.h"

#include "core/special.h"

#include <math.h>
#include <string.h>

SIMD_CLONES
void denoiser_chain_guard(const Chunk *chunk, int d, double *s, int64_t *fallbacks) {
  const int lanes = chunk->lanes;
  long outside = 0;
  for (int i = 0; i < d * lanes; i++) outside += special_is_beyond(s[i], CHAIN_GUARD);
  if (outside == 0) return;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      double *x = &s[i * lanes + n];
      if (!special_is_beyond(*x, CHAIN_GUARD)) continue;
      *x = isnan(*x) ? 0 : copysign(CHAIN_GUARD, *x);
      fallbacks[(uint32_t)(chunk->first + n) / chunk->rng.draws]++;
    }
}

int denoiser_chain_lanes(const Chain *chain, size_t numbers, int all) {
  static const size_t MOST_NUMBERS = 1 << 24;
  const size_t fit = MOST_NUMBERS / numbers, most = fit < (size_t)chain->lanes ? fit : (size_t)chain->lanes;
  if (all <= CHUNK_LANES || most <= CHUNK_LANES) return CHUNK_LANES;
  return (size_t)all < most ? all : (int)most;
}

Status denoiser_chain_create(Arena *memory, Chain *chain, int d, const ScheduleRule *rule,
                             LastStage last_stage) {
  *chain = (Chain){.d = d, .last_stage = last_stage};
  TRY(schedule_create(memory, rule, &chain->schedule));
  ALLOCATE_ARRAYS(memory, d, &chain->shift, &chain->scale);
  for (int i = 0; i < d; i++) chain->scale[i] = 1;
  return STATUS_OK;
}

void denoiser_chain_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                   double *jacobian, double *scratch) {
  const size_t row = (size_t)lanes, vector = (size_t)chain->d * row;
  if (chain->noise_jacobian) {
    chain->noise_jacobian(chain, t, lanes, s, eps, jacobian);
    return;
  }
  chain->noise(chain, t, lanes, s, eps);
  memset(scratch, 0, vector * sizeof *scratch);
  for (size_t i = 0; i < (size_t)chain->d; i++) {
    double *unit = scratch + i * row;
    for (int n = 0; n < lanes; n++) unit[n] = 1;
    chain->noise_vjp(chain, t, lanes, s, scratch, jacobian + i * vector);
    memset(unit, 0, row * sizeof *unit);
  }
}

/* Computes y[n] = a x[n] + b y[n]. */
SIMD_CLONES
static void denoiser_chain_mix_noise(size_t n, double a, const double *restrict x, double b,
                                     double *restrict y) {
  for (size_t i = 0; i < n; i++) y[i] = special_two_products(a, x[i], b, y[i]);
}

void denoiser_chain_mean(const Chain *chain, int t, int lanes, const double *s, double *mu) {
  double of_state, of_noise;
  schedule_mean_factors(&chain->schedule, t, &of_state, &of_noise);
  chain->noise(chain, t, lanes, s, mu);
  denoiser_chain_mix_noise((size_t)chain->d * (size_t)lanes, of_state, s, of_noise, mu);
}

void denoiser_chain_denoise_mean(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  double of_state, of_noise;
  schedule_denoise_factors(&chain->schedule, t, &of_state, &of_noise);
  denoiser_chain_mix_noise((size_t)chain->d * (size_t)lanes, of_state, s, of_noise, eps);
}

void denoiser_chain_to_theta(const Chain *chain, int lanes, double *z) {
  for (int i = 0; i < chain->d; i++) {
    double *row = z + (size_t)i * (size_t)lanes;
    for (int n = 0; n < lanes; n++) row[n] = chain->shift[i] + chain->scale[i] * row[n];
  }
}

/* Computes s[n] = mu[n] + sd z[n], within the guard. */
SIMD_CLONES
static void denoiser_chain_step(size_t n, const double *restrict mu, double sd, const double *restrict z,
                                double *restrict s) {
  for (size_t i = 0; i < n; i++) {
    double next = mu[i] + sd * z[i];
    s[i] = next > CHAIN_GUARD ? CHAIN_GUARD : next < -CHAIN_GUARD ? -CHAIN_GUARD : next;
  }
}

void denoiser_chain_sample(const Chain *chain, RngLanes *rng, double *theta, double *scratch) {
  const int lanes = (int)rng->lanes;
  const size_t n = (size_t)chain->d * (size_t)lanes;
  double *mu = scratch, *z = scratch + n;
  rng_lanes_normal(rng, chain->d, theta); /* s_T */
  for (int t = chain->schedule.stages; t >= 1; t--) {
    denoiser_chain_mean(chain, t, lanes, theta, mu);
    rng_lanes_normal(rng, chain->d, z);
    denoiser_chain_step(n, mu, sqrt(schedule_variance(&chain->schedule, t, chain->last_stage)), z, theta);
  }
  denoiser_chain_to_theta(chain, lanes, theta);
}

void denoiser_chain_sample_parts(const Chain *chain, int width, RngLanes *rng, double *part_theta,
                                 double *scratch, double *theta) {
  uint32_t position = rng->position;
  for (Chunk chunk = chunk_begin_narrow(*rng, width); chunk.lanes > 0; chunk_next(&chunk, *rng)) {
    denoiser_chain_sample(chain, &chunk.rng, part_theta, scratch);
    chunk_store(&chunk, chain->d, part_theta, theta);
    position = chunk.rng.position;
  }
  rng->position = position;
}

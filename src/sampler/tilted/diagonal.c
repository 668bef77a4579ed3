#include "sampler/diagonal.h"
#include "core/lanes.h"

#include "sampler/tilted/langevin.h"
#include "sampler/tilted/tilt_reverse.h"

#include <math.h>
#include <string.h>

/* ---- exact */

static Status draw_exact(const Diagonal *posterior, RngLanes rng, double *x, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  (void)fallbacks;
  const Isotropic *prior = posterior->prior;
  double share[ISOTROPIC_COMPONENTS];
  const size_t lanes = rng.lanes;
  double *u;
  ALLOCATE(&scratch, u, lanes);
  denoiser_isotropic_shares(prior, posterior->q, 0, 1, posterior->b, share);
  rng_lanes_uniform(&rng, 1, u);
  rng_lanes_normal(&rng, prior->d, x);
  for (size_t n = 0; n < lanes; n++) {
    const size_t c = (size_t)lanes_pick(prior->components, 1, share, u[n]);
    const double *mean = prior->mean + c * (size_t)prior->d, v = prior->variance[c];
    for (size_t i = 0; i < (size_t)prior->d; i++) {
      const double widened = 1 + posterior->q[i] * v;
      x[i * lanes + n] = (mean[i] + v * posterior->b[i]) / widened + sqrt(v / widened) * x[i * lanes + n];
    }
  }
  return STATUS_OK;
}

/* ---- Langevin steps and the reverse process */

/* n <= CHUNK_LANES lanes. */
typedef struct {
  const Chain *chain;
  int t; /* stage of the steps: 0 for mala */
  double *s, *normal, *eps; /* [d, n] */
} DiagonalWork;

static void diagonal_stage_density(const void *context, int lanes, double *x, double *log_density,
                                   double *score) {
  const DiagonalWork *work = context;
  work->chain->density(work->chain, work->t, lanes, x, log_density, score);
}

static void diagonal_reverse(DiagonalWork *work, const Chunk *chunk, int64_t *fallbacks) {
  const int d = work->chain->d;
  Chunk all = *chunk; /* there is one run, and every fallback counts for it */
  all.first = 0;
  all.rng.draws = UINT32_MAX;
  for (int t = work->t; t >= 1; t--) {
    RngLanes rng = chunk->rng;
    rng.key = rng_subkey(rng.key, RNG_REVERSE);
    rng.position = (uint32_t)t * ((uint32_t)(d + 1) / 2);
    rng_lanes_normal(&rng, d, work->normal);
    tilt_reverse_exponential(work->chain, t, chunk->lanes, work->s, work->normal, work->eps);
    denoiser_chain_guard(&all, d, work->s, fallbacks);
  }
}

static Status check_tilted(const Config *options) {
  if (!config_is(options, "baseline", "mala") && !config_is(options, "baseline", "ula"))
    return status_set(STATUS_INPUT, "key 'baseline': %s; large settings allow mala and ula",
                      config_text(options, "baseline"));
  if (config_is(options, "reverse", "moments"))
    return status_set(STATUS_INPUT, "key 'reverse': moments; large settings allow exponential");
  return STATUS_OK;
}

/* Draws for `tilted`, and for `mala`, whose flow has no stages. The steps are taken under the tilt, and with
 * the prior's mean and variance, at the last stage that the evidence allows (tilt_reverse.h). */
static Status draw_by_steps(const Diagonal *posterior, RngLanes rng, double *x, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const Config *options = posterior->options;
  const Schedule *schedule = &posterior->chain->schedule;
  const bool tilted = config_has(options, "baseline"),
             accept = !tilted || config_is(options, "baseline", "mala");
  const int d = posterior->prior->d, steps = (int)config_int(options, "steps");
  const size_t vector = (size_t)d * CHUNK_LANES;
  DiagonalWork work = {.chain = posterior->chain};
  const LangevinPrior prior = {diagonal_stage_density, &work, accept};
  Langevin langevin;
  double *q, *b, *mean, *variance, *wide_q, *wide_b, *wide_mean, *wide_variance, largest = 0;
  ALLOCATE_ARRAYS(&scratch, d, q, b, mean, variance);
  ALLOCATE_ARRAYS(&scratch, vector, wide_q, wide_b, wide_mean, wide_variance, work.s, work.normal, work.eps);
  TRY(langevin_create(&scratch, d, CHUNK_LANES, &langevin));
  memcpy(q, posterior->q, (size_t)d * sizeof *q);
  memcpy(b, posterior->b, (size_t)d * sizeof *b);
  denoiser_isotropic_moments(posterior->prior, mean, variance);
  if (tilted) {
    for (int i = 0; i < d; i++) largest = fmax(largest, q[i]);
    work.t = tilt_flow_stage(schedule, largest, config_real(options, "margin"));
    tilt_flow(d, 1, tilt_flow_reach(schedule, work.t), q, b);
    const double signal = schedule->alpha_bar[work.t];
    for (int i = 0; i < d; i++) {
      mean[i] *= sqrt(signal);
      variance[i] = signal * variance[i] + (1 - signal);
    }
  }
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    lanes_repeat(d, chunk.lanes, q, wide_q);
    lanes_repeat(d, chunk.lanes, b, wide_b);
    lanes_repeat(d, chunk.lanes, mean, wide_mean);
    lanes_repeat(d, chunk.lanes, variance, wide_variance);
    langevin_target(&langevin, &prior, chunk.lanes, NULL, wide_q, wide_b, wide_mean, wide_variance);
    langevin_run(&langevin, chunk.rng, steps, config_real(options, "step_size"));
    langevin_positions(&langevin, work.s);
    diagonal_reverse(&work, &chunk, fallbacks);
    chunk_store(&chunk, d, work.s, x);
  }
  return STATUS_OK;
}

const DiagonalOps diagonal_exact = {.draw = draw_exact};
const DiagonalOps diagonal_mala = {.draw = draw_by_steps};
const DiagonalOps diagonal_tilted = {.check = check_tilted, .draw = draw_by_steps};

#include "sampler/diagonal.h"

#include "core/lanes.h"
#include "sampler/markov/langevin.h"
#include "sampler/tilted/tilt_reverse.h"

#include <math.h>
#include <string.h>

/* ---- exact */

static Status draw_exact(const Diagonal *posterior, RngLanes rng, double *x, DrawNotes *notes,
                         int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  (void)notes;
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

/* Where the steps are taken: at stage t of the chain, 0 for mala. */
typedef struct {
  const Chain *chain;
  int t;
} DiagonalStage;

static void diagonal_stage_density(const void *context, int lanes, double *x, double *log_density,
                                   double *score) {
  const DiagonalStage *at = context;
  at->chain->density(at->chain, at->t, lanes, x, log_density, score);
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
static Status draw_by_steps(const Diagonal *posterior, RngLanes rng, double *x, DrawNotes *notes,
                            int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const Config *options = posterior->options;
  const Chain *chain = posterior->chain;
  const Schedule *schedule = &chain->schedule;
  const bool tilted = config_has(options, "baseline"),
             accept = !tilted || config_is(options, "baseline", "mala");
  const int d = posterior->prior->d, steps = (int)config_int(options, "steps");
  const size_t vector = (size_t)d * CHUNK_LANES;
  DiagonalStage stage = {.chain = chain};
  const LangevinPrior prior = {diagonal_stage_density, &stage, accept};
  Langevin langevin;
  double *q, *b, *mean, *variance, *wide_q, *wide_b, *wide_mean, *wide_variance, *s, *normal, *eps,
      largest = 0;
  ALLOCATE_ARRAYS(&scratch, d, &q, &b, &mean, &variance);
  ALLOCATE_ARRAYS(&scratch, vector, &wide_q, &wide_b, &wide_mean, &wide_variance, &s, &normal, &eps);
  TRY(langevin_create(&scratch, d, CHUNK_LANES, &langevin));
  memcpy(q, posterior->q, (size_t)d * sizeof *q);
  memcpy(b, posterior->b, (size_t)d * sizeof *b);
  denoiser_isotropic_moments(posterior->prior, mean, variance);
  if (tilted) {
    for (int i = 0; i < d; i++) largest = fmax(largest, q[i]);
    stage.t = tilt_flow_stage(schedule, largest, config_real(options, "margin"));
    tilt_flow(d, 1, tilt_flow_reach(schedule, stage.t), q, b);
    const double signal = schedule->alpha_bar[stage.t];
    for (int i = 0; i < d; i++) {
      mean[i] *= sqrt(signal);
      variance[i] = signal * variance[i] + (1 - signal);
    }
  }
  notes->calls = steps + 1 + stage.t; /* densities, then reverse stages */
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    lanes_repeat(d, chunk.lanes, q, wide_q);
    lanes_repeat(d, chunk.lanes, b, wide_b);
    lanes_repeat(d, chunk.lanes, mean, wide_mean);
    lanes_repeat(d, chunk.lanes, variance, wide_variance);
    const LangevinTilt tilt = {.q = wide_q, .b = wide_b, .mean = wide_mean, .variance = wide_variance};
    langevin_target(&langevin, &prior, chunk.lanes, &tilt);
    langevin_run(&langevin, chunk.rng, steps, config_real(options, "step_size"));
    langevin_positions(&langevin, s);
    Chunk all = chunk; /* there is one run, and every fallback counts for it */
    all.first = 0;
    all.rng.draws = UINT32_MAX;
    for (int t = stage.t; t >= 1; t--) {
      RngLanes reverse = chunk.rng;
      reverse.key = rng_subkey(reverse.key, RNG_REVERSE);
      reverse.position = (uint32_t)t * ((uint32_t)(d + 1) / 2);
      rng_lanes_normal(&reverse, d, normal);
      tilt_reverse_exponential(chain, t, chunk.lanes, s, normal, eps);
      denoiser_chain_guard(&all, d, s, fallbacks);
    }
    chunk_store(&chunk, d, s, x);
  }
  return STATUS_OK;
}

const DiagonalOps diagonal_exact = {.draw = draw_exact};
const DiagonalOps diagonal_mala = {.draw = draw_by_steps};
const DiagonalOps diagonal_tilted = {.check = check_tilted, .draw = draw_by_steps};

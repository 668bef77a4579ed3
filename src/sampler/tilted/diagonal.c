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

/* n <= CHUNK_LANES lanes; vectors [d] are those of the stage at which the steps are taken. */
typedef struct {
  const Chain *chain;
  int t; /* stage of the steps: 0 for mala */
  double *q, *b, *mean, *variance;
  double *wide_q, *wide_b, *wide_mean, *wide_variance; /* [d, n]: repeated for every lane */
  double *s, *normal, *eps; /* [d, n] */
  Langevin langevin;
} DiagonalWork;

static Status diagonal_work_create(Arena *memory, const Diagonal *posterior, DiagonalWork *out) {
  const size_t d = (size_t)posterior->prior->d, vector = d * CHUNK_LANES;
  *out = (DiagonalWork){.chain = posterior->chain};
  ALLOCATE_ARRAYS(memory, d, out->q, out->b, out->mean, out->variance);
  ALLOCATE_ARRAYS(memory, vector, out->wide_q, out->wide_b, out->wide_mean, out->wide_variance, out->s,
                  out->normal, out->eps);
  memcpy(out->q, posterior->q, d * sizeof *out->q);
  memcpy(out->b, posterior->b, d * sizeof *out->b);
  denoiser_isotropic_moments(posterior->prior, out->mean, out->variance);
  return langevin_create(memory, posterior->prior->d, CHUNK_LANES, &out->langevin);
}

/* Computes the tilt, and the prior's mean and variance, at the last stage that the evidence allows
 * (tilt_reverse.h). */
static void flow_to_stage(DiagonalWork *work, double margin) {
  const Schedule *schedule = &work->chain->schedule;
  const int d = work->chain->d;
  double largest = 0;
  for (int i = 0; i < d; i++) largest = fmax(largest, work->q[i]);
  work->t = tilt_flow_stage(schedule, largest, margin);
  tilt_flow(d, 1, tilt_flow_reach(schedule, work->t), work->q, work->b);
  const double signal = schedule->alpha_bar[work->t];
  for (int i = 0; i < d; i++) {
    work->mean[i] *= sqrt(signal);
    work->variance[i] = signal * work->variance[i] + (1 - signal);
  }
}

static void diagonal_stage_density(const void *context, int lanes, double *x, double *log_density,
                                   double *score) {
  const DiagonalWork *work = context;
  work->chain->density(work->chain, work->t, lanes, x, log_density, score);
}

/* Takes the Langevin steps and leaves their final states in s[d, n]. */
static void take_steps(DiagonalWork *work, const Chunk *chunk, bool accept, int steps, double step_size) {
  const int d = work->chain->d, lanes = chunk->lanes;
  const LangevinPrior prior = {diagonal_stage_density, work, accept};
  lanes_repeat(d, lanes, work->q, work->wide_q);
  lanes_repeat(d, lanes, work->b, work->wide_b);
  lanes_repeat(d, lanes, work->mean, work->wide_mean);
  lanes_repeat(d, lanes, work->variance, work->wide_variance);
  langevin_target(&work->langevin, &prior, lanes, NULL, work->wide_q, work->wide_b, work->wide_mean,
                  work->wide_variance);
  langevin_run(&work->langevin, chunk->rng, steps, step_size);
  langevin_positions(&work->langevin, work->s);
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

/* Draws for `tilted`, and for `mala`, whose flow has no stages. */
static Status draw_by_steps(const Diagonal *posterior, RngLanes rng, double *x, int64_t *fallbacks) {
  SCRATCH_ARENA(scratch);
  const Config *options = posterior->options;
  const bool tilted = config_has(options, "baseline"),
             accept = !tilted || config_is(options, "baseline", "mala");
  DiagonalWork work;
  TRY(diagonal_work_create(&scratch, posterior, &work));
  if (tilted) flow_to_stage(&work, config_real(options, "margin"));
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    take_steps(&work, &chunk, accept, (int)config_int(options, "steps"), config_real(options, "step_size"));
    diagonal_reverse(&work, &chunk, fallbacks);
    chunk_store(&chunk, work.chain->d, work.s, x);
  }
  return STATUS_OK;
}

const DiagonalOps diagonal_exact = {.draw = draw_exact};
const DiagonalOps diagonal_mala = {.draw = draw_by_steps};
const DiagonalOps diagonal_tilted = {.check = check_tilted, .draw = draw_by_steps};

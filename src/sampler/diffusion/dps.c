/* DPS of Chung et al. (2023) as the DiffTS paper runs it: Algorithm 4 and Appendix D, with the misprints of
 * lines 4, 5 and 7 corrected (the score is minus eps / sqrt(1 - alpha_bar_t); sqrt(alpha_t) in the posterior
 * mean).
 *
 * The step zeta_t = step_size / sqrt(sum of squared residuals) does not shrink with the precision of the
 * evidence, so the chain diverges once there are many observations. So states are guarded, and every use of
 * the guard is counted. With a likelihood that is not conjugate the deviance (likelihood.h) takes the place
 * of the sum of squared residuals, in the gradient and in zeta_t = step_size / sqrt(deviance); for Gaussian
 * rewards of variance 1 the two are the same. The published code takes the score of the likelihood at
 * S_0_hat, without the network's Jacobian and the factor 2, divided by sigma^2, and with the same zeta_t.
 * There is no noise in the last stage, where beta_tilde_1 = 0. A draw uses d normals of its stream for s_T,
 * then d per stage. */
#include "sampler/diffusion/dps.h"

#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/special.h"
#include "io/config/config_rows.h"
#include "model/history/history_passes.h"
#include "sampler/sampler.h"

#include <float.h>

/* n <= lanes lanes, lane last. */
typedef struct {
  int lanes; /* most of a chunk */
  bool in_run; /* chunks are of one history each */
  DpsGradient gradient_kind;
  double step_size;
  DpsEvidence evidence;
  DpsPoint point;
  double *s, *z; /* [d, n] */
  double *zeta; /* [n] */
} Dps;

/* Computes residual = |y - A s_0|^2 + what no s_0 explains, and g = A' (A s_0 - y). */
static void dps_gradient_of_one(const OneHistory *one, int d, int lanes, const double *denoised,
                                double *residual, double *gradient) {
  const Subspace *seen = &one->seen;
  history_subspace_project(seen, lanes, denoised, one->along);
  memset(gradient, 0, (size_t)d * (size_t)lanes * sizeof *gradient);
  for (int n = 0; n < lanes; n++) residual[n] = seen->residual;
  for (int k = 0; k < seen->rank; k++)
    for (int n = k * lanes, m = 0; m < lanes; n++, m++) {
      const double off = seen->value[k] * one->along[n] - seen->reward[k];
      residual[m] += off * off;
      one->along[n] = seen->value[k] * off;
    }
  history_subspace_add(seen, lanes, one->along, gradient);
}

/* Computes first g, half the gradient of the residual over sigma^2. For the quadratic g = Lambda s_0 - b, and
 * residual = sigma^2 (constant - 2 s_0' b + s_0' Lambda s_0). */
void dps_gradient(const Chain *chain, int t, const DpsEvidence *evidence, DpsGradient kind, const double *s,
                  const DpsPoint *out) {
  const int lanes = evidence->lanes, n = evidence->d * lanes;
  const double alpha_bar = chain->schedule.alpha_bar[t], factor = evidence->rows ? -2 : evidence->variance;
  double *denoised = out->denoised, *residual = out->residual, *gradient = out->gradient,
         *pulled = out->scratch;
  chain->noise(chain, t, lanes, s, denoised);
  denoiser_chain_denoise_mean(chain, t, lanes, s, denoised); /* line 5 */
  if (evidence->rows) {
    history_log_likelihood(evidence->rows, denoised, residual, gradient);
    for (int i = 0; i < n; i++) gradient[i] = -gradient[i];
  } else if (evidence->one) {
    dps_gradient_of_one(evidence->one, evidence->d, lanes, denoised, residual, gradient);
  } else {
    memcpy(residual, evidence->constant, (size_t)lanes * sizeof *residual);
    linalg_lanes_add_quadratic(evidence->d, lanes, -2,
                               (LanesQuadratic){.matrix = evidence->precision, .vector = evidence->vector},
                               denoised, gradient, residual);
    lanes_add((size_t)n, -1, evidence->vector, gradient);
  }
  for (int i = 0; i < lanes; i++) residual[i] *= factor;
  if (kind == DPS_AT_ESTIMATE) return;
  chain->noise_vjp(chain, t, lanes, s, gradient, pulled);
  for (int i = 0; i < n; i++)
    gradient[i] = 2 * evidence->variance * (gradient[i] - sqrt(1 - alpha_bar) * pulled[i]) / sqrt(alpha_bar);
}

/* Runs lines 4 to 7. The step of Appendix D is zeta_t = step_size / sqrt(residual); 0 where the residual
 * vanishes, as it does without observations. The residual of the quadratic is a difference of large numbers
 * and is kept above their rounding error. */
static void dps_stage(Dps *self, const Chain *chain, int t, Chunk *chunk) {
  const Schedule *schedule = &chain->schedule;
  const DpsEvidence *evidence = &self->evidence;
  const double sigma_tilde = sqrt(schedule->beta_tilde[t]);
  double of_denoised, of_state;
  schedule_bridge_factors(schedule, t, &of_denoised, &of_state);
  dps_gradient(chain, t, evidence, self->gradient_kind, self->s, &self->point);
  for (int n = 0; n < chunk->lanes; n++) {
    const double residual = self->point.residual[n],
                 floor = evidence->rows ? DBL_MIN : DBL_EPSILON * evidence->variance * evidence->constant[n];
    self->zeta[n] = residual > 0 ? self->step_size / sqrt(fmax(residual, floor)) : 0;
  }
  rng_lanes_normal(&chunk->rng, chain->d, self->z);
  for (int i = 0; i < chain->d; i++)
    for (int n = i * chunk->lanes, m = 0; m < chunk->lanes; n++, m++)
      self->s[n] = special_two_products(of_denoised, self->point.denoised[n], of_state, self->s[n]) +
                   sigma_tilde * self->z[n] - self->zeta[m] * self->point.gradient[n];
}

/* Finds what guides the lanes of a view. Errors: STATUS_INTERNAL. */
static Status dps_find_evidence(Arena *memory, Dps *self, const HistoryView *view, OneHistory *one) {
  DpsEvidence *evidence = &self->evidence;
  evidence->lanes = view->lanes;
  evidence->rows = NULL;
  evidence->one = self->in_run ? one : NULL;
  history_residual(view, evidence->constant); /* the sum of squares at theta = shift */
  if (self->in_run) return one_history_find(memory, view, one);
  if (!history_evidence(view, evidence->precision, evidence->vector)) evidence->rows = view;
  return STATUS_OK;
}

/* Runs Algorithm 4 for the lanes of a chunk, in the coordinates of the chain. Errors: STATUS_INTERNAL. */
static Status dps_sample_chunk(Dps *self, const Chain *chain, const HistoryView *view, Chunk *chunk,
                               int64_t *fallbacks) {
  SCRATCH_ARENA(memory);
  OneHistory one;
  TRY(dps_find_evidence(&memory, self, view, &one));
  rng_lanes_normal(&chunk->rng, chain->d, self->s);
  for (int t = chain->schedule.stages; t >= 1; t--) {
    dps_stage(self, chain, t, chunk);
    denoiser_chain_guard(chunk, chain->d, self->s, fallbacks);
  }
  return STATUS_OK;
}

/* Makes the draws; those for which there was no memory are NAN. */
static void dps_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                       int64_t *fallbacks) {
  Dps *self = sampler->state;
  const Chain *chain = sampler->setup.prior->chain;
  for (Chunk chunk = chunk_begin_wide(rng, self->lanes, self->in_run); chunk.lanes > 0;
       chunk_next(&chunk, rng)) {
    const HistoryView in_theta = history_view(history, draws, chunk.first, chunk.lanes),
                      view = history_view_in(in_theta, chain->shift, chain->scale);
    if (dps_sample_chunk(self, chain, &view, &chunk, fallbacks) != STATUS_OK) {
      chunk_miss(&chunk, theta);
      continue;
    }
    denoiser_chain_to_theta(chain, chunk.lanes, self->s);
    chunk_store(&chunk, chain->d, self->s, theta);
  }
}

static Status dps_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d;
  const double noise = likelihood_noise(setup->likelihood);
  Dps *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->in_run = one_history_fits(setup);
  self->lanes =
      denoiser_chain_lanes(setup->prior->chain, (self->in_run ? 0 : d * d) + 6 * d, one_history_lanes(setup));
  const size_t vector = d * (size_t)self->lanes;
  self->gradient_kind =
      config_is(setup->options, "gradient", "at_estimate") ? DPS_AT_ESTIMATE : DPS_THROUGH_NETWORK;
  self->step_size = config_real(setup->options, "step_size");
  self->evidence.d = sampler->d;
  self->evidence.variance = noise * noise;
  if (!self->in_run) ALLOCATE(memory, self->evidence.precision, d * vector);
  ALLOCATE_ARRAYS(memory, vector, &self->evidence.vector, &self->s, &self->point.denoised,
                  &self->point.gradient, &self->z, &self->point.scratch);
  ALLOCATE_ARRAYS(memory, self->lanes, &self->evidence.constant, &self->point.residual, &self->zeta);
  return STATUS_OK;
}

static const ConfigKey KEYS[] = {{WORD("gradient", "through_network",
                                       "through_network: with respect to S_t (Algorithm 4); at_estimate: "
                                       "score of the likelihood at S_0_hat (published code)"),
                                  .words = "through_network at_estimate"},
                                 {REAL("step_size", 0, 1000, "1", "multiplies zeta_t of Appendix D")},
                                 {.name = NULL}};

const SamplerOps sampler_dps = {
    .name = "dps",
    .summary = "Diffusion posterior sampling: reverse stages pushed along the gradient of the likelihood",
    .reference = "Chung et al. (2023); DiffTS paper, Algorithm 4 and Appendix D",
    .default_prior = "diffusion",
    .needs = NEEDS_CHAIN,
    .functions = FUNCTIONS_DEVIANCE,
    .keys = KEYS,
    .create = dps_create,
    .sample = dps_sample,
};

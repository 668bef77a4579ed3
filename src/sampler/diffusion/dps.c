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

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  DpsGradient gradient_kind;
  double step_size;
  DpsEvidence evidence;
  DpsPoint point;
  double *s, *z; /* [d, n] */
  double *zeta; /* [n] */
} Dps;

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

/* Runs Algorithm 4 for every chunk of lanes. */
static void dps_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                       int64_t *fallbacks) {
  Dps *self = sampler->state;
  const Chain *chain = sampler->setup.prior->chain;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView in_theta = history_view(history, draws, chunk.first, chunk.lanes),
                      view = history_view_in(in_theta, chain->shift, chain->scale);
    const bool whole = history_evidence(&view, self->evidence.precision, self->evidence.vector);
    history_residual(&view, self->evidence.constant); /* the sum of squares at theta = shift */
    self->evidence.lanes = chunk.lanes;
    self->evidence.rows = whole ? NULL : &view;
    rng_lanes_normal(&chunk.rng, chain->d, self->s);
    for (int t = chain->schedule.stages; t >= 1; t--) {
      dps_stage(self, chain, t, &chunk);
      denoiser_chain_guard(&chunk, chain->d, self->s, fallbacks);
    }
    denoiser_chain_to_theta(chain, chunk.lanes, self->s);
    chunk_store(&chunk, chain->d, self->s, theta);
  }
}

static Status dps_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d, vector = d * CHUNK_LANES;
  const double noise = likelihood_noise(setup->likelihood);
  Dps *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->gradient_kind =
      config_is(setup->options, "gradient", "at_estimate") ? DPS_AT_ESTIMATE : DPS_THROUGH_NETWORK;
  self->step_size = config_real(setup->options, "step_size");
  self->evidence.d = sampler->d;
  self->evidence.variance = noise * noise;
  ALLOCATE(memory, self->evidence.precision, d * vector);
  ALLOCATE_ARRAYS(memory, vector, &self->evidence.vector, &self->s, &self->point.denoised,
                  &self->point.gradient, &self->z, &self->point.scratch);
  ALLOCATE_ARRAYS(memory, CHUNK_LANES, &self->evidence.constant, &self->point.residual, &self->zeta);
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

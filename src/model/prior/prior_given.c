/* Priors whose model is a function of the caller's. Nothing is fitted or stored, and theta is used as it is,
 * so it should be on the scale of 1. */
#include "core/linalg/linalg.h"
#include "model/denoiser/denoiser_localisation.h"
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

/* ---- a denoiser: the function gives the mean and covariance of theta for any observation of it (Eldan 2013;
 * denoiser_localisation.h). Samples are draws without evidence. */

typedef struct {
  Denoiser denoiser;
  Unconditional samples;
  GivenDenoiser *function;
  void *context;
} Given;

/* What a call works in, in the caller's layout, lane first, but for `lane_precision`. */
typedef struct {
  double *lane_precision, *precision, *covariance; /* [d, d, n], [n, d, d], [n, d, d] */
  double *b, *mean; /* [n, d] */
} GivenScratch;

static Status prior_given_scratch(const Denoiser *denoiser, Arena *memory, void **out) {
  const size_t vector = (size_t)denoiser->d * DENOISER_LANES, matrix = (size_t)denoiser->d * vector;
  GivenScratch *at;
  ALLOCATE(memory, at, 1);
  ALLOCATE_ARRAYS(memory, matrix, &at->lane_precision, &at->precision, &at->covariance);
  ALLOCATE_ARRAYS(memory, vector, &at->b, &at->mean);
  *out = at;
  return STATUS_OK;
}

static void prior_given_moments(const Denoiser *denoiser, const LaneEvidence *evidence, double *mean,
                                double *covariance, int *lane_fallbacks, void *scratch) {
  const Given *self = denoiser->state;
  const GivenScratch *at = scratch;
  const int d = denoiser->d, n = evidence->lanes;
  linalg_factor_spectral(d, n, evidence->basis, evidence->eigenvalue, at->lane_precision);
  io_dataset_transpose(d * d, n, at->lane_precision, at->precision);
  io_dataset_transpose(d, n, evidence->vector, at->b);
  const bool done = self->function(self->context, n, d, at->b, at->precision, at->mean, at->covariance) == 0;
  for (int k = 0; k < n; k++) {
    double *m = at->mean + k * d, *c = at->covariance + k * d * d;
    bool finite = done;
    for (int i = 0; i < d; i++) finite = finite && isfinite(m[i]);
    for (int i = 0; i < d * d; i++) finite = finite && isfinite(c[i]);
    if (finite) continue;
    memset(m, 0, (size_t)d * sizeof *m);
    memset(c, 0, (size_t)(d * d) * sizeof *c);
    lane_fallbacks[k]++;
  }
  io_dataset_transpose(n, d, at->mean, mean);
  io_dataset_transpose(n, d * d, at->covariance, covariance);
}

static void prior_given_sample(const Prior *prior, RngLanes *rng, double *theta) {
  Given *self = prior->state;
  denoiser_localisation_sample(&self->samples, rng, theta);
}

static const PriorOps given_ops = {.name = "given", .sample = prior_given_sample};

Status prior_given(Arena *memory, int d, GivenDenoiser *function, void *context, Prior *out) {
  Given *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = &given_ops, .d = d, .state = self, .denoiser = &self->denoiser};
  self->function = function;
  self->context = context;
  TRY(denoiser_standard(memory, d, &self->denoiser));
  self->denoiser.state = self;
  self->denoiser.scratch = prior_given_scratch;
  self->denoiser.moments = prior_given_moments;
  return denoiser_localisation_sample_create(memory, &self->denoiser, &self->samples);
}

/* ---- a diffusion model: the function gives the mean of the clean sample given a noisy one. By Tweedie's
 * formula (Efron 2011) that gives the score: score(x_t) = (sqrt(alpha_bar_t) E[x_0 | x_t] - x_t) / (1 -
 * alpha_bar_t). */

enum {
  LANES = 64, /* lanes at a time; a product with the Jacobian needs two means per lane */
  QUESTIONS = 2 * LANES
};

typedef struct {
  Chain chain;
  GivenMean *function;
  void *context;
  double *asked, *answered; /* [QUESTIONS, d] */
  double *theta, *scratch; /* [d, LANES], [2, d, LANES] */
} Score;

/* Computes answered[n, d] = E[x_0 | x_t] of asked[n, d], NaN if the function fails, so that the draws that
 * need it are not finite and count as fallbacks. */
static void prior_score_ask_means(const Score *self, int t, size_t n) {
  const size_t values = n * (size_t)self->chain.d;
  if (self->function(self->context, (int)n, self->chain.d, self->asked, t, self->answered) == 0) return;
  for (size_t k = 0; k < values; k++) self->answered[k] = NAN;
}

/* Computes eps = (s - sqrt(alpha_bar) E[x_0 | s]) / sqrt(1 - alpha_bar). */
static void score_noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  const Score *self = chain->state;
  const size_t d = (size_t)chain->d, row = (size_t)lanes;
  const double signal = sqrt(chain->schedule.alpha_bar[t]), noise = sqrt(1 - chain->schedule.alpha_bar[t]);
  for (size_t first = 0; first < row; first += QUESTIONS) {
    const size_t n = row - first < QUESTIONS ? row - first : QUESTIONS;
    for (size_t k = 0; k < n; k++)
      for (size_t i = 0; i < d; i++) self->asked[k * d + i] = s[i * row + first + k];
    prior_score_ask_means(self, t, n);
    for (size_t k = 0; k < n; k++)
      for (size_t i = 0; i < d; i++)
        eps[i * row + first + k] = (s[i * row + first + k] - signal * self->answered[k * d + i]) / noise;
  }
}

/* Computes out = (v - sqrt(alpha_bar) J v) / sqrt(1 - alpha_bar), with J the Jacobian of the mean, which is a
 * covariance up to a factor and so its own transpose. J v is a central difference over SHARE of the noise:
 * its error is of the third derivative, and in single precision four digits are left. */
static void score_noise_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v,
                            double *out) {
  static const double SHARE = 0.003;
  const Score *self = chain->state;
  const size_t d = (size_t)chain->d, row = (size_t)lanes;
  const double signal = sqrt(chain->schedule.alpha_bar[t]), noise = sqrt(1 - chain->schedule.alpha_bar[t]);
  for (size_t first = 0; first < row; first += LANES) {
    const size_t n = row - first < LANES ? row - first : LANES;
    double width[LANES];
    for (size_t k = 0; k < n; k++) { /* asks at s + step v / |v| and at s - step v / |v| */
      double square = 0;
      for (size_t i = 0; i < d; i++) square += v[i * row + first + k] * v[i * row + first + k];
      const double scale = square > 0 ? SHARE * noise / sqrt(square) : 0;
      width[k] = 2 * scale;
      for (size_t i = 0; i < d; i++) {
        const size_t from = i * row + first + k;
        self->asked[k * d + i] = s[from] + scale * v[from];
        self->asked[(n + k) * d + i] = s[from] - scale * v[from];
      }
    }
    prior_score_ask_means(self, t, 2 * n);
    for (size_t k = 0; k < n; k++)
      for (size_t i = 0; i < d; i++) {
        const double change = self->answered[k * d + i] - self->answered[(n + k) * d + i];
        out[i * row + first + k] =
            width[k] > 0 ? (v[i * row + first + k] - signal * change / width[k]) / noise : 0;
      }
  }
}

static void prior_score_sample(const Prior *prior, RngLanes *rng, double *theta) {
  const Score *self = prior->state;
  denoiser_chain_sample_parts(&self->chain, LANES, rng, self->theta, self->scratch, theta);
}

static const PriorOps score_ops = {.name = "score_network", .sample = prior_score_sample};

Status prior_score(Arena *memory, int d, int stages, const double *alpha_bar, GivenMean *function,
                   void *context, Prior *out) {
  const ScheduleRule rule = {.stages = stages, .alpha = 0.5}; /* replaced below */
  const size_t size = (size_t)d;
  Score *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = &score_ops, .d = d, .state = self, .chain = &self->chain};
  TRY(denoiser_chain_create(memory, &self->chain, d, &rule, LAST_STAGE_REPAIRED));
  Schedule *schedule = &self->chain.schedule;
  for (int t = 1; t <= stages; t++) schedule->alpha[t] = alpha_bar[t - 1] / (t > 1 ? alpha_bar[t - 2] : 1);
  const Status status = schedule_derive(schedule);
  if (status != STATUS_OK) return status_prefix(status, "alpha_bar must fall from below 1 to above 0: ");
  ALLOCATE_ARRAYS(memory, QUESTIONS * size, &self->asked, &self->answered);
  ALLOCATE(memory, self->theta, LANES * size);
  ALLOCATE(memory, self->scratch, 2 * LANES * size);
  self->function = function;
  self->context = context;
  self->chain.state = self;
  self->chain.noise = score_noise;
  self->chain.noise_vjp = score_noise_vjp;
  return STATUS_OK;
}

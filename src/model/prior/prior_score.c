/* A prior whose diffusion model is the caller's: a function that gives the mean of the clean sample given a
 * noisy one. Nothing is fitted or stored, and theta is used as it is, so it should be on the scale of 1. By
 * Tweedie's formula (Efron 2011) the mean gives the score: score(x_t) = (sqrt(alpha_bar_t) E[x_0 | x_t] -
 * x_t) / (1 - alpha_bar_t). */
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

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

/* Computes asked[2 n, d] = s + step v / |v| and s - step v / |v|, and width[n] = 2 step / |v|, or 0 if v is
 * 0. */
static void prior_score_fill_both_sides(const Score *self, size_t row, size_t first, size_t n, double step,
                                        const double *s, const double *v, double *width) {
  const size_t d = (size_t)self->chain.d;
  for (size_t k = 0; k < n; k++) {
    double square = 0;
    for (size_t i = 0; i < d; i++) square += v[i * row + first + k] * v[i * row + first + k];
    const double scale = square > 0 ? step / sqrt(square) : 0;
    width[k] = 2 * scale;
    for (size_t i = 0; i < d; i++) {
      const size_t from = i * row + first + k;
      self->asked[k * d + i] = s[from] + scale * v[from];
      self->asked[(n + k) * d + i] = s[from] - scale * v[from];
    }
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
    prior_score_fill_both_sides(self, row, first, n, SHARE * noise, s, v, width);
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

/* Sets the schedule from alpha_bar[T]. */
static Status prior_score_set_schedule(Schedule *schedule, const double *alpha_bar) {
  double before = 1;
  for (int t = 1; t <= schedule->stages; before = alpha_bar[t - 1], t++)
    schedule->alpha[t] = alpha_bar[t - 1] / before;
  const Status status = schedule_derive(schedule);
  return status == STATUS_OK ? status
                             : status_prefix(status, "alpha_bar must fall from below 1 to above 0: ");
}

Status prior_score(Arena *memory, int d, int stages, const double *alpha_bar, GivenMean *function,
                   void *context, Prior *out) {
  const ScheduleRule rule = {.stages = stages, .alpha = 0.5}; /* replaced by prior_score_set_schedule */
  const size_t size = (size_t)d;
  Score *self;
  ALLOCATE(memory, self, 1);
  *out = (Prior){.memory = memory, .ops = &score_ops, .d = d, .state = self, .chain = &self->chain};
  TRY(denoiser_chain_create(memory, &self->chain, d, &rule, LAST_STAGE_REPAIRED));
  TRY(prior_score_set_schedule(&self->chain.schedule, alpha_bar));
  ALLOCATE_ARRAYS(memory, QUESTIONS * size, self->asked, self->answered);
  ALLOCATE(memory, self->theta, LANES * size);
  ALLOCATE(memory, self->scratch, 2 * LANES * size);
  self->function = function, self->context = context;
  self->chain.state = self;
  self->chain.noise = score_noise;
  self->chain.noise_vjp = score_noise_vjp;
  return STATUS_OK;
}

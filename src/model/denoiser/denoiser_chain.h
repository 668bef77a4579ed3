/* The reverse chain of a prior: what a diffusion model offers to samplers, whether its noise predictor was
 * learned or is exact.
 *
 * A chain lives in standardised coordinates z = (theta - shift) / scale. N lanes, lane last: s[d, N]. */
#pragma once

#include "core/arena.h"
#include "core/chunk.h"

#include <stdbool.h>
#include <stdio.h>

/* ---- the noise schedule (DiffTS paper, Section 3 and equation 14, with a misprint corrected: sqrt(alpha_t))
 */

/* The last stage's covariance Sigma_1. As beta_tilde_1 = 0, the last stage as printed ignores the
 * evidence. */
typedef enum {
  LAST_STAGE_REPAIRED, /* Sigma_1 = beta_tilde_2 (beta_1 when T = 1) */
  LAST_STAGE_LITERAL /* Sigma_1 = beta_tilde_1 = 0, the papers' */
} LastStage;

/* How the stages of a schedule follow from a few numbers: a constant alpha, or stages that are evenly spaced
 * in the logarithm of the signal-to-noise ratio (of powers) r_t = alpha_bar_t / (1 - alpha_bar_t), from r_1
 * to r_T. */
typedef struct {
  int stages; /* T */
  bool log_snr;
  /* Constant alpha. With keep_signal alpha is replaced by alpha^(100/T), so that alpha_bar_T stays alpha^100
   * (T ablation). */
  double alpha;
  bool keep_signal;
  double first_snr, last_snr; /* log_snr: r_1 > r_T; a single stage uses last_snr */
} ScheduleRule;

/* All arrays have T + 1 entries and are indexed by stage t = 1 .. T; entry 0 is "no noise" (alpha_bar[0] =
 * 1). */
typedef struct {
  int stages; /* T */
  double *alpha; /* alpha_t */
  double *alpha_bar; /* product of alpha_1 .. alpha_t */
  double *beta; /* 1 - alpha_t */
  double *beta_tilde; /* variance of s_{t-1} given s_t and s_0; [1] is 0 */
} Schedule;

/* Returns STATUS_INPUT, with a message, if the rule gives no schedule. */
Status schedule_check(const ScheduleRule *rule);
/* Checks the rule and creates its schedule. */
Status schedule_create(Arena *memory, const ScheduleRule *rule, Schedule *out);
/* Prints everything that the schedule depends on: rules that print the same give the same schedule. */
void schedule_describe(const ScheduleRule *rule, FILE *out);
/* Fills alpha_bar, beta and beta_tilde from alpha[1 .. T]. Returns STATUS_INPUT if an alpha_t is not between
 * 0 and 1. */
Status schedule_derive(Schedule *schedule);

/* Returns Sigma_t, the reverse variance of stage t. */
double schedule_variance(const Schedule *schedule, int t, LastStage last_stage);
/* Computes the two factors of mu_t(s_t) = (s_t - beta_t / sqrt(1 - alpha_bar_t) eps) / sqrt(alpha_t),
 * those of s_t and of eps. */
void schedule_mean_factors(const Schedule *schedule, int t, double *of_state, double *of_noise);
/* Computes the two factors of the estimate of s_0, (s_t - sqrt(1 - alpha_bar_t) eps) / sqrt(alpha_bar_t). */
void schedule_denoise_factors(const Schedule *schedule, int t, double *of_state, double *of_noise);
/* Computes the factors of s_0 and of s_t in the mean of s_{t-1} given both. Its variance is beta_tilde_t. */
void schedule_bridge_factors(const Schedule *schedule, int t, double *of_denoised, double *of_state);
LastStage schedule_last_stage(const char *word); /* "repaired" | "literal" */

/* ---- the chain */

typedef struct Chain Chain;
struct Chain {
  int d;
  Schedule schedule;
  double *shift, *scale; /* [d] */
  LastStage last_stage; /* what unconditional sampling uses */
  /* [T + 1], by stage: mean squared error of the noise for each coordinate on held-out samples; NULL for
   * exact chains. */
  const double *loss;
  const void *state; /* of the prior that owns the chain */
  /* eps[d, N] = E[noise | s_t], the noise that was mixed into s_t. */
  void (*noise)(const Chain *chain, int t, int lanes, const double *s, double *eps);
  /* out[d, N] = (d eps / d s)' v. */
  void (*noise_vjp)(const Chain *chain, int t, int lanes, const double *s, const double *v, double *out);
  /* OPTIONAL. eps[d, N] and jacobian[d, d, N] = d eps / d s, row by row, at a lower cost than d + 1 calls of
   * the two above. */
  void (*noise_jacobian)(const Chain *chain, int t, int lanes, const double *s, double *eps,
                         double *jacobian);
  /* OPTIONAL. log_density[N] of the law of s_t, up to a constant per stage, and its gradient score[d, N], at
   * stages t = density_from .. T. */
  void (*density)(const Chain *chain, int t, int lanes, const double *s, double *log_density, double *score);
  int density_from; /* 0: the clean sample has a density too; 1: it has none */
  /* OPTIONAL. An exact draw of the clean sample given s_t, from uniform[d, N]: out[d, N]. */
  void (*denoise)(const Chain *chain, int t, int lanes, const double *s, const double *uniform, double *out);
};

/* Every state a sampler hands to a chain is kept within |s| <= CHAIN_GUARD, so that a stage far from its
 * training data cannot run away. */
#define CHAIN_GUARD 100.0
/* Brings the chain state s[d, lanes] back to |s| <= CHAIN_GUARD: a larger number becomes the limit with
 * its sign, NaN becomes 0 (the prior's mean). Each coordinate that was changed adds one to fallbacks[run]. */
void denoiser_chain_guard(const Chunk *chunk, int d, double *s, int64_t *fallbacks);

/* Creates everything but noise, noise_vjp, noise_jacobian, loss and state, with shift 0 and scale 1; the
 * owner sets the rest. */
Status denoiser_chain_create(Arena *memory, Chain *chain, int d, const ScheduleRule *rule,
                             LastStage last_stage);

/* Computes eps[d, N] and jacobian[d, d, N] = d eps / d s, row by row, of any chain. scratch[d, N]. */
void denoiser_chain_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                   double *jacobian, double *scratch);
/* Computes mu[d, N] = mu_t(s): the mean of s_{t-1} given s_t under the chain. mu may not overlap s. */
void denoiser_chain_mean(const Chain *chain, int t, int lanes, const double *s, double *mu);
/* Replaces eps[d, N], the noise predicted at s, by the mean of the clean sample given s. */
void denoiser_chain_denoise_mean(const Chain *chain, int t, int lanes, const double *s, double *eps);
/* Computes theta = shift + scale z, in place on [d, N]. */
void denoiser_chain_to_theta(const Chain *chain, int lanes, double *z);
/* Draws an unconditional sample for every lane, theta[d, N] (Algorithm 2 without history). scratch[2, d, N].
 * Each stream gives d normals for s_T, then d for each stage t = T .. 1 (also when Sigma_1 = 0), by T + 1
 * calls of rng_lanes_normal with n = d: two normals share a counter value, so for odd d the number of calls
 * matters. s_{t-1} = mu_t(s_t) + sqrt(Sigma_t) z, guarded. A sampler without history gives the same bits. */
void denoiser_chain_sample(const Chain *chain, RngLanes *rng, double *theta, double *scratch);
/* Draws the same theta[d, N] in parts of at most `width` lanes, for chains whose scratch has no room for
 * more. part_theta[d, width], scratch[2, d, width]. */
void denoiser_chain_sample_parts(const Chain *chain, int width, RngLanes *rng, double *part_theta,
                                 double *scratch, double *theta);

/* Noise schedules of diffusion models (DiffTS paper, Section 3 and equation 14, with a misprint corrected:
 * sqrt(alpha_t)). */
#pragma once

#include "core/arena.h"

#include <stdbool.h>
#include <stdio.h>

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

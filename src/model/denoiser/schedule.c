#include "model/denoiser/schedule.h"

#include <math.h>
#include <string.h>

Status schedule_check(const ScheduleRule *rule) {
  if (rule->stages < 1)
    return status_set(STATUS_INPUT, "a diffusion model needs at least 1 stage, not %d", rule->stages);
  if (!rule->log_snr) return STATUS_OK;
  if (rule->keep_signal)
    return status_set(STATUS_INPUT,
                      "keep_signal needs a constant alpha, which schedule: log_snr does not have");
  if (!(rule->last_snr > 0 && rule->first_snr > rule->last_snr))
    return status_set(STATUS_INPUT,
                      "schedule: log_snr needs first_snr %g above last_snr %g, and both above 0",
                      rule->first_snr, rule->last_snr);
  return STATUS_OK;
}

void schedule_describe(const ScheduleRule *rule, FILE *out) {
  if (rule->log_snr)
    fprintf(out, "stages %d snr %a %a", rule->stages, rule->first_snr, rule->last_snr);
  else
    fprintf(out, "stages %d alpha %a keep %d", rule->stages, rule->alpha, rule->keep_signal);
}

/* Returns alpha_bar_t of the schedule in which the logarithm of r_t = alpha_bar_t / (1 - alpha_bar_t) is
 * linear in t. */
static double schedule_even_alpha_bar(const ScheduleRule *rule, int t) {
  if (t == 0) return 1;
  const double share = rule->stages > 1 ? (t - 1.0) / (rule->stages - 1) : 1,
               snr = rule->first_snr * pow(rule->last_snr / rule->first_snr, share);
  return snr / (1 + snr);
}

Status schedule_create(Arena *memory, const ScheduleRule *rule, Schedule *out) {
  *out = (Schedule){0};
  TRY(schedule_check(rule));
  const int stages = out->stages = rule->stages;
  ALLOCATE_ARRAYS(memory, stages + 1, &out->alpha, &out->alpha_bar, &out->beta, &out->beta_tilde);
  out->alpha[0] = 1;
  const double alpha = rule->keep_signal ? pow(rule->alpha, 100.0 / stages) : rule->alpha;
  for (int t = 1; t <= stages; t++)
    out->alpha[t] =
        rule->log_snr ? schedule_even_alpha_bar(rule, t) / schedule_even_alpha_bar(rule, t - 1) : alpha;
  return schedule_derive(out);
}

Status schedule_derive(Schedule *schedule) {
  double *bar = schedule->alpha_bar;
  bar[0] = 1;
  for (int t = 1; t <= schedule->stages; t++) {
    double alpha = schedule->alpha[t];
    if (!(alpha > 0 && alpha < 1))
      return status_set(STATUS_INPUT, "alpha of diffusion stage %d is %g; it must be between 0 and 1", t,
                        alpha);
    schedule->beta[t] = 1 - alpha;
    bar[t] = bar[t - 1] * alpha;
    schedule->beta_tilde[t] = schedule->beta[t] * (1 - bar[t - 1]) / (1 - bar[t]);
  }
  return STATUS_OK;
}

double schedule_variance(const Schedule *schedule, int t, LastStage last_stage) {
  ASSERT(t >= 1 && t <= schedule->stages);
  if (t > 1 || last_stage == LAST_STAGE_LITERAL) return schedule->beta_tilde[t];
  return schedule->stages > 1 ? schedule->beta_tilde[2] : schedule->beta[1];
}

void schedule_mean_factors(const Schedule *schedule, int t, double *of_state, double *of_noise) {
  ASSERT(t >= 1 && t <= schedule->stages);
  *of_state = 1 / sqrt(schedule->alpha[t]);
  *of_noise = -schedule->beta[t] / sqrt(1 - schedule->alpha_bar[t]) * *of_state;
}

void schedule_denoise_factors(const Schedule *schedule, int t, double *of_state, double *of_noise) {
  const double alpha_bar = schedule->alpha_bar[t];
  *of_state = 1 / sqrt(alpha_bar);
  *of_noise = -sqrt((1 - alpha_bar) / alpha_bar);
}

void schedule_bridge_factors(const Schedule *schedule, int t, double *of_denoised, double *of_state) {
  const double *alpha_bar = schedule->alpha_bar;
  *of_denoised = sqrt(alpha_bar[t - 1]) * schedule->beta[t] / (1 - alpha_bar[t]);
  *of_state = sqrt(schedule->alpha[t]) * (1 - alpha_bar[t - 1]) / (1 - alpha_bar[t]);
}

LastStage schedule_last_stage(const char *word) {
  if (!strcmp(word, "literal")) return LAST_STAGE_LITERAL;
  ASSERT(!strcmp(word, "repaired"));
  return LAST_STAGE_REPAIRED;
}

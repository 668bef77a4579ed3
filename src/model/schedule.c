#include "model/schedule.h"

#include "core/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Status schedule_create(Arena *memory, int stages, double alpha, bool keep_signal, Schedule *out) {
  *out = (Schedule){0};
  if (stages < 1) return status_set(STATUS_INPUT, "a diffusion model needs at least 1 stage, not %d", stages);
  out->stages = stages;
  size_t entries = (size_t)stages + 1;
  ALLOCATE(memory, out->alpha, 4 * entries);
  out->alpha_bar = out->alpha + entries;
  out->beta = out->alpha_bar + entries;
  out->beta_tilde = out->beta + entries;
  out->alpha[0] = 1;
  for (int t = 1; t <= stages; t++) out->alpha[t] = keep_signal ? pow(alpha, 100.0 / stages) : alpha;
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

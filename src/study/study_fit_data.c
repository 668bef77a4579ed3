#include "study/study_fit_data.h"

#include "model/prior/logs_fit.h"
#include "model/prior/training_samples.h"
#include "problem/problem_past.h"

static Status belief_play_past_tasks(const Belief *belief, const Problem *problem, Arena *memory, Logs *out) {
  TRY(logs_create(memory, problem->d, &belief->likelihood, out));
  return problem_past_logs(problem, belief->fit.replicate, 0, belief->past_tasks, belief->past_observations,
                           out);
}

/* Guesses the theta of each task, to be treated as known: its posterior mean under N(0, I), or under the
 * base. */
static Status belief_guess_task_theta(Arena *memory, const Belief *belief, const Logs *logs,
                                      const Prior *base, Samples *out) {
  SCRATCH_ARENA(scratch);
  Prior standard;
  if (belief->learned_from == LEARNED_FROM_ESTIMATES) {
    TRY(prior_standard(&scratch, logs->d, &belief->fit, &standard));
    base = &standard;
  }
  return logs_means(memory, logs, base->mixture, belief->likelihood.noise, out);
}

static Status belief_create_fit_data(const Belief *belief, const Problem *problem, const Prior *base,
                                     FitData *out) {
  SCRATCH_ARENA(scratch);
  Logs logs;
  *out = (FitData){0};
  if (belief->learned_from == LEARNED_FROM_THETA)
    return problem_training_samples(&out->memory, problem, belief->fit.replicate, belief->train_samples,
                                    &out->samples);
  if (belief->learned_from == LEARNED_FROM_LOGS && belief_takes_logs(belief))
    return belief_play_past_tasks(belief, problem, &out->memory, &out->logs);
  TRY(belief_play_past_tasks(belief, problem, &scratch, &logs));
  if (belief->learned_from != LEARNED_FROM_LOGS)
    return belief_guess_task_theta(&out->memory, belief, &logs, base, &out->samples);
  return logs_draws(&out->memory, &logs, &belief->fit, base->mixture, belief->likelihood.noise,
                    &out->samples);
}

Status study_fit_data_create(const Belief *belief, const Problem *problem, const Prior *base, FitData *out) {
  TRY(belief_create_fit_data(belief, problem, base, out));
  return contaminate(&belief->fit, &out->samples);
}

Status study_fit_data_create_alone(const Config *setting, const Belief *belief, const Problem *problem,
                                   FitData *out) {
  SCRATCH_ARENA(scratch);
  SCOPED(FitData, logs, study_fit_data_free);
  Belief first;
  Prior base;
  bool has;
  *out = (FitData){0};
  TRY(belief_prerequisite(setting, problem, belief, &has, &first));
  if (!has) return study_fit_data_create(belief, problem, NULL, out);
  TRY(study_fit_data_create(&first, problem, NULL, &logs));
  TRY(prior_fit_logs(&scratch, first.family, &first.fit, &logs.logs, &base));
  return study_fit_data_create(belief, problem, &base, out);
}

FitSource study_fit_data_source(const FitData *data) {
  return data->logs.tasks > 0 ? (FitSource){.logs = &data->logs} : (FitSource){.samples = &data->samples};
}

void study_fit_data_free(FitData *data) {
  arena_free(&data->memory);
  *data = (FitData){0};
}

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

Status study_fit_data_create(Arena *memory, const Belief *belief, const Problem *problem, const Prior *base,
                             FitSource *out) {
  SCRATCH_ARENA(scratch);
  const bool takes_logs = belief->learned_from == LEARNED_FROM_LOGS && study_belief_takes_logs(belief);
  Arena *of_logs = takes_logs ? memory : &scratch;
  Samples *samples;
  Logs *logs = NULL;
  if (belief->learned_from != LEARNED_FROM_THETA) {
    ALLOCATE(of_logs, logs, 1);
    TRY(belief_play_past_tasks(belief, problem, of_logs, logs));
  }
  if (takes_logs) {
    *out = (FitSource){.logs = logs};
    return STATUS_OK;
  }
  ALLOCATE(memory, samples, 1);
  if (!logs)
    TRY(problem_training_samples(memory, problem, belief->fit.replicate, belief->train_samples, samples));
  else if (belief->learned_from == LEARNED_FROM_LOGS)
    TRY(logs_draws(memory, logs, &belief->fit, base->mixture, belief->likelihood.noise, samples));
  else
    TRY(belief_guess_task_theta(memory, belief, logs, base, samples));
  *out = (FitSource){.samples = samples};
  return training_samples_contaminate(&belief->fit, samples);
}

Status study_fit_data_create_alone(Arena *memory, const Config *setting, const Belief *belief,
                                   const Problem *problem, FitSource *out) {
  SCRATCH_ARENA(scratch);
  FitSource logs;
  Belief first;
  Prior base;
  TRY(study_belief_prerequisite(setting, problem, belief, &first));
  if (first.kind == BELIEF_NONE) return study_fit_data_create(memory, belief, problem, NULL, out);
  TRY(study_fit_data_create(&scratch, &first, problem, NULL, &logs));
  TRY(fit_source_whole(&scratch, &logs, first.family, &first.fit, &base));
  return study_fit_data_create(memory, belief, problem, &base, out);
}

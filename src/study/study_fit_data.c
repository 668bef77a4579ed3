#include "study/study_fit_data.h"

#include "model/prior/logs_fit.h"
#include "model/prior/training_samples.h"
#include "problem/problem_past.h"

Status study_fit_data_create(Arena *memory, const Belief *belief, const Problem *problem, const Prior *base,
                             FitSource *out) {
  SCRATCH_ARENA(scratch);
  const bool takes_logs = belief->learned_from == LEARNED_FROM_LOGS && study_belief_takes_logs(belief);
  const double noise = belief->likelihood.noise;
  Arena *of_logs = takes_logs ? memory : &scratch;
  Samples *samples;
  Logs *logs = NULL;
  Prior standard;
  if (belief->learned_from != LEARNED_FROM_THETA) {
    ALLOCATE(of_logs, logs, 1);
    TRY(logs_create(of_logs, problem->d, &belief->likelihood, logs));
    TRY(problem_past_logs(problem, belief->fit.replicate, 0, belief->past_tasks, belief->past_observations,
                          logs));
  }
  if (takes_logs) {
    *out = (FitSource){.logs = logs};
    return STATUS_OK;
  }
  ALLOCATE(memory, samples, 1);
  switch (belief->learned_from) {
  case LEARNED_FROM_THETA:
    TRY(problem_training_samples(memory, problem, belief->fit.replicate, belief->train_samples, samples));
    break;
  case LEARNED_FROM_LOGS: TRY(logs_draws(memory, logs, &belief->fit, base->mixture, noise, samples)); break;
  case LEARNED_FROM_ESTIMATES: /* the theta of a task is treated as known: its posterior mean under N(0, I) */
    TRY(prior_standard(&scratch, logs->d, &belief->fit, &standard));
    TRY(logs_means(memory, logs, standard.mixture, noise, samples));
    break;
  case LEARNED_FROM_MEANS: /* the same under the base */
    TRY(logs_means(memory, logs, base->mixture, noise, samples));
    break;
  }
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

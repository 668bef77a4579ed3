/* How surprising the history is under the policy's prior (sampler/check/alarm.h). */
#include "sampler/check/alarm.h"
#include "study/probes.h"

static Status probe_p_value_create(Arena *memory, const Simulation *simulation, void **state) {
  const TaskRun *run = simulation->run;
  const Likelihood *likelihood = &run->belief.likelihood;
  const int rounds = run->problem->rounds, draws = (int)config_int(run->setting, "draws");
  Alarm *alarm;
  if (simulation->discount < 1 || !probe_best_arm_is_known(simulation) ||
      !alarm_shares_precision(likelihood) || !alarm_fits(run->prior, likelihood, rounds))
    return STATUS_OK;
  TRY(alarm_create(memory, run->prior, likelihood, rounds, draws, run->study->seed, &alarm));
  *state = alarm;
  return STATUS_OK;
}

static Status probe_p_value_measure(const Probe *probe, int k) {
  const World *world = &probe->simulation->world;
  (void)k;
  for (int b = 0; b < world->runs; b++)
    probe->value[b] =
        alarm_p_value(probe->state, &probe->simulation->history, b, world->first_run + (uint32_t)b);
  return STATUS_OK;
}

const ProbeOps probe_prior_p_value = {
    .create = probe_p_value_create, .measure = {[AFTER_ROUND] = probe_p_value_measure}, .sparse = true};

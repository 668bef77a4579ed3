/* What an event log keeps of a round, apart from what follows from the world (reduce_events.c). */
#include "study/probes.h"

static Status probe_event_arm_keep(const Probe *probe, int k) {
  const Simulation *simulation = probe->simulation;
  (void)k;
  for (int b = 0; b < simulation->world.runs; b++) probe->value[b] = simulation->arm[b];
  return STATUS_OK;
}

static Status probe_event_reward_keep(const Probe *probe, int k) {
  const Simulation *simulation = probe->simulation;
  (void)k;
  for (int b = 0; b < simulation->world.runs; b++) probe->value[b] = simulation->reward[b];
  return STATUS_OK;
}

static Status probe_event_propensity_keep(const Probe *probe, int k) {
  const Simulation *simulation = probe->simulation;
  (void)k;
  const int arms = simulation->world.problem->arms;
  for (int b = 0; b < simulation->world.runs; b++)
    probe->value[b] = simulation->probability[b * arms + simulation->arm[b]];
  return STATUS_OK;
}

/* Returns STATUS_INPUT if a policy of the study cannot tell the probabilities of its arms. */
static Status probe_event_propensity_check(const Study *study, const Config *setting,
                                           const Problem *problem) {
  (void)setting;
  (void)problem;
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    const PolicyMethod method = policy_named(policy->name);
    TRY(policy_check_weigh(&method, policy->options));
  }
  return STATUS_OK;
}

const ProbeOps probe_event_arm = {.measure = {[AFTER_CHOICE] = probe_event_arm_keep}, .quick = true};
const ProbeOps probe_event_reward = {.measure = {[AFTER_CHOICE] = probe_event_reward_keep}, .quick = true};
const ProbeOps probe_event_propensity = {.measure = {[AFTER_CHOICE] = probe_event_propensity_keep},
                                         .check = probe_event_propensity_check,
                                         .quick = true,
                                         .weighs = true};

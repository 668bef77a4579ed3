/* Cumulative expected regret: what the best arm of every round would have given on average, less what the
 * policy's arms give. */
#include "study/probes.h"

static Status probe_regret_measure(const Probe *probe, int k) {
  (void)k;
  probe_accumulate(probe, probe->simulation->regret);
  return STATUS_OK;
}

const ProbeOps probe_regret = {.measure = {[AFTER_CHOICE] = probe_regret_measure}, .quick = true};

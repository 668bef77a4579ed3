/* How often a policy changes its mind: the number of rounds so far in which it took another arm than in the
 * round before. */
#include "study/probes.h"

typedef struct {
  int *last; /* [B], arms of the round before */
  double *changes; /* [B], in the current round: 0 or 1 */
} ArmChanges;

static Status arm_changes_create(Arena *memory, const Simulation *simulation, void **state) {
  ArmChanges *self;
  ALLOCATE(memory, self, 1);
  ALLOCATE(memory, self->last, simulation->world.runs);
  ALLOCATE(memory, self->changes, simulation->world.runs);
  *state = self;
  return STATUS_OK;
}

static Status arm_changes_measure(const Probe *probe, int k) {
  ArmChanges *self = probe->state;
  const Simulation *simulation = probe->simulation;
  for (int b = 0; b < simulation->world.runs; b++) {
    self->changes[b] = k > 1 && simulation->arm[b] != self->last[b];
    self->last[b] = simulation->arm[b];
  }
  probe_accumulate(probe, self->changes);
  return STATUS_OK;
}

const ProbeOps probe_arm_changes = {
    .create = arm_changes_create, .measure = {[AFTER_CHOICE] = arm_changes_measure}, .quick = true};

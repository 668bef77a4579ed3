#include "study/feedback.h"

#include <string.h>

Status feedback_create(Arena *memory, const Config *setting, const Problem *problem, uint32_t first_run,
                       int runs, Feedback *out) {
  *out = (Feedback){.d = problem->d,
                    .runs = runs,
                    .batch = (int)config_int(setting, "feedback.batch"),
                    .delay = (int)config_int(setting, "feedback.delay"),
                    .geometric = config_is(setting, "feedback.delay_distribution", "geometric"),
                    .drop = config_real(setting, "feedback.drop"),
                    .key = rng_key(problem->seed, RNG_FEEDBACK),
                    .first_run = first_run};
  if (!out->geometric && out->delay > problem->rounds)
    out->delay = problem->rounds; /* they never arrive either way */
  if (out->batch > problem->rounds) out->batch = problem->rounds + 1;
  const int count = out->batch + out->delay;
  ALLOCATE(memory, out->slots, count);
  out->waiting = out->slots + out->batch;
  for (FeedbackSlot *slot = out->slots; slot < out->slots + count; slot++) {
    ALLOCATE(memory, slot->arm, runs);
    ALLOCATE(memory, slot->phi, (problem->d + 1) * runs);
    slot->y = slot->phi + problem->d * runs;
    for (int b = 0; b < runs; b++) slot->arm[b] = -1;
  }
  ALLOCATE(memory, out->uniform, 2 * runs);
  return STATUS_OK;
}

int feedback_exchange(Feedback *feedback, int k, const int *arm, const double *phi, const double *y) {
  const int runs = feedback->runs, delay = feedback->delay;
  RngLanes rng = rng_lanes(feedback->key, feedback->first_run, runs, 1, (uint32_t)k);
  FeedbackSlot *slot = &feedback->slots[(k - 1) % feedback->batch];
  memcpy(slot->arm, arm, (size_t)runs * sizeof *arm);
  memcpy(slot->phi, phi, (size_t)feedback->d * (size_t)runs * sizeof *phi);
  memcpy(slot->y, y, (size_t)runs * sizeof *y);
  if (feedback->geometric || feedback->drop > 0) rng_lanes_uniform(&rng, 2, feedback->uniform);
  for (int b = 0; b < runs; b++) {
    if (feedback->uniform[b] < feedback->drop) {
      slot->arm[b] = -1;
      for (int i = 0; i <= feedback->d; i++) slot->phi[i * runs + b] = 0; /* the last is y */
    }
    const int place = feedback->geometric ? (int)(feedback->uniform[runs + b] * (delay + 1))
                                          : (k - 1) % (delay > 0 ? delay : 1);
    if (place >= delay) continue;
    const FeedbackSlot mine = *slot, other = feedback->waiting[place]; /* they swap what run b has in them */
    const int swapped = mine.arm[b];
    mine.arm[b] = other.arm[b];
    other.arm[b] = swapped;
    for (int i = 0; i <= feedback->d; i++) { /* the last is y */
      const double x = mine.phi[i * runs + b];
      mine.phi[i * runs + b] = other.phi[i * runs + b];
      other.phi[i * runs + b] = x;
    }
  }
  return k % feedback->batch == 0 ? feedback->batch : 0;
}

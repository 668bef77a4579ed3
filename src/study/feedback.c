#include "study/feedback.h"

#include <string.h>

static Status feedback_create_slots(Arena *memory, int count, const Feedback *feedback, FeedbackSlot **out) {
  ALLOCATE(memory, *out, count);
  for (int i = 0; i < count; i++) {
    FeedbackSlot *slot = &(*out)[i];
    ALLOCATE_ARRAYS(memory, feedback->runs, slot->arm, slot->y);
    ALLOCATE(memory, slot->phi, feedback->d * feedback->runs);
    for (int b = 0; b < feedback->runs; b++) slot->arm[b] = -1;
  }
  return STATUS_OK;
}

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
  TRY(feedback_create_slots(memory, out->delay, out, &out->waiting));
  TRY(feedback_create_slots(memory, out->batch, out, &out->slots));
  ALLOCATE(memory, out->uniform, 2 * runs);
  return STATUS_OK;
}

/* Clears the reward of run b, which never arrives: arm = -1, phi = 0 and y = 0. */
static void feedback_drop_run(const Feedback *feedback, int b, FeedbackSlot *slot) {
  slot->arm[b] = -1;
  slot->y[b] = 0;
  for (int i = 0; i < feedback->d; i++) slot->phi[i * feedback->runs + b] = 0;
}

static void feedback_swap_run(const Feedback *feedback, int b, FeedbackSlot *one, FeedbackSlot *other) {
  const int runs = feedback->runs, arm = one->arm[b];
  const double y = one->y[b];
  one->arm[b] = other->arm[b], other->arm[b] = arm;
  one->y[b] = other->y[b], other->y[b] = y;
  for (int i = 0; i < feedback->d; i++) {
    const double x = one->phi[i * runs + b];
    one->phi[i * runs + b] = other->phi[i * runs + b], other->phi[i * runs + b] = x;
  }
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
    if (feedback->uniform[b] < feedback->drop) feedback_drop_run(feedback, b, slot);
    const int place = feedback->geometric ? (int)(feedback->uniform[runs + b] * (delay + 1))
                                          : (k - 1) % (delay > 0 ? delay : 1);
    if (place < delay) feedback_swap_run(feedback, b, slot, &feedback->waiting[place]);
  }
  return k % feedback->batch == 0 ? feedback->batch : 0;
}

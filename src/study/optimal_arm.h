/* How sure an agent is of the best arm: the entropy H(A*) of the arm that is best under posterior draws
 * (Russo and Van Roy 2016, An information-theoretic analysis of Thompson sampling). */
#pragma once

#include "policy/policy.h"

typedef struct {
  Sampler sampler; /* of its own, with streams of its own, so that the agent's draws stay what they are */
  int runs, draws; /* B, M */
  uint64_t seed;
  uint32_t first_run;
  double *theta, *one; /* [d, B M]; [d, B], one draw for each run */
  int *arm, *count; /* [B], [K, B] */
  int64_t *ignored; /* [B], fallbacks */
} OptimalArm;

/* Returns whether a policy has one posterior of theta* whose draws can be asked for their best arm. */
bool optimal_arm_known(const PolicyMethod *method, const Config *options, const Problem *problem);
/* Creates the entropy for a policy of which it can be known; `draws` posterior draws of each run. */
Status optimal_arm_create(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, int draws,
                          OptimalArm *out);
/* Observes: the last observation of `history` is new. */
void optimal_arm_observe(OptimalArm *self, const History *history);
/* Computes entropy[b stride] of run b, in nats, among the arms of world->round given what was observed
 * before it, from the shares of M draws, so about (arms met - 1) / (2 M) too low. */
void optimal_arm_entropy(OptimalArm *self, const World *world, const History *history, size_t stride,
                         double *entropy);

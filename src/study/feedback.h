/* Rewards as they arrive: in batches, late, or never (the keys feedback.*). An agent plays in every round,
 * and learns of a round when its reward arrives.
 *
 * In every round each run hands in what it played and gets at most one earlier round back, so that the runs
 * of a block stay in step. A late reward waits in one of `delay` places. With a constant delay the places are
 * taken in turn. With geometric delays the place is drawn among delay + 1, the last of which means no wait:
 * the reward that was in the place leaves. So every reward leaves with probability 1 / (delay + 1) in each
 * round and waits `delay` rounds on average; no two arrive in the same round. */
#pragma once

#include "problem/problem.h"

/* What B runs learn at a time: arm[B], phi[d, B] and y[B]. If nothing arrives for a run, its arm is negative
 * and the rest is 0. */
typedef struct {
  int *arm;
  double *phi, *y; /* side by side: y is row d of phi */
} FeedbackSlot;

typedef struct {
  int d, runs; /* B */
  int batch, delay;
  bool geometric;
  double drop;
  RngKey key;
  uint32_t first_run;
  FeedbackSlot *waiting, *slots; /* [delay], [batch] */
  double *uniform; /* [2, B] */
} Feedback;

/* Creates the feedback that the keys feedback.* describe. Everything is allocated in `memory`. */
Status feedback_create(Arena *memory, const Config *setting, const Problem *problem, uint32_t first_run,
                       int runs, Feedback *out);
/* Hands in round k, arm[B], phi[d, B] and y[B], and returns how many of feedback->slots arrive at its end, in
 * order: one per round of a batch, or none. Streams: (FEEDBACK, run, k). */
int feedback_exchange(Feedback *feedback, int k, const int *arm, const double *phi, const double *y);

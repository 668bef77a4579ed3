/* Which of several policies has the least regret on tasks of one distribution: all of them meet the same
 * theta*, arms and noise, in waves of runs that all ranks share. After each wave policies that are worse by
 * more than chance leave, and the race ends when the best of the others is known to a tolerance (races for
 * selecting a model: Maron and Moore 1994). What is decided depends on the runs alone, never on ranks. */
#pragma once

#include "parallel/parallel.h"
#include "parallel/progress.h"
#include "study/study.h"

enum { RACE_FIRST = 512, RACE_MOST = 262144 }; /* runs of the first wave, and at most */

/* A policy of the study, and how it did. */
typedef struct {
  int runs;
  double mean, se, tail, largest; /* of the regret of a run; the 95th percentile; the largest */
  double difference, difference_se; /* from the best, paired, over the runs of this one */
  double seconds; /* of CPU time, of a run */
} RaceResult;

typedef struct {
  const Study *study; /* of bandits, one setting */
  const Prior *priors; /* [policies] */
  const Prior *world; /* theta* of the tasks */
  double tolerance; /* of the least regret */
  int most; /* runs, at most */
} Race;

/* Computes results[policies] and the policy of least regret; *known: it is within the tolerance of the least
 * at 95%, over all policies at once. Collective; all ranks get the same. */
Status race_run(const Parallel *parallel, const Race *race, ProgressMode mode, RaceResult *results, int *best,
                bool *known);

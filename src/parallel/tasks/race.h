/* Finds which of several policies has the least regret on tasks of one distribution. All of them meet the
 * same theta*, arms and noise, in waves of runs that all ranks share. After each wave, policies that are
 * worse by more than chance leave, and the race ends when the best of the others is known to a tolerance
 * (races for model selection: Maron and Moore 1994). The decisions depend on the runs alone, never on the
 * ranks. */
#pragma once

#include "parallel/parallel.h"
#include "study/study.h"

enum { RACE_FIRST = 512, RACE_MOST = 262144 }; /* runs of the first wave, and at most */

/* How one policy of the study did. */
typedef struct {
  int runs;
  double mean, se, tail, largest; /* mean regret of a run, its standard error, 95th percentile, and maximum */
  double difference, difference_se; /* from the best, paired, over the runs of this policy */
  double seconds; /* CPU time per run */
} RaceResult;

typedef struct {
  const Study *study; /* of bandits, one setting */
  const Prior *priors; /* [policies] */
  const Prior *world; /* from which theta* of the tasks is drawn */
  double tolerance; /* relative to the least regret */
  int most; /* runs, at most */
} Race;

/* Computes results[policies] and the policy of least regret. *known says whether its regret is within the
 * tolerance of the least at 95% confidence, over all policies at once. Collective; all ranks get the same
 * results. */
Status race_run(const Race *race, RaceResult *results, int *best, bool *known);

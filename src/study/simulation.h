/* Simulations of contextual bandits: a policy in the world of a task, one block of B runs in lockstep, and
 * the probes that measure it. Nothing but the probes knows what is measured. */
#pragma once

#include "core/clock.h"
#include "study/feedback.h"
#include "study/study.h"

typedef struct Simulation Simulation;
typedef struct Probe Probe;

/* The moments of a round at which probes measure. */
enum {
  BEFORE_CHOICE, /* the arms are known, and nothing has been chosen */
  AFTER_CHOICE, /* arm[B], reward[B] and regret[B] are those of the round; the policy has not learned */
  AFTER_LEARNING, /* the policy has learned from a reward of each run: the round's own, or late ones */
  AFTER_ROUND,
  MOMENTS
};

/* Measures at a moment of round k, 1 to n. Errors belong to the task. */
typedef Status ProbeMeasure(const Probe *probe, int k);

/* A metric of bandits, in a file of its own: probe_NAME in probe/NAME.c. */
typedef struct {
  /* REQUIRED, one at least. */
  ProbeMeasure *measure[MOMENTS];
  /* OPTIONAL. Creates what the probe keeps, all of it in `memory`. If *state stays NULL, the metric is not
   * known for this policy: it is NaN in all rounds. */
  Status (*create)(Arena *memory, const Simulation *simulation, void **state);
  /* OPTIONAL. Checks that a study can measure it in a setting: STATUS_INPUT with a sentence if not. */
  Status (*check)(const Study *study, const Config *setting, const Problem *problem);
  /* Measures only in rounds 1, 2, 5, 10, 20, 50, .., and the last, because it takes long; a curve in the
   * first kept round from each of these on. */
  bool sparse;
  bool quick; /* takes less time than to read the clock, so that its time counts as the policy's */
  bool weighs; /* needs the probabilities of the arms */
} ProbeOps;

/* A policy in the world of a task. */
struct Simulation {
  const TaskRun *run; /* not owned */
  World world;
  History history;
  Policy policy;
  Feedback *feedback; /* how rewards arrive; NULL: at once. Not owned */
  double discount; /* of the evidence, per round */
  double *probability; /* [B, K], by which arms are picked; NULL: the policy chooses them itself */
  int *arm; /* [B], taken in the current round */
  double *phi, *reward, *regret; /* [d, B], [B], [B], of these arms */
  Probe *probes; /* [probe_count] */
  int probe_count;
  int point; /* of the curves: rounds that were kept so far */
  Timer timer; /* of the policy and its world, without what measures them */
};

struct Probe {
  const ProbeOps *ops;
  const Simulation *simulation;
  int curve; /* of the study, that it measures; -1: its values are kept elsewhere */
  double *value; /* [B], of the curve in the current round; 0 before the first */
  void *state;
};

/* Adds values[B], those of the current round, to the probe's values, which so become sums over rounds. */
void probe_accumulate(const Probe *probe, const double *values);

/* Creates the simulation of a task before its first round; if it is not only to choose, arms are picked by
 * their probabilities. `run` must outlive it. The caller must call simulation_destroy, also after an error.
 */
Status simulation_create(Arena *memory, const TaskRun *run, RuleUse use, Simulation *out);
void simulation_destroy(Simulation *self);

/* Adds a probe that measures this curve of the study, or -1: none. Its state is `state` unless it creates its
 * own. */
Status simulation_add_probe(Arena *memory, const ProbeOps *ops, int curve, void *state, Simulation *self);

/* Runs all rounds, and stores the curves in those that are kept, which are the points of the study's axis:
 * STATUS_STOPPED if the tick says so. */
Status simulation_run(Simulation *self);
/* Returns the CPU seconds of the policy, including those of other processes on its behalf. */
double simulation_seconds(const Simulation *self);

/* The steps of simulation_run, for studies that take rewards from elsewhere. */

/* Begins round k: the world draws what is new in it. */
void simulation_advance(Simulation *self, int k);
/* Lets the policy choose arm[B], or pick it by probability[B, K]. */
Status simulation_choose(Simulation *self);
/* Tells the policy, created to settle, that it will learn no more. */
void simulation_settle(Simulation *self);
/* Lets the policy learn from the rewards y[B] of arm[B] with features phi[d, B]. */
void simulation_learn(Simulation *self, const int *arm, const double *phi, const double *y);

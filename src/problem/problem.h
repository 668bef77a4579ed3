/* Problems: the world that a policy acts in. Each family has one constant descriptor and one file.
 *
 * B runs in a block, K arms, run last: features[K, d, B]. All randomness is named by (seed, purpose, run,
 * round), so every policy and every setting meets the same theta*, arms and noise. */
#pragma once

#include "core/arms.h"
#include "core/linalg/dense.h"
#include "problem/problem_theta.h"

typedef struct Problem Problem;
typedef struct World World;

/* Where rewards come from. */
typedef enum {
  REWARDS_OF_THETA, /* a likelihood and theta* */
  REWARDS_OF_ARMS, /* rounds that give the reward of every arm */
  REWARDS_OF_LOG, /* events that give the reward of the arm that was taken */
  REWARDS_OF_OBSERVATIONS /* observations that no arm is chosen for, in posterior studies */
} ProblemRewards;

typedef struct {
  const char *name, *summary, *reference;
  int arms; /* K when problem.arms is auto; 0: 100 */
  int dimension; /* d when problem.dimension is auto; 0: given by the distribution of theta* */
  size_t state_size; /* in bytes, of self->state, which is zeroed before `create` */
  bool needs_file; /* problem.file must be given */
  bool per_arm; /* problem.unknown may be per_arm */
  bool finite_arms; /* arms are members of a finite set: problem.arms may be all */
  bool arms_of_theta; /* features depend on the theta* of the run */
  ProblemRewards rewards_of;
  /* The keys that it uses and not every family does, separated by blanks; NULL: it does not say
   * (study_unused_note). */
  const char *keys;
  /* REQUIRED. Reads the keys problem.*; makes `theta`, and fills `state`, in self->memory; sets
   * feature_scratch and kept if they are not 0, arms_in_order, and likelihood.noise if problem.noise is auto
   * and the family knows better than 1. self->d is problem.dimension, or as above, and afterwards that of
   * `theta`. */
  Status (*create)(Problem *self, const Config *config);
  /* OPTIONAL. For runs that are cases, each with a prior, observations and noise of its own, so that they are
   * played one by one: makes the problem that of a run. `create` leaves it at run 0. */
  Status (*take)(Problem *self, uint32_t run);
  /* OPTIONAL. Turns samples of `theta`, theta[d, lanes], into theta*, lane by lane, with the streams `rng` if
   * this is random. Such a theta* has no exact prior, unless it is that of a case. */
  void (*transform)(const Problem *self, RngLanes rng, double *theta);
  /* OPTIONAL, needed with `kept`. Fills world->kept, what the runs keep for the features of all their
   * rounds. */
  void (*keep)(World *world);
  /* REQUIRED. Draws the feature vectors of world->round (1-based) to world->features; world->scratch is free.
   * Called once, with round 0, if the arms are not resampled. */
  void (*features)(World *world);
  /* REQUIRED unless REWARDS_OF_THETA. Sets world->mean to the rewards of all arms in world->round: the world
   * has no theta*, and `theta` is not used. */
  void (*rewards)(World *world);
  /* OPTIONAL: the matrices of the family can be spread over ranks. Creates A[arms, d] of a run; collective.
   * The caller must call dense_matrix_destroy, also after a failure. */
  Status (*matrix)(const Problem *self, uint32_t run, const Dense *dense, DenseMatrix *out);
} ProblemOps;

struct Problem {
  Arena memory; /* holds `state` and what belongs to it */
  const ProblemOps *ops;
  int d, arms, rounds;
  int cases; /* in the file, if the runs are cases; else 0 */
  int drift_every; /* rounds after which theta* is drawn again; 0: never */
  ThetaSource theta; /* what theta* is drawn from */
  bool resample_arms;
  bool arms_come_and_go; /* world->available says which arms there are in a round */
  /* Each arm has its own theta*; the features of a round are a context, the same for all arms. */
  bool per_arm;
  bool quadratic; /* the world's rewards depend on (phi' theta*)^2 instead of phi' theta* */
  bool arms_in_order; /* a history of the posterior study has the arms in order, one after the other */
  bool together; /* the draws of a run have one history */
  bool distributed; /* its matrices are spread over the ranks: only `matrix` can be used */
  bool vectors; /* theta* has no matrices, only theta.isotropic */
  size_t feature_scratch; /* doubles needed to draw features, in addition to two per run */
  size_t kept; /* doubles that a run keeps for the features of all its rounds */
  Likelihood likelihood;
  uint64_t seed;
  void *state;
};

const ProblemOps *problem_family(int index); /* registry; NULL ends */
const char *problem_name(int index);
/* Returns the family that problem.family names. */
const ProblemOps *problem_named(const Config *config);

/* Returns whether the dimension is from linear_algebra.distributed_from on. A family with `matrix`
 * (problem.family = inverse) then spreads its matrices over ranks, if the caller can, and these ranks work
 * on them together. */
bool problem_is_distributed(const Config *config);

/* How the draws of a run are used: each has a history of its own, as in bandits; all have the same; or all
 * have the same, and its matrices are spread over the ranks. */
typedef enum { PROBLEM_APART, PROBLEM_TOGETHER, PROBLEM_DISTRIBUTED } ProblemUse;

/* Returns K of a setting, as far as the keys tell: a family may change it for auto and all. */
int problem_arms(const Config *config, const ProblemOps *family);
/* Creates the problem of one setting, from problem.*, likelihood and seed. The caller must call
 * problem_destroy. */
Status problem_create(const Config *config, const ProblemOps *family, ProblemUse use, Problem *out);
void problem_destroy(Problem *problem);
/* Sets the likelihood of a family that has one of its own; if the study names another, that is an error.
 * Called by `create`. */
Status problem_set_likelihood(Problem *self, const Config *config, const Likelihood *own);
/* Creates self->theta from problem.theta and its keys; called by `create`. */
Status problem_create_theta(Problem *self, const Config *config);

/* Draws theta* of the runs: theta[d, B]. */
void problem_theta(const Problem *problem, uint32_t replicate, uint32_t first_run, int runs, double *theta);
/* Draws other theta* from the same distribution, which no run meets, for pictures: theta[d, count]. */
void problem_theta_for_pictures(const Problem *problem, int count, double *theta);
/* Draws the samples that priors of this replicate are fitted to; limit < 0: as many as there are. */
Status problem_training_samples(Arena *memory, const Problem *problem, uint32_t replicate, int64_t limit,
                                Samples *out);
/* Returns whether the distribution of theta* has a density. */
bool problem_has_exact_prior(const Problem *problem);
/* Returns STATUS_INPUT with a message if the distribution of theta* has no density. */
Status problem_check_exact_prior(const Problem *problem);
/* Creates the distribution of theta* as a prior; errors as above. A mixture has the exact chain of
 * `chain_settings`; any other prior can be sampled and has a log density, and nothing else. */
Status problem_exact_prior(Arena *memory, const Problem *problem, const PriorFit *chain_settings, Prior *out);

/* Returns the number of theta* in a run, or (below) of feature vectors in a round: with one theta* per arm
 * there is one vector, the context; with one theta* for all arms there is one vector per arm. */
static inline int problem_unknowns(const Problem *problem) { return problem->per_arm ? problem->arms : 1; }
static inline int problem_vectors(const Problem *problem) { return problem->per_arm ? 1 : problem->arms; }

/* The world of one block of runs, and what happens in it. */
struct World {
  Arena memory;
  const Problem *problem; /* not owned */
  uint32_t replicate, first_run, round;
  int runs; /* B */
  double *theta; /* [d, B], or [d, B K] if each arm has its own, in lane run K + arm */
  double *kept; /* [B, problem->kept] */
  double *features; /* [problem_vectors, d, B], of the current round; finite for arms that are not available
                       too */
  /* [B, K], 0 for arms that a run does not have in the current round; NULL: each has all. */
  unsigned char *available;
  double *mean; /* [K, B], expected reward of each arm in the current round */
  int *best; /* [B], arm of highest expected reward, the first on ties */
  double *noise; /* [2, B], a uniform and a normal number of the current round */
  double *scratch; /* [2 B + feature_scratch] */
};

/* Returns the arms that each run has in the current round. */
static inline ArmSet world_arms(const World *world) {
  return (ArmSet){.count = world->problem->arms, .available = world->available};
}

/* Returns the streams (purpose, run, round) of the runs, side by side. */
static inline RngLanes world_streams(const World *world, RngPurpose purpose) {
  return rng_lanes(rng_key(world->problem->seed, purpose), world->first_run, world->runs, 1, world->round);
}

/* Counter-based random numbers: Philox4x32-10 of Random123 (Salmon et al. 2011).
 *
 * A stream has a name, never a position in another stream: (study seed, purpose) are hashed into the key;
 * (run, round, draw, position) are the four words of the counter. So results cannot depend on ranks, threads,
 * time, or what another algorithm drew. One counter value gives two doubles.
 *
 * Letters: B runs in a block, M draws per run, N = B M lanes; lane n belongs to run n / M and draw n % M.
 * Arrays of many lanes have the lane last: x[n_rows, N]. */
#pragma once

#include <stdint.h>

/* Every purpose that random numbers are drawn for. The world and the agents never share one, so that all
 * policies and settings meet the same theta*, arms and noise (common random numbers). Append only: the place
 * in the list is part of the key. */
#define RNG_PURPOSE_LIST(ENTRY)                                                                              \
  ENTRY(THETA, "the unknown parameter theta* of a run")                                                      \
  ENTRY(ARMS, "feature vectors of the arms")                                                                 \
  ENTRY(REWARD, "reward noise of a round")                                                                   \
  ENTRY(AGENT, "posterior draws and other choices of a policy")                                              \
  ENTRY(PRIOR_SAMPLES, "samples that priors are fitted to")                                                  \
  ENTRY(SPLIT, "which theta of a finite set are kept for testing")                                           \
  ENTRY(MIXTURE_START, "starts of expectation maximisation")                                                 \
  ENTRY(NETWORK_START, "initial network weights")                                                            \
  ENTRY(NETWORK_TRAINING, "batches and noise of network training")                                           \
  ENTRY(UNCONDITIONAL, "samples of a fitted prior")                                                          \
  ENTRY(VERIFY, "which tasks are run again by verify")                                                       \
  ENTRY(TEST, "tests")                                                                                       \
  ENTRY(FACTORISATION, "first factors of alternating least squares")                                         \
  ENTRY(OBSERVE, "samplers that move as they observe")                                                       \
  ENTRY(EXACT, "draws from the exact posterior, to compare with")                                            \
  ENTRY(HISTORY, "which arms a history holds")                                                               \
  ENTRY(DIRECTION, "directions that draws are projected on")                                                 \
  ENTRY(FLOOR, "a second set of exact draws, for the Monte-Carlo floor of a distance")                       \
  ENTRY(RADIUS, "lengths of the arms of a ball")                                                             \
  ENTRY(SHAPE, "the rotation along whose axes arms are shaped")                                              \
  ENTRY(POOL, "the vectors of a pool of arms")                                                               \
  ENTRY(POOL_MEMBER, "which vector of the pool an arm is near")                                              \
  ENTRY(RIGHT_VECTORS, "right singular vectors of an inverse problem")                                       \
  ENTRY(ROTATION, "rotations of a Gaussian target")                                                          \
  ENTRY(HELD_OUT, "noise of the held-out samples of network training")                                       \
  ENTRY(MIXTURE_REPAIR, "where expectation maximisation puts components that have become empty")             \
  ENTRY(PRIOR_MOMENTS, "samples of a prior for its moments")                                                 \
  ENTRY(PRIOR_BOX, "samples of a prior for the box that holds it")                                           \
  ENTRY(COMPONENTS, "samples of a prior that Gaussians of a sampler start from")                             \
  ENTRY(RESAMPLING, "which particles go on")                                                                 \
  ENTRY(TILT_NOISE, "noise that brings a sample to the start of a reverse process")                          \
  ENTRY(REVERSE, "the stages of a reverse process after its start")                                          \
  ENTRY(DENOISER_START, "initial weights of a denoiser")                                                     \
  ENTRY(DENOISER_TRAINING, "batches of denoiser training, and cases that it is checked on")                  \
  ENTRY(DENOISER_MIXTURE, "the mixture that a denoiser corrects")                                            \
  ENTRY(MIXTURE_FOLD, "which samples are held out to choose the number of components")                       \
  ENTRY(OPTIMAL_ARM, "posterior draws of which the best arm is asked for")                                   \
  ENTRY(THETA_SHOWN, "theta* of no run, for pictures of their distribution")                                 \
  ENTRY(MARGINAL, "posterior draws that a marginal likelihood is estimated from")                            \
  ENTRY(PAST_TASKS, "which past tasks of logs a fit chooses by")                                             \
  ENTRY(PAST_DRAWS, "posterior draws of past tasks, which networks learn from")                              \
  ENTRY(GUARD, "which draws are those of a guard beside the prior, and these draws")                         \
  ENTRY(BESIDE, "the mixture beside a diffusion prior")                                                      \
  ENTRY(CONTAMINATION, "which training samples a wide Gaussian replaces, and these samples")                 \
  ENTRY(ALARM, "histories that a prior predicts")                                                            \
  ENTRY(PAST_WORLD, "the seed of the world in which past tasks were played")                                 \
  ENTRY(TUNE, "theta* of the tasks that rules are tuned on, and the seed of these tasks")                    \
  ENTRY(REGRET_FLOOR, "what the oracle of the floor of regret learns in a round")                            \
  ENTRY(PROPENSITY, "posterior draws that the probabilities of arms are taken from")                         \
  ENTRY(PICK, "which arm is picked by its probability")                                                      \
  ENTRY(FEEDBACK, "which rewards never come, and how long others take")                                      \
  ENTRY(EVENTS, "the order of the events of a table or a log")                                               \
  ENTRY(AUTO, "held-out tasks that families of priors are judged on")                                        \
  ENTRY(AUTO_REWARDS, "rewards that are predicted of them")                                                  \
  ENTRY(TIE, "which of several equally good arms is taken")                                                  \
  ENTRY(REJECTION, "which events of a log that is not uniform a replay takes")                               \
  ENTRY(PAST_POINTS, "points that the posterior of a past task is weighed at")                               \
  ENTRY(JUDGE, "posterior draws that the draws of a sampler are judged by")                                  \
  ENTRY(UNSEEN, "coordinates of theta that nothing observed depends on")                                     \
  ENTRY(DESIGN, "points of a design")

typedef enum {
#define RNG_PURPOSE_ENUM(name, text) RNG_##name,
  RNG_PURPOSE_LIST(RNG_PURPOSE_ENUM)
#undef RNG_PURPOSE_ENUM
      RNG_PURPOSES
} RngPurpose;

typedef struct {
  uint32_t word[2];
} RngKey;

/* Returns the key of all streams of one purpose under one study seed. */
RngKey rng_key(uint64_t seed, RngPurpose purpose);

/* Returns the key of the streams of `purpose` that belong to those of `key`, for what the owner of a key
 * draws in addition to its own numbers, under the same runs, rounds and draws. */
RngKey rng_subkey(RngKey key, RngPurpose purpose);

/* One stream. `position` counts the counter values used; running past 2^32 of them is a bug and fails an
 * assertion. */
typedef struct {
  RngKey key;
  uint32_t run, round, draw, position;
} Rng;

/* Draws n uniform doubles in (0, 1), never 0 or 1: out[n]. */
void rng_uniform(Rng *rng, int n, double *out);
/* Draws n standard normal doubles, out[n], by Box-Muller; two per counter value. */
void rng_normal(Rng *rng, int n, double *out);
/* Draws one uniform integer in [0, bound), bound >= 1. Its bias is below bound * 2^-64. */
uint64_t rng_index(Rng *rng, uint64_t bound);
/* Computes order[n] <- a random permutation of 0 .. n - 1 (Fisher and Yates). */
void rng_permutation(Rng *rng, int n, int *order);

/* Returns entry `place` of a random permutation of [0, n), a Feistel network keyed by (key, run), so that one
 * entry can be found without shuffling the whole set. */
int rng_permuted(int n, RngKey key, uint32_t run, int place);

/* N = lanes streams side by side: lane n has run = run + r with r = (first_lane + n) / draws, draw =
 * (first_lane + n) % draws, and all share round and position. Column n of the output equals what the Rng of
 * that name would give. If the runs are not consecutive, or are in different rounds, `runs` and `rounds` are
 * set, and lane n has runs[r] and rounds[r]. */
typedef struct {
  RngKey key;
  uint32_t run, draws, round, first_lane, lanes, position;
  const uint32_t *runs, *rounds; /* both or none */
} RngLanes;

/* Returns the streams of `draws` draws for each of the runs run .. run + runs - 1, in one round. */
static inline RngLanes rng_lanes(RngKey key, uint32_t run, int runs, int draws, uint32_t round) {
  const uint32_t each = (uint32_t)draws;
  return (RngLanes){.key = key, .run = run, .draws = each, .round = round, .lanes = (uint32_t)runs * each};
}

/* Returns the stream of a lane, at position 0. */
Rng rng_of_lane(const RngLanes *rng, uint32_t lane);

/* Draws, for each lane, the next n numbers of its stream: out[n, lanes]. */
void rng_lanes_uniform(RngLanes *rng, int n, double *out);
void rng_lanes_normal(RngLanes *rng, int n, double *out);

/* A prior that is learned online: after each task, from the evidence of all tasks so far.
 *
 * It is a mixture of learned Gaussians and, with a learned weight, of the Gaussian that was believed before
 * the first task. EM continues from the mixture of the previous task, so that a task costs a few iterations.
 * When there are a quarter more tasks, or 16 more (a 64th, if there are many), fits from new starts compete
 * with that mixture: with 1, 2, 4, .. components, with separate covariances or a common one, on the last 512
 * tasks, so that they notice when the world has changed. With many tasks these fits are spread over updates.
 * The mixture that predicts all tasks best wins (AIC; Akaike 1974). Kveton et al. 2021 learn one Gaussian in
 * this way (MetaTS). */
#pragma once

#include "model/logs/logs.h"
#include "model/mixture/mixture.h"

/* State of the fits from new starts. */
typedef struct {
  int components; /* of the current fit; 0: no fit is in progress */
  bool tied; /* its components share one covariance */
  int step, tasks; /* its next step; number of tasks when the first fit began */
  Mixture mixture; /* of theta; with room for most + 1 components */
  double likelihood; /* mean log likelihood per task, before the last step */
} OnlineContest;

typedef struct {
  Arena *memory; /* the creator's */
  Logs logs; /* all tasks so far: the caller adds to them */
  Mixture start; /* one Gaussian, prepared */
  Mixture now; /* what is believed about the next task; prepared */
  bool tied; /* its learned components share one covariance */
  int most; /* limit on learned components */
  /* Tasks come in order of time, so that weights are learned from the last ones and fits from new starts are
   * spread; false at first. */
  bool in_order;
  OnlineContest contest;
  int fitted; /* number of tasks at the last fits from new starts */
  int64_t work; /* so far: tasks times components, summed over all EM iterations */
  RngKey key;
  uint32_t run;
} Online;

/* Creates a prior that begins with one Gaussian, `start` (copied). Mixtures have at most `most` learned
 * components. The streams are (key, run, round = start). The likelihood must outlive it. */
Status prior_online_create(Arena *memory, const Mixture *start, int most, const Likelihood *likelihood,
                           RngKey key, uint32_t run, Online *out);
/* Learns from self->logs; does nothing with fewer than ONLINE_LEAST tasks. */
enum { ONLINE_LEAST = 4 };
Status prior_online_learn(Online *self);

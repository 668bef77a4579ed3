/* A prior that is learned while tasks go on: after each task, from the evidence of all tasks so far.
 *
 * It is a mixture of learned Gaussians and, beside them with a learned weight, of the Gaussian that was
 * believed before the first task. EM goes on from the mixture of the task before, so that a task costs a few
 * iterations; whenever there are a quarter more tasks, or 16 (of many, a 64th), fits from new starts compete
 * with it, of 1, 2, 4, .. components, with covariances of their own or one for all, on the last 512 tasks, so
 * that a world that has changed is found. Where tasks are many these fits are spread over updates. What
 * predicts all tasks best wins (AIC; Akaike 1974). Kveton et al. 2021 learn one Gaussian in this way
 * (MetaTS). */
#pragma once

#include "model/logs/logs.h"
#include "model/mixture/mixture.h"

/* Fits from new starts, of which some are still to come. */
typedef struct {
  int components; /* of the fit that is at work; 0: none is */
  bool tied; /* its components have one covariance */
  int step, tasks; /* its next step; tasks when the first of them began */
  Mixture mixture; /* of theta; room for most + 1 */
  double likelihood; /* mean of a task, before the last step */
} OnlineContest;

typedef struct {
  Arena *memory; /* of whoever created it */
  Logs logs; /* all tasks so far: the caller adds to them */
  Mixture start; /* one Gaussian, prepared */
  Mixture now; /* what is believed of the next task; prepared */
  bool tied; /* its learned components have one covariance */
  int most; /* learned components, at most */
  /* They come in the order of time, so that weights are learned from the last tasks, and fits from new starts
   * are spread; false at first. */
  bool in_order;
  OnlineContest contest;
  int fitted; /* tasks at the last fits from new starts */
  int64_t work; /* so far: tasks times components of all EM iterations */
  RngKey key;
  uint32_t run;
} Online;

/* Creates a prior that begins with one Gaussian, `start` (copied). Mixtures have at most `most` learned
 * components. The streams are (key, run, round = start). The likelihood must outlive it. */
Status online_create(Arena *memory, const Mixture *start, int most, const Likelihood *likelihood, RngKey key,
                     uint32_t run, Online *out);
/* Learns from out->logs; with fewer than ONLINE_LEAST tasks it changes nothing. */
enum { ONLINE_LEAST = 4 };
Status online_learn(Online *self);

/* Returns how many learned components there may be after so many tasks. */
double online_components(int d, double tasks, int most);
/* Returns the operations for a task (SamplerOps.cost), after so many of `rows` rows each (0 where none are
 * kept), where the prior is learned after every `every` of them. */
double online_cost(int d, double tasks, double rows, int most, double every);

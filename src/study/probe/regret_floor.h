/* A floor of regret (Gaussian rewards): suppose that every round reveals theta* with precision r^2 / sigma^2
 * in all directions, whatever is played, where r is the length of the longest arm. No arm tells more
 * (Blackwell's order of experiments). What this oracle learns does not depend on its actions, so greedy is
 * optimal for it, and its mean regret is at most that of any policy. It knows the distribution of theta*: a
 * closed form, a density in the plane, or the finite set that theta* is drawn from. */
#pragma once

#include "study/study.h"

/* For the posterior mean of a density in the plane after observations of the same precision in all
 * directions. */
typedef struct {
  const Prior *prior; /* not owned; d = 2, with a log density */
  double low[2], step[2]; /* the box that holds samples of the prior: lower corner, sides of a cell */
  double *density; /* [SIDE, SIDE], at the centres of cells, over the largest value, x fastest */
  double *local; /* the same, around a narrow posterior */
} PlanarMean;

/* Creates the table of the density, in `memory`; `prior` must outlive it. */
Status study_planar_mean_create(Arena *memory, const Prior *prior, PlanarMean *out);
/* Computes mean[2] of the prior times exp(vector' theta - precision |theta|^2 / 2). */
void study_planar_mean(PlanarMean *self, double precision, const double vector[2], double mean[2]);

typedef struct {
  int d, runs;
  Prior prior; /* the distribution of theta*, unless it is a finite set */
  PlanarMean plane; /* if theta* has a density in the plane */
  int members; /* size of the finite set, else 0 */
  double *set, *square, *weight; /* [d, members], their squared lengths, scratch */
  double *precision, *vector; /* [B], [d, B]: what the oracle has learned */
  double *longest; /* [B], r^2 in the current round */
  double *mean, *noise; /* [d, B] */
  LaneEvidence evidence; /* for the prior's denoiser */
  double *denoised; /* [d, n], then [d, d, n]: mean and covariance of z */
  void *scratch;
  int *arm; /* [B] */
} RegretFloor;

/* Returns STATUS_INPUT with a sentence if there is no such bound. */
Status regret_floor_check(const Problem *problem);
Status regret_floor_create(Arena *memory, const Problem *problem, const Task *task, RegretFloor *out);
/* Computes the oracle's regret[B] in the current round of the world, after which the oracle learns. */
void regret_floor_play(RegretFloor *self, const World *world, double *regret);

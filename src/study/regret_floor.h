/* A floor of regret (Gaussian rewards): whatever is played, let every round tell theta with precision r^2 /
 * sigma^2 in all directions, r the longest arm's length. No arm tells more (Blackwell's order of
 * experiments), so this oracle, for whom actions teach nothing and greedy is optimal, has no more regret in
 * the mean than any policy. It knows the distribution of theta*: a closed form, a density in the plane, or
 * the finite set that theta* is drawn from. */
#pragma once

#include "study/planar_mean.h"
#include "study/study.h"

typedef struct {
  int d, runs;
  RngKey key;
  Prior prior; /* the distribution of theta*, unless it is a finite set */
  PlanarMean plane; /* of a density in the plane */
  int members; /* of a finite set, else 0 */
  double *set, *square, *weight; /* [d, members], their squared lengths, scratch */
  double *precision, *vector; /* [B], [d, B]: what the oracle has learned */
  double *length; /* [B], r of the present round */
  double *mean, *noise; /* [d, B] */
  double *basis, *work; /* of the prior's denoiser */
  int *arm; /* [B] */
} RegretFloor;

/* Returns STATUS_INPUT with a sentence where there is no such bound. */
Status regret_floor_check(const Problem *problem);
Status regret_floor_create(Arena *memory, const Problem *problem, const Task *task, RegretFloor *out);
/* Returns what a round of one run costs, the mean over so many rounds, in floating-point operations as those
 * of a sampler (sampler.h). */
double regret_floor_cost(const Problem *problem, double rounds);
/* Computes the oracle's regret[B] in the world's present round, after which it learns. */
void regret_floor_play(RegretFloor *self, const World *world, double *regret);

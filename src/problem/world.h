/* The world of one block of runs, and what happens in it: theta*, the arms of each round, and rewards. */
#pragma once

#include "problem/problem.h"

/* Creates a world; the caller must call world_destroy, also after an error. */
Status world_create(const Problem *problem, uint32_t replicate, uint32_t first_run, int runs, World *out);
void world_destroy(World *world);
/* Draws theta* again, from the streams of a segment; segment 0 is what world_create draws. Whoever changes
 * world->theta calls world_theta_changed before the next world_advance; arms that are not resampled stay as
 * they are, so they must not depend on theta*. */
void world_draw_theta(World *world, uint32_t segment);
void world_theta_changed(World *world);
/* Advances to `round` (1-based): draws new arms if they are resampled, and new noise. */
void world_advance(World *world, uint32_t round);
/* Computes square[B], the largest |phi|^2 among the arms of each run in the current round. */
void world_longest_squares(const World *world, double *square);
/* Plays arm[B]: sets phi[d, B] and reward y[B] of the arms taken, and their expected regret[B] in this round
 * (DiffTS paper, equation 9). */
void world_play(const World *world, const int *arm, double *phi, double *y, double *regret);
/* Finds the arm with the highest phi' theta for each run, of those it has (the Thompson rule; on ties one at
 * random, rule/ties.h): arm[B], from theta[d, B]. Unless `share` is NULL, computes share[B, K], the
 * probability with which it takes each arm: 1 / n for n arms that tie. */
void world_greedy(const World *world, const double *theta, double *share, int *arm);

/* Samplers that observe round by round: linear data of any dimension, a sampler with its options, the exact
 * target, and the Kullback-Leibler divergence of two Gaussians. */
#pragma once

#include "sampler_fixture.h"

#include "core/linalg/linalg.h"

/* ---- data: n rounds for every run, the same for all runs when `shared` */

typedef struct {
  int d, runs, n;
  double *phi, *y; /* [n, d, runs], [n, runs] */
} Rounds;

/* Makes up `n` rounds for each of runs first_run .. first_run + runs - 1, to be freed by free_rounds. */
Rounds make_rounds(int d, int first_run, int runs, int n, bool shared, const Likelihood *likelihood);
void free_rounds(Rounds *rounds);

/* Records round l. */
void append_round(History *history, const Rounds *rounds, int l);

/* Returns a history with room for all rounds, and none of them. */
History empty_history(Arena *memory, const Rounds *rounds, const Likelihood *likelihood);

/* ---- a sampler and its options */

typedef struct {
  Sampler sampler;
  Config *options;
  int64_t *fallbacks; /* [runs] */
} FixtureSampler;

enum { DRAW_ROUND = 77 }; /* of the random numbers of draws */

/* Creates the sampler, with "key=value" sets; free_sampler frees what `memory` does not. */
FixtureSampler make_sampler(Arena *memory, const char *name, const Prior *prior, const Likelihood *likelihood,
                            uint32_t first_run, int runs, int draws, int set_count, const char *const *sets);
void free_sampler(FixtureSampler *fixture);

/* Draws theta[d, runs * draws]. */
void draw_into(FixtureSampler *fixture, const History *history, int draws, double *theta);

/* Returns what draw_into draws; the caller frees it. */
double *draw_from(FixtureSampler *fixture, const History *history, int draws);

/* ---- the target in the linear model */

/* Computes precision[d, d], covariance[d, d] and mean[d] of one run, for the prior N(0, I / lambda) and a
 * posterior to the power of eta. */
void linear_target(const History *history, int run, double eta, double lambda, double *precision,
                   double *covariance, double *mean);

/* Returns KL(N(mean, covariance) | N(target_mean, precision^-1)). */
double gaussian_kl(int d, const double *mean, const double *covariance, const double *target_mean,
                   const double *precision);

/* The reverse chain of a prior: what a diffusion model offers to samplers, whether its noise predictor was
 * learned or is exact.
 *
 * A chain lives in standardised coordinates z = (theta - shift) / scale. N lanes, lane last: s[d, N]. */
#pragma once

#include "core/arena.h"
#include "core/chunk.h"
#include "model/denoiser/schedule.h"

#include <stdbool.h>

/* Products with a Jacobian, of all lanes: out[count, d, N] = J' v for each v of v[count, d, N]. */
typedef struct {
  int count;
  const double *v;
  double *out;
} ChainProducts;

typedef struct Chain Chain;
struct Chain {
  int d;
  int lanes; /* most of a call, if each call has a price of its own, so that calls should be large; 0: it has
                none */
  Schedule schedule;
  double *shift, *scale; /* [d] */
  LastStage last_stage; /* what unconditional sampling uses */
  /* [T + 1], by stage: mean squared error of the noise for each coordinate on held-out samples; NULL for
   * exact chains. */
  const double *loss;
  const void *state; /* of the prior that owns the chain */
  /* eps[d, N] = E[noise | s_t], the noise that was mixed into s_t. */
  void (*noise)(const Chain *chain, int t, int lanes, const double *s, double *eps);
  /* out[d, N] = (d eps / d s)' v. */
  void (*noise_vjp)(const Chain *chain, int t, int lanes, const double *s, const double *v, double *out);
  /* OPTIONAL. eps[d, N] and jacobian[d, d, N] = d eps / d s, row by row, at a lower cost than d + 1 calls of
   * the two above. */
  void (*noise_jacobian)(const Chain *chain, int t, int lanes, const double *s, double *eps,
                         double *jacobian);
  /* OPTIONAL. eps[d, N] (NULL: not wanted) and products with J = d eps / d s, at a lower cost than calls of
   * the first two. */
  void (*noise_products)(const Chain *chain, int t, int lanes, const double *s, double *eps,
                         const ChainProducts *products);
  /* OPTIONAL. log_density[N] of the law of s_t, up to a constant per stage, and its gradient score[d, N], at
   * stages t = density_from .. T. */
  void (*density)(const Chain *chain, int t, int lanes, const double *s, double *log_density, double *score);
  int density_from; /* 0: the clean sample has a density too; 1: it has none */
  /* OPTIONAL. An exact draw of the clean sample given s_t, from uniform[d, N]: out[d, N]. */
  void (*denoise)(const Chain *chain, int t, int lanes, const double *s, const double *uniform, double *out);
};

/* Every state a sampler hands to a chain is kept within |s| <= CHAIN_GUARD, so that a stage far from its
 * training data cannot run away. */
#define CHAIN_GUARD 100.0
/* Brings the chain state s[d, lanes] back to |s| <= CHAIN_GUARD: a larger number becomes the limit with
 * its sign, NaN becomes 0 (the prior's mean). Each coordinate that was changed adds one to fallbacks[run]. */
void denoiser_chain_guard(const Chunk *chunk, int d, double *s, int64_t *fallbacks);

/* Returns how many of `all` lanes a sampler takes at a time, each of which needs so many numbers of scratch:
 * CHUNK_LANES, whose scratch stays in cache or, where calls have a price, as many as the chain takes and
 * memory allows. */
int denoiser_chain_lanes(const Chain *chain, size_t numbers, int all);

/* Creates everything but noise, noise_vjp, noise_jacobian, loss and state, with shift 0 and scale 1; the
 * owner sets the rest. */
Status denoiser_chain_create(Arena *memory, Chain *chain, int d, const ScheduleRule *rule,
                             LastStage last_stage);

/* Computes eps[d, N] and jacobian[d, d, N] = d eps / d s, row by row, of any chain. scratch[d, N]. */
void denoiser_chain_noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                                   double *jacobian, double *scratch);
/* Computes mu[d, N] = mu_t(s): the mean of s_{t-1} given s_t under the chain. mu may not overlap s. */
void denoiser_chain_mean(const Chain *chain, int t, int lanes, const double *s, double *mu);
/* Replaces eps[d, N], the noise predicted at s, by the mean of the clean sample given s. */
void denoiser_chain_denoise_mean(const Chain *chain, int t, int lanes, const double *s, double *eps);
/* Computes theta = shift + scale z, in place on [d, N]. */
void denoiser_chain_to_theta(const Chain *chain, int lanes, double *z);
/* Draws an unconditional sample for every lane, theta[d, N] (Algorithm 2 without history). scratch[2, d, N].
 * Each stream gives d normals for s_T, then d for each stage t = T .. 1 (also when Sigma_1 = 0), by T + 1
 * calls of rng_lanes_normal with n = d: two normals share a counter value, so for odd d the number of calls
 * matters. s_{t-1} = mu_t(s_t) + sqrt(Sigma_t) z, guarded. A sampler without history gives the same bits. */
void denoiser_chain_sample(const Chain *chain, RngLanes *rng, double *theta, double *scratch);
/* Draws the same theta[d, N] in parts of at most `width` lanes, for chains whose scratch has no room for
 * more. part_theta[d, width], scratch[2, d, width]. */
void denoiser_chain_sample_parts(const Chain *chain, int width, RngLanes *rng, double *part_theta,
                                 double *scratch, double *theta);

/* A mixture of Gaussians in R^d, and its operations. A single Gaussian is a mixture of one component.
 *
 * Letters: C components, N lanes, lane last: theta[d, N]. */
#pragma once

#include "core/arena.h"
#include "core/rng.h"
#include "core/status.h"
#include "core/tiling.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct {
  double *precision; /* [C, d, d] */
  double *information; /* [C, d], precision times mean */
  atomic_bool *found; /* they are there, or are somebody else's to fill */
} MixtureInverse;

typedef struct {
  int d, components; /* C */
  double *weight; /* [C], sums to 1 */
  double *mean; /* [C, d] */
  double *covariance; /* [C, d, d] */
  /* Derived by mixture_prepare. */
  double *cholesky; /* [C, d, d], of the covariance, lower */
  double *log_norm; /* [C], log weight - 1/2 (log det covariance + d log 2 pi) */
  double widest; /* the largest trace of a covariance: in no direction is a variance larger */
  MixtureInverse inverse; /* derived by mixture_invert, when somebody needs it */
} Mixture;

/* Creates a mixture of zeros. */
Status mixture_create(Arena *memory, int d, int components, Mixture *out);
/* Fills the derived fields from weight, mean, covariance. Returns STATUS_INPUT if a covariance is not
 * positive definite or a weight is not in (0, 1]; the message counts components from 0. */
Status mixture_prepare(Mixture *mixture);
/* Fills the inverse of a prepared mixture unless they are there. Threads may share it. */
void mixture_invert(const Mixture *mixture);
/* Waits for inversions of other threads, and lets none begin, while the process is forked: in the child they
 * would never end. Lets them begin again, in both processes. */
void mixture_before_fork(void);
void mixture_after_fork(void);
/* Returns the precision of a component, [d, d]. */
const double *mixture_precision(const Mixture *mixture, int c);
/* Returns the precision of a component times its mean, [d]. */
const double *mixture_information(const Mixture *mixture, int c);
/* Copies weight, mean and covariance of a mixture of the same size. */
void mixture_copy_parameters(const Mixture *from, const Mixture *to);
/* Makes a prepared copy of a mixture that has weight, mean and covariance. */
Status mixture_copy(Arena *memory, const Mixture *mixture, Mixture *out);
/* Returns the doubles of a packed mixture of at most this many components. mixture_pack packs weight, mean
 * and covariance as part of a fit, out[mixture_packed_size(d, components)]; mixture_unpack unpacks them, not
 * prepared. */
size_t mixture_packed_size(int d, int components);
void mixture_pack(const Mixture *mixture, double *out);
Status mixture_unpack(Arena *memory, int d, const double *values, Mixture *out);
/* Replaces the mixture of z by that of shift + scale z, prepared: shift[d], scale[d] > 0. */
Status mixture_transform(Mixture *mixture, const double *shift, const double *scale);
/* Replaces the mixture of theta = shift + scale z by that of z, prepared. */
Status mixture_standardise(Mixture *mixture, const double *shift, const double *scale);
/* Creates the law of x = axis theta, prepared, for orthonormal rows axis[m, d]. */
Status mixture_project(Arena *memory, const Mixture *mixture, int m, const double *axis, Mixture *out);
/* Returns whether it is one Gaussian N(m, I), to the last bit. */
bool mixture_is_white(const Mixture *mixture);
/* Computes mean[d] and covariance[d, d] of the whole mixture. */
void mixture_moments(const Mixture *mixture, double *mean, double *covariance);
/* Computes mean[d] and the standard deviation of each coordinate, deviation[d]. */
void mixture_spread(const Mixture *mixture, double *mean, double *deviation);

/* Draws N lanes, theta[d, N]; uses 1 uniform (which component), then d normals of each stream. */
void mixture_sample(const Mixture *mixture, RngLanes *rng, double *theta);

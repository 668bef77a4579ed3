/* A mixture of isotropic Gaussians. It needs no matrices, so d may be in the thousands, and any rotation of
 * it is again such a mixture.
 *
 * Letters: C components, N lanes, lane last: theta[d, N]. */
#pragma once

#include "core/tiling.h"
#include "model/denoiser/denoiser.h"
#include "model/denoiser/denoiser_chain.h"

enum { ISOTROPIC_COMPONENTS = 64 /* most components C */ };

typedef struct {
  int d, components; /* C */
  double weight[ISOTROPIC_COMPONENTS], variance[ISOTROPIC_COMPONENTS];
  double *mean; /* [C, d] */
} Isotropic;

/* Creates components with means of zero; the caller sets weights and variances. */
Status denoiser_isotropic_create(Arena *memory, int d, int components, Isotropic *out);
Status denoiser_isotropic_copy(Arena *memory, const Isotropic *from, Isotropic *out);
/* Draws N lanes, theta[d, N], from the same random numbers as mixture_sample. */
void denoiser_isotropic_sample(const Isotropic *mixture, RngLanes *rng, double *theta);
/* Computes mean[d] and variance[d] of each coordinate. */
void denoiser_isotropic_moments(const Isotropic *mixture, double *mean, double *variance);

/* Computes, for s = sqrt(signal) theta + sqrt(1 - signal) noise: log_density[N], without the factor (2
 * pi)^(-d/2), and score[d, N] at s[d, N]. Either may be NULL. */
void denoiser_isotropic_density(const Isotropic *mixture, double signal, int lanes, const double *s,
                                double *log_density, double *score);
/* Computes share[C, N], the weights of the components after the evidence b[d, N] and q[d]: weight times the
 * integral of N(x; m_c, v_c I) exp(b' x - sum q x^2 / 2), normalised, and the logarithms of their sums,
 * log_sum[N], which may be NULL. N <= CHUNK_LANES. */
void denoiser_isotropic_shares(const Isotropic *mixture, const double *q, int lanes, const double *b,
                               double *share, double *log_sum);
/* Finds the component with the largest weight times density at each point: component[N]. */
void denoiser_isotropic_nearest(const Isotropic *mixture, int lanes, const double *theta, int *component);

/* Replaces the mixture of theta = shift + scale z by that of z; shift[d]. */
void denoiser_isotropic_standardise(const double *shift, double scale, Isotropic *mixture);

/* Does the opposite: replaces the mixture of z by that of theta. */
void denoiser_isotropic_transform(const double *shift, double scale, Isotropic *mixture);

/* Creates the exact reverse chain, in the coordinates of theta. `mixture` must outlive it. */
Status denoiser_isotropic_chain(Arena *memory, const Isotropic *mixture, const ScheduleRule *rule,
                                Chain *out);
/* Returns the chain of another mixture that has the stages of `like`; shift and scale are left out. */
Chain denoiser_isotropic_chain_like(const Chain *like, const Isotropic *mixture);
/* Creates the denoiser for evidence that is diagonal and the same in all lanes (denoiser_diagonal.c),
 * standardised by the mean and by one scale for all directions. */
Status denoiser_diagonal_create(Arena *memory, const Isotropic *mixture, Denoiser *out);

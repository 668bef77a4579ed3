/* Several Gaussians per run, q = sum_j pi_j q_j with q_j = N(mu_j, B_j B_j'): vits_step.h moves each as if it
 * were alone, so each can settle in a different mode, whereas a single Gaussian would settle in one of the
 * modes or span them.
 *
 * They start as the mixture that expectation maximisation fits to draws from the prior, with covariances
 * divided by the weight of the log prior in U (potential.h); a single Gaussian starts with the prior's
 * moments.
 *
 * The weights maximise the evidence lower bound of q for fixed components (Jordan et al. 1999 for one
 * Gaussian; Jaakkola and Jordan 1998 for mixtures):
 *
 *     F(pi) = sum_j pi_j E_j[-U - log q],    E_j over q_j.
 *
 * F is concave in pi, and the step pi_j <- pi_j exp(E_j[-U - log q]), normalised, raises it (Blahut 1972,
 * Arimoto 1972). If the components do not overlap, the first step reaches the maximum: pi_j is proportional
 * to the exponential of component j's own bound. Two components that have settled in the same mode share its
 * weight. E_j is an average over pairs mu_j + B_j eps, mu_j - B_j eps, in which errors that are odd in eps
 * cancel.
 *
 * U needs the log density of the prior. A learned score does not tell how much mass lies in modes far apart,
 * so the mixture fitted to the prior's draws takes the place of the density.
 *
 * N lanes, lane last: lane n is component n % J of run n / J. */
#pragma once

#include "sampler/gradient/vits_step.h"

enum { VITS_COMPONENTS = 16 };

/* For one component, only d and components are set. */
typedef struct {
  int d, components; /* J */
  Mixture fitted; /* to draws from the prior */
  double *start_mean, *start_root, *start_inverse; /* [J, d], [J, d, d], [J, d, d]: mu, B, B^-1 */
  double *start_weight; /* [J] */
  /* Scratch. */
  double *factor; /* [d, d, n]: Cholesky factor of B B' */
  double *log_norm; /* [n]: -1/2 log det B B' */
  double *eps, *theta, *point; /* [d, n] */
  double *log_prior, *value; /* [n] */
  double *energy; /* [DRAWS, n]: -U at each draw */
  double *log_density; /* [DRAWS, J, n]: log q_j of lane n at the draws of component (j + k) % J, k < J */
  int *jitters; /* [n] */
} VitsMixture;

/* Creates the mixture for up to `capacity` lanes at once, a multiple of `components`. */
Status vits_mixture_create(Arena *memory, const SamplerSetup *setup, const Potential *potential,
                           int components, int capacity, VitsMixture *out);

/* Sets lanes 0 .. lanes - 1, which are whole runs, and their weight[lanes] to the start. */
void vits_mixture_start(const VitsMixture *mixture, const Potential *potential, int lanes, VitsGaussian q,
                        double *weight);

/* Computes weight[n] for the lanes of the potential's view, which holds whole runs with J draws each. Uses d
 * normals of every stream per pair. */
void vits_mixture_weigh(VitsMixture *mixture, Potential *potential, VitsGaussian q, RngLanes *rng,
                        double *weight, int64_t *fallbacks);

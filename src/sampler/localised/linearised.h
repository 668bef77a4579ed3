/* Stochastic localisation with rewards that are not Gaussian: Gaussian evidence in their place, by
 * expectation propagation (model/history/ep.h).
 *
 * The prior is known by its denoiser: mean D and covariance C of the posterior for evidence (b, Lambda). Each
 * such posterior is that of one Gaussian, of the precision C^-1 - Lambda and the vector C^-1 D - b, in the
 * prior's place. Expectation propagation under this Gaussian leads to the next evidence, until both agree;
 * with a Gaussian prior they do at once. What the evidence is wrong by then, weights can make good
 * (localised.c). */
#pragma once

#include "core/arena.h"
#include "model/denoiser/localisation.h"
#include "model/history/ep.h"
#include "model/history/irls.h"

/* n <= DENOISER_LANES lanes, lane last. */
typedef struct {
  Irls irls;
  Ep ep;
  int *lane_fallbacks; /* [n]: of the denoiser on the way, which are ignored */
  double *precision, *vector; /* [d, d, n], [d, n]: Lambda, b */
  double *basis, *eigenvalue; /* [d, d, n], [d, n]: Lambda's decomposition */
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: of the Gaussian in the prior's place */
  double *log_evidence, *scratch; /* [n], [d, d, n] */
} Linearised;

Status linearised_create(Arena *memory, int d, Linearised *out);

/* Finds the evidence for the lanes of the view, in the denoiser's coordinates, the same for every draw of a
 * run: fills basis, eigenvalue, precision and vector. Fallbacks are added to fallbacks[B]. */
void linearised_find(Linearised *self, Localisation *walk, const HistoryView *view, int64_t *fallbacks);
/* Computes out[n]: the log likelihood at draw[d, n], up to a constant of the run, without that evidence b'
 * x - x' Lambda x / 2. */
void linearised_log_ratio(Linearised *self, const HistoryView *view, const double *draw, double *out);

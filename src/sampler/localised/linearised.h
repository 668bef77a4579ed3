/* Stochastic localisation with rewards that are not Gaussian: the evidence is that of the likelihood
 * linearised where theta is thought to be, found again before every step.
 *
 * With g and Lambda the gradient and the negative Hessian of the log likelihood at z, its evidence there is
 * b(z) = Lambda(z) z + g(z), Lambda(z), and z is where it should be when it is its own denoised mean, z = D(b
 * + b(z), M + Lambda(z)); b and M hold only what the steps added, so that no observation counts twice. The
 * first z is looked for from the mode under the Gaussian with the prior's mean and covariance. As precision
 * is added z is known better and better and the linearisation becomes exact; what it was wrong by at first
 * stays, however many steps there are. */
#ifndef SAMPLER_LOCALISED_LINEARISED_H
#define SAMPLER_LOCALISED_LINEARISED_H

#include "core/arena.h"
#include "model/denoiser/localisation.h"
#include "model/history/irls.h"

/* n <= DENOISER_LANES lanes, lane last. */
typedef struct {
  Irls irls;
  bool *settled; /* [n] */
  int *lane_fallbacks; /* [n]: of a pass */
  double *z; /* [d, n]: where the likelihood is linearised */
  double *added; /* [d, n]: b */
  double *gradient, *precision; /* [d, n], [d, d, n]: g, Lambda */
  double *vector, *basis, *eigenvalue; /* [d, n], [d, d, n], [d, n]: b + b(z) and Lambda's decomposition */
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: of the Gaussian to start from */
} Linearised;

Status linearised_create(Arena *memory, int d, Linearised *out);

/* Draws for the lanes of the view, z[d, n], whose coordinates are those of the denoiser. Fallbacks are
 * added to lane_fallbacks[n] and fallbacks[B], and one for each lane and step in which z did not settle. */
void linearised_draw(Linearised *self, Localisation *walk, const HistoryView *view, RngLanes *rng, double *z,
                     int *lane_fallbacks, int64_t *fallbacks);

/* Finds the same evidence for every draw of a run, at z, the fixed point with nothing added: fills basis,
 * eigenvalue, precision and vector. A point that has not settled is not counted. */
void linearised_find(Linearised *self, Localisation *walk, const HistoryView *view, int64_t *fallbacks);
/* Computes out[n]: the log likelihood at draw[d, n], up to a constant of the run, without that evidence b'
 * x - x' M x / 2. */
void linearised_log_ratio(Linearised *self, const HistoryView *view, const double *draw, double *out);

#endif

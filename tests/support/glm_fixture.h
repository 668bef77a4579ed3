/* Observations under generalised linear models, and the Laplace approximation of their posterior by a dense
 * Newton iteration straight from the definitions. */
#pragma once

#include "sampler_fixture.h"

enum { D_MOST = 5, ROWS_MOST = 80, SQUARE_MOST = D_MOST * D_MOST };

/* ---- data: rows of one run */

typedef struct {
  int d, n;
  Likelihood likelihood;
  double phi[ROWS_MOST][D_MOST], y[ROWS_MOST];
} Rows;

/* Returns the likelihood of that name. */
Likelihood glm(const char *name);

/* Makes up n rows with features of about this length and the rewards of some theta; a function of `run`. */
Rows make_rows(const Likelihood *likelihood, int d, int n, double length, uint32_t run);

/* Returns the history of rows[runs], which have the same d and n; `likelihood` outlives it. */
History make_history(Arena *memory, int runs, const Rows *rows, const Likelihood *likelihood);

/* ---- dense reference, straight from the definitions */

/* Return the log probability of y at u = phi' theta (without log y!), and its mean. */
double log_reward(const Rows *rows, double y, double u);
double mean_reward(const Rows *rows, double u);

/* Returns phi' theta of row l. */
double predicted(const Rows *rows, int l, const double *theta);

/* Returns the sum of log_reward over the rows. */
double log_likelihood(const Rows *rows, const double *theta);

/* Returns the log density of N(mu, precision^-1) at theta, without its constant. */
double log_normal(int d, const double *theta, const double *mu, const double *precision);

/* Computes gradient and negative Hessian of log N(theta; mu, P^-1) + log likelihood at shift + scale
 * theta. */
void derivatives(const Rows *rows, const double *shift, const double *scale, const double *mu,
                 const double *prior, const double *theta, double *gradient, double *hessian);

extern const double ZEROS[D_MOST], ONES[D_MOST];

/* Takes Newton steps, cut to length 1/2, from mu: the target is log-concave, so they arrive. mode[d] and
 * covariance[d, d] of the Laplace approximation; returns log det of its precision. */
double newton(const Rows *rows, const double *shift, const double *scale, const double *mu,
              const double *prior, double *mode, double *covariance);

/* Returns the Laplace approximation of every component of a mixture prior; weights by the Laplace
 * evidence. */
FixturePosterior laplace_posterior(const Mixture *prior, const Rows *rows);

/* Computes mean[2] and covariance[2, 2] of the posterior under a mixture of at most four Gaussians, by the
 * rectangle rule on [-9, 9]^2; returns the log marginal likelihood (without log y!). */
double glm_quadrature(const Mixture *prior, const Rows *rows, double *mean, double *covariance);

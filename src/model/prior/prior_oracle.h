/* A prior that is known by its denoising oracle alone: D(x) = E[x0 | x] for x = x0 + sigma z, sigma_min <=
 * sigma <= sigma_max (Bruna and Han 2024). By Tweedie's formula (Efron 2011) the score of the noisy law is (D
 * - x) / sigma^2, so the oracle makes a reverse chain; its Jacobian J = dD / dx is Cov[x0 | x] / sigma^2, and
 * its own transpose. Nothing is fitted or stored. */
#pragma once

#include "model/prior/prior.h"

/* What answers: a function of the caller's, or another process. Arrays are row-major, x[m, d], m <= batch. */
typedef struct Oracle Oracle;
struct Oracle {
  int d, batch; /* most rows of a call, at least 2 */
  double *x, *v, *answer; /* [batch, d]: where a call finds its arguments, and leaves its results */
  void *context;
  /* Computes answer[m, d] = D(x) at noise sigma, that of stage t. Returns 0, or another number on failure:
   * the draws that needed it are then not finite, and count as numerical fallbacks. */
  int (*mean)(const Oracle *self, int m, int t, double sigma);
  /* OPTIONAL. Computes answer[m, d] = J v likewise. NULL: products are central differences over a small
   * share of the noise, with two rows of `mean` each. */
  int (*product)(const Oracle *self, int m, int t, double sigma);
};

/* Stages whose noises lie between the two, evenly spaced in logarithm. */
typedef struct {
  int stages;
  double sigma_min, sigma_max;
} OracleRange;

/* Allocates x, v and answer of an oracle whose d and batch are set. */
Status prior_oracle_buffers(Arena *memory, Oracle *oracle);

/* Creates a prior with an oracle that is ready to be asked, which is copied. A few draws from its chain tell
 * the coordinates of the chain: their mean and standard deviation. Returns STATUS_INPUT if the range is not
 * 0 < sigma_min < sigma_max, or if they are not finite. */
Status prior_oracle(Arena *memory, const Oracle *oracle, const OracleRange *range, Prior *out);

/* The same in functions of the caller's, for row-major arrays. They return 0, or another number on failure.
 */
typedef int GivenOracle(void *context, int m, int d, const double *x, double sigma, double *mean);
typedef int GivenProduct(void *context, int m, int d, const double *x, double sigma, const double *v,
                         double *product);
typedef struct {
  GivenOracle *mean;
  GivenProduct *product; /* NULL: differences */
  void *context;
} OracleFunctions;

/* Creates a prior with these functions, which are copied. */
Status prior_oracle_given(Arena *memory, int d, const OracleFunctions *functions, const OracleRange *range,
                          Prior *out);

/* Computes, for m noisy samples x[m, d] of stage t = 1 .. T, mean[m, d] = E[x_0 | x_t = x], where x_t =
 * sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise; returns as above. */
typedef int GivenMean(void *context, int m, int d, const double *x, int t, double *mean);
/* Creates a prior whose chain has these stages, alpha_bar[stages], which fall from below 1 to above 0. theta
 * is used as it is, so it should be on the scale of 1. */
Status prior_score(Arena *memory, int d, int stages, const double *alpha_bar, GivenMean *function,
                   void *context, Prior *out);

/* An oracle in Python: a callable F(x[m, d], sigma) -> D[m, d], with F.jvp(x, sigma, v) -> J v if there is
 * one, in a process that lives as long as the prior (prior_oracle_process.c). The texts are not owned. */
typedef struct {
  const char *module, *callable;
  int d, batch;
  double limit; /* seconds that a call may take */
  OracleRange range;
} OracleProcess;

/* Creates a prior with a process of its own, which ends when `memory` is freed. What goes wrong in a call
 * does not show in draws but in prior_check; the thread's tick (core_tick.h) can stop a call. Errors:
 * STATUS_INPUT with a sentence about the callable, STATUS_STOPPED. */
Status prior_oracle_process(Arena *memory, const OracleProcess *process, Prior *out);
/* Checks that the callable can be found. */
Status prior_oracle_process_check(const OracleProcess *process);

/* Returns what is known of such a prior before there is one: it has a name and a chain. */
const PriorOps *prior_oracle_family(void);

/* The reverse chain of a prior with each stage conditioned on the history, where the clean sample s_0 given
 * the state s_t is approximated by the Gaussian N(s0_hat, C_t) of diffusion_moments.h: "joint moments" (Boys
 * et al. 2023, Tweedie moment projected diffusions).
 *
 * With the evidence (Lambda, b) of a conjugate likelihood, s_0 given s_t and the history is N(m, V), V =
 * (C_t^-1 + Lambda)^-1 and m = V (C_t^-1 s0_hat + b), and since s_{t-1} given s_0 and s_t is N(w0 s_0 + wt
 * s_t, beta_tilde_t I),
 *
 *   s_{t-1} ~ N(w0 m + wt s_t, beta_tilde_t I + w0^2 V).
 *
 * The last stage, w0 = 1 and wt = beta_tilde_1 = 0, draws from N(m, V). The start s_T is the same step from
 * stage T + 1, with w0 = sqrt(alpha_bar_T), wt = 0, and 1 - alpha_bar_T in place of beta_tilde. For a
 * Gaussian prior with its exact chain all this is exact, for any number of stages. With any other likelihood
 * (Lambda, b) is the evidence at the mode, which IRLS finds for each stage and lane, so N(m, V) is the
 * Laplace approximation.
 *
 * The algebra works on the whitened clean sample: C_t = R R', R = Q diag(r), s_0 = s0_hat + R x with x ~ N(0,
 * I). Given the history, x has precision M = I + R' Lambda R and mean u = M^-1 R' (b - Lambda s0_hat); no
 * covariance is ever inverted, so C_t and Lambda may be near singular. Likewise the stage without history,
 * N(w0 s0_hat + wt s_t, beta_tilde I + w0^2 C_t), is whitened by Q diag(g), g^2 = beta_tilde + w0^2 r^2; in
 * these coordinates the conditioned stage is N(D u, (I - D^2) + D M^-1 D), D = w0 r / g. What is stored of M
 * = L L' is W = L^-1. */
#pragma once

#include "io/config/config_rows.h"
#include "model/history/irls.h"
#include "sampler/diffusion/diffusion_moments.h"
#include "sampler/sampler.h"

/* n <= capacity lanes, lane last, in the chain's coordinates. */
typedef struct {
  int d, capacity;
  const Chain *chain;
  DenoisedMoments moments;

  const HistoryView *view; /* the current lanes */
  bool whole; /* their evidence is the log likelihood itself, the same at all stages */
  int known; /* the stage at which their Q and r were last computed; 0: none */
  double *precision, *vector; /* [d, d, n], [d, n]: Lambda, b */

  /* State of the lanes between calls; one block, so that lanes can be copied. */
  double *lane_rows; /* [lane_row_count(d), n] */
  double *s; /* [d, n]: s_t */
  double *denoised; /* [d, n]: s0_hat */
  double *basis, *deviation; /* [d, d, n], [d, n]: Q, r */
  double *factor; /* [d, d, n]: W */
  double *shift; /* [d, n]: u */
  double *log_marginal; /* [n] */

  double *matrix; /* [d, d, n] */
  double *column; /* [d, n] */
  double *jitters; /* [n] */
  double *vectors; /* scratch for a vector of lanes */
  Irls irls; /* here and below: for likelihoods that are not conjugate */
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: C_t^-1, C_t^-1 s0_hat */
} JointChain;

/* The key `covariance`, for the options of a sampler. */
#define JOINT_COVARIANCE_KEY                                                                                 \
  WORD("covariance", "jacobian",                                                                             \
       "covariance of the clean sample given a state: by the jacobian of the noise predictor, or by the "    \
       "training loss"),                                                                                     \
      .words = "jacobian loss"

/* Creates a chain for up to `capacity` lanes. Returns STATUS_INPUT, with a sentence, if `from_loss` is set
 * and the chain has no loss, or if its matrices would be too large. */
Status joint_chain_create(Arena *memory, const SamplerSetup *setup, bool from_loss, int capacity,
                          JointChain *out);

/* Starts over with the lanes of `view`, which must outlive the steps. */
void joint_chain_begin(JointChain *self, const HistoryView *view);

/* Conditions stage t = T + 1 .. 1: computes the law of s_0 given s_t and the history, or for t = T + 1 given
 * the history alone. Returns whether C_t was computed again. Here and below fallbacks are counted as in
 * irls_solve. */
bool joint_chain_condition(JointChain *self, int t, int64_t *fallbacks);
/* Computes log_marginal[n], the log marginal likelihood at s_t: the log of the integral of N(s_0; s0_hat,
 * C_t) times the likelihood (its Laplace approximation if that is not conjugate), up to a constant of the
 * history. Called after joint_chain_condition. */
void joint_chain_marginal(JointChain *self);
/* Replaces s_t by a draw of s_{t-1}, from the standard normals z[d, n]. log_ratio[n] (or NULL) becomes the
 * log of the density of s_{t-1} given s_t without the history, over that with it. Called once after
 * joint_chain_condition. */
void joint_chain_draw(JointChain *self, int t, const double *z, double *log_ratio, int64_t *fallbacks);

/* Computes out[n]: the log likelihood at s, up to the constant of joint_chain_marginal. */
void joint_chain_log_likelihood(JointChain *self, const double *s, double *out);
/* Copies lane from[n] to lane n. */
void joint_chain_copy_lanes(JointChain *self, const int *from);

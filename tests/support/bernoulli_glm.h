/* Observation 1 of the task bernoulli_glm of a public benchmark of simulation-based inference (Lueckmann et
 * al. 2021, sbi-benchmark/sbibm, MIT licence): 100 clicks in 10 dimensions, and the moments of the posterior,
 * by importance sampling (effective size 286 789, standard errors up to 0.0012) and by expectation
 * propagation at its fixed point, both from NumPy programs that share no code with this one. */
#ifndef TESTS_BERNOULLI_GLM_H
#define TESTS_BERNOULLI_GLM_H

#include "sampler_fixture.h"

enum { GLM_D = 10, GLM_ROWS = 100 };

static const double GLM_STIMULUS[GLM_ROWS] = {
    0.496714145,   -0.138264298, 0.647688568,   1.5230298,     -0.234153375, -0.234136954, 1.57921278,
    0.767434716,   -0.469474375, 0.542560041,   -0.463417679,  -0.465729743, 0.241962269,  -1.91328025,
    -1.72491789,   -0.562287509, -1.01283109,   0.31424734,    -0.908024073, -1.41230369,  1.46564877,
    -0.2257763,    0.0675282031, -1.42474818,   -0.544382751,  0.11092259,   -1.15099359,  0.37569803,
    -0.600638688,  -0.291693747, -0.601706624,  1.85227823,    -0.013497225, -1.05771089,  0.822544932,
    -1.22084367,   0.208863601,  -1.95967007,   -1.32818604,   0.196861237,  0.738466561,  0.171368286,
    -0.115648285,  -0.301103681, -1.47852194,   -0.719844222,  -0.460638762, 1.05712223,   0.343618304,
    -1.76304018,   0.324083984,  -0.385082275,  -0.676922023,  0.611676276,  1.03099954,   0.931280136,
    -0.839217544,  -0.309212387, 0.331263423,   0.975545108,   -0.479174227, -0.185658976, -1.10633492,
    -1.19620657,   0.812525809,  1.35624003,    -0.0720101222, 1.00353289,   0.361636013,  -0.645119727,
    0.361395597,   1.53803658,   -0.0358260386, 1.56464362,    -2.61974502,  0.821902514,  0.0870470703,
    -0.299007356,  0.0917607769, -1.98756886,   -0.21967189,   0.357112557,  1.47789407,   -0.518270195,
    -0.808493614,  -0.501757026, 0.915402114,   0.328751117,   -0.529760182, 0.513267457,  0.0970775485,
    0.968644977,   -0.70205307,  -0.32766214,   -0.392108142,  -1.46351492,  0.296120286,  0.261055261,
    0.00511345686, -0.234587133};
static const char GLM_CLICKS[] = "11011111111000000111111100011101111000001111000011"
                                 "10001111001100011111001110000000111000111110000111";

static const double GLM_MEAN[GLM_D] = {0.8864,  1.9775,  3.2902,  2.5197,  0.3154,
                                       -1.6468, -2.4296, -1.5566, -0.2802, 0.3226};
static const double GLM_SD[GLM_D] = {0.3999, 0.4662, 0.6392, 0.5217, 0.3106,
                                     0.3983, 0.5032, 0.4194, 0.3345, 0.3891};
static const double GLM_EP_MEAN[GLM_D] = {0.88664,  1.97935,  3.29147,  2.52101,  0.31547,
                                          -1.64641, -2.43111, -1.55750, -0.28121, 0.32251};
static const double GLM_EP_SD[GLM_D] = {0.39466, 0.45269, 0.61162, 0.50206, 0.30935,
                                        0.38651, 0.48440, 0.40775, 0.33227, 0.38608};
static const double GLM_LOG_EVIDENCE = -28.4164, GLM_EP_LOG_EVIDENCE = -28.4486;

/* Fills in precision[D, D] of the prior, whose mean is 0: variance 2 of the first entry, and F'F of the
 * others, F = B B + diag(sqrt(i / 9)), B = I with -1 below the diagonal. */
static inline void glm_prior_precision(double *precision) {
  double f[9][9] = {{0}};
  for (int i = 0; i < 9; i++) {
    f[i][i] = 1 + sqrt(i / 9.0);
    if (i > 0) f[i][i - 1] = -2;
    if (i > 1) f[i][i - 2] = 1;
  }
  memset(precision, 0, GLM_D * GLM_D * sizeof *precision);
  precision[0] = 0.5;
  for (int i = 0; i < 9; i++)
    for (int j = 0; j < 9; j++)
      for (int k = 0; k < 9; k++) precision[(i + 1) * GLM_D + j + 1] += f[k][i] * f[k][j];
}

/* Computes row l: 1, then the stimulus at l and before; returns its click. */
static inline double glm_row(int l, double phi[GLM_D]) {
  phi[0] = 1;
  for (int k = 0; k < 9; k++) phi[k + 1] = l >= k ? GLM_STIMULUS[l - k] : 0;
  return GLM_CLICKS[l] - '0';
}

/* Returns the history, `runs` times side by side; `likelihood` is logistic and outlives it. */
static inline History glm_history(Arena *memory, int runs, const Likelihood *likelihood) {
  History history;
  double *phi = (double *)fixture_new((size_t)(GLM_D * runs), sizeof *phi),
         *y = (double *)fixture_new((size_t)runs, sizeof *y), one[GLM_D];
  ASSERT(history_create(memory, GLM_D, runs, likelihood, &history) == STATUS_OK);
  ASSERT(history_reserve(&history, GLM_ROWS) == STATUS_OK);
  for (int l = 0; l < GLM_ROWS; l++) {
    for (int n = 0; n < runs; n++) {
      y[n] = glm_row(l, one);
      for (int i = 0; i < GLM_D; i++) phi[i * runs + n] = one[i];
    }
    history_record(&history, NULL, phi, y);
  }
  free(phi);
  free(y);
  return history;
}

#endif

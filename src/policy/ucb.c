/* Upper confidence bounds: the arm with the largest phi' theta_hat + width |phi|_H^-1, where theta_hat is the
 * regularised estimate of ridge.h and H = I + Lambda.
 *
 * The width is that of OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011, Theorem 2, second form) over the
 * horizon n, with lambda = sigma^2, delta = 1 / n, L the length of the longest feature vector, and S =
 * sqrt(d) as the bound on |theta*|. In units of sigma: |theta - theta*|_H is at most S + sqrt(d log((1 + n
 * L^2 / sigma^2) n)).
 *
 * LinUCB is this index with Gaussian rewards. GLM-UCB (Filippi et al. 2010, and with this index Li, Lu and
 * Zhou 2017) uses the Fisher information at the estimate for Lambda, as Faury et al. (2020, Improved
 * optimistic algorithms for logistic bandits) do, so that no lower bound on the slope of the mean function is
 * needed, and sigma = 1. */
#include "core/linalg/linalg.h"
#include "io/config/config_rows.h"
#include "policy/policies.h"
#include "policy/ridge.h"
#include "problem/world.h"
#include "rule/ties.h"

#include <math.h>

typedef struct {
  Ridge ridge;
  double *width; /* [B] */
  double *phi; /* [d, B] */
  double *bound; /* [K, B], upper confidence bounds */
} Ucb;

static Status ucb_policy_create(Policy *self) {
  Arena *memory = self->memory;
  Ucb *state;
  size_t runs = (size_t)self->setup.runs;
  ALLOCATE(memory, state, 1);
  self->state = state;
  ALLOCATE(memory, state->width, runs);
  ALLOCATE(memory, state->bound, (size_t)self->setup.problem->arms * runs);
  ALLOCATE(memory, state->phi, (size_t)self->setup.problem->d * runs);
  return ridge_create(self, &state->ridge);
}

static Status ucb_policy_choose(Policy *self, const World *world, const History *history, double *probability,
                                int *arm, int64_t *fallbacks) {
  Ucb *state = self->state;
  const Problem *problem = world->problem;
  const RngLanes ties = world_streams(world, RNG_TIE);
  const int d = problem->d, runs = world->runs;
  ridge_update(&state->ridge, history, fallbacks);
  if (world->round == 1 || problem->resample_arms) { /* the OFUL width, scaled by the option `width` */
    const double scale = config_real(self->setup.options, "width"), rounds = problem->rounds,
                 sigma = likelihood_noise(&problem->likelihood);
    double *width = state->width;
    world_longest_squares(world, width); /* L^2 */
    for (int b = 0; b < runs; b++)
      width[b] = scale * (sqrt(d) + sqrt(d * log((1 + rounds * width[b] / (sigma * sigma)) * rounds)));
  }
  for (int k = 0; k < problem->arms; k++) {
    const double *features = world->features + (size_t)k * (size_t)d * (size_t)runs;
    for (int i = 0; i < d * runs; i++) state->phi[i] = features[i];
    linalg_factor_forward(d, runs, state->ridge.cholesky, state->phi); /* |L^-1 phi| = |phi|_H^-1 */
    for (int b = 0; b < runs; b++) {
      double mean = 0, square = 0;
      for (int i = 0; i < d; i++) {
        mean += features[i * runs + b] * state->ridge.theta[i * runs + b];
        square += state->phi[i * runs + b] * state->phi[i * runs + b];
      }
      state->bound[k * runs + b] = mean + state->width[b] * sqrt(square);
    }
  }
  for (int b = 0; b < runs; b++) {
    arms_withhold(world_arms(world), b, (size_t)runs, state->bound + b);
    arm[b] = ties_best_arm(&ties, (uint32_t)b, problem->arms, state->bound + b, (size_t)runs);
    if (probability)
      ties_share(problem->arms, state->bound + b, (size_t)runs, probability + b * problem->arms);
  }
  return STATUS_OK;
}

static const ConfigKey keys[] = {
    {REAL("width", 0, 1e6, "1", "factor on the OFUL confidence width")}, POLICY_DISCOUNT_KEY, {.name = NULL}};

const PolicyOps policy_linucb = {.name = "linucb",
                                 .summary = "upper confidence bounds of ridge regression",
                                 .reference = "Abbasi-Yadkori et al. 2011 (OFUL)",
                                 .conjugate_only = true,
                                 .one_theta = true,
                                 .keys = keys,
                                 .create = ucb_policy_create,
                                 .choose = ucb_policy_choose,
                                 .weighs = true};

const PolicyOps policy_glm_ucb = {.name = "glm_ucb",
                                  .summary = "upper confidence bounds of the regularised estimate by IRLS",
                                  .reference = "Filippi et al. 2010; Li, Lu and Zhou 2017",
                                  .one_theta = true,
                                  .keys = keys,
                                  .create = ucb_policy_create,
                                  .choose = ucb_policy_choose,
                                  .weighs = true};

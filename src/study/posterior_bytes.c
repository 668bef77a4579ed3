/* What a task of a posterior study holds at once, for `thompson plan`. Every array that is large somewhere is
 * counted, by its size in the file that creates it; small ones are not. */
#include "core/chunk.h"
#include "core/linalg/linalg_lanes.h"
#include "model/prior/prior.h"
#include "study/posterior_internal.h"

#include <math.h>

/* Returns whether priors with these components have matrices (prior_isotropic). */
static bool posterior_has_matrices(const Problem *problem) {
  const Isotropic *isotropic = &problem->theta.isotropic;
  return isotropic->d > 0 ? prior_isotropic_has_matrices(isotropic) : problem->theta.has_mixture;
}

/* Returns the numbers in the matrices of both priors: covariances, their factors and, for the denoiser, the
 * same again, with what their creation takes. */
static double posterior_numbers_of_priors(const Problem *problem) {
  const double square = (double)problem->d * problem->d;
  const double components =
      problem->theta.has_mixture ? problem->theta.mixture.components : problem->theta.isotropic.components;
  return posterior_has_matrices(problem) ? 2 * 6 * components * square : 0;
}

/* Returns the numbers in the clouds: draws of the sampler, reference draws and others for the floor, of all
 * runs and once more of one. */
static double posterior_numbers_of_clouds(const Study *study, const Config *setting, const Problem *problem,
                                          double runs) {
  const int needs = study_posterior_needs(study, false);
  const double exact = !!(needs & POSTERIOR_NEEDS_REFERENCE) + !!(needs & POSTERIOR_NEEDS_FLOOR),
               draws = study_posterior_draws(setting) + exact * study_posterior_reference_draws(setting);
  return problem->d * draws * (runs + 1);
}

/* Returns the numbers in what one sampler needs for a chunk of draws: the directions that are seen, and
 * matrices in as many dimensions as are drawn, unless none are needed. */
static double posterior_numbers_of_sampler(const Config *setting, const Problem *problem) {
  enum { MATRICES = 4 };
  const double d = problem->d, seen = fmin(d, study_posterior_last_size(setting, problem)),
               drawn =
                   problem->theta.isotropic.d > 0 ? fmin(d, seen + problem->theta.isotropic.components) : d,
               lanes = drawn > LINALG_BATCH_DIMENSION ? 1 : CHUNK_LANES;
  return 4 * seen * d + MATRICES * drawn * drawn * lanes;
}

double study_posterior_bytes(const Study *study, const Config *setting, const Problem *problem) {
  const double square = (double)problem->d * problem->d,
               runs = study_posterior_together(
                   problem->d, (int)fmin((double)study->runs.block, (double)study->runs.most));
  /* The evidence of each run, and that of one run twice more, with its root (HistoryDensity). */
  const double evidence = square * (runs + 2);
  return sizeof(double) *
         (evidence + posterior_numbers_of_clouds(study, setting, problem, runs) +
          posterior_numbers_of_priors(problem) + posterior_numbers_of_sampler(setting, problem));
}

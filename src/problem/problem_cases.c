/* Posteriors from a file: each run is a case with a prior, observations, noise and, if there is one, a
 * reference of its own, so that anybody's benchmark is a file. The arms of a case are its observations, which
 * a history has in order. */
#include "problem/problem_cases.h"

#include "core/linalg/linalg.h"

#include "problem/problems.h"

#include <math.h>
#include <string.h>

typedef struct {
  CaseFile file;
  int number; /* of the case that the problem is at */
  LikelihoodOps shares; /* of clicks */
} Cases;

const CaseFile *problem_cases_file(const Problem *problem) {
  return problem->ops->take ? &((const Cases *)problem->state)->file : NULL;
}

int problem_cases_number(const Problem *problem) { return ((const Cases *)problem->state)->number; }

static bool cases_admit_shares(double y) { return y >= 0 && y <= 1; }

/* Sets the likelihood that the file names. Rewards that are shares of clicks leave out what is quicker for
 * whole clicks (likelihood_logistic). */
static Status cases_set_likelihood(Problem *self, const Config *config) {
  Cases *cases = self->state;
  const CaseFile *file = &cases->file;
  const bool squared = strcmp(file->likelihood, likelihood_squared.name) == 0;
  const LikelihoodOps *ops = squared ? &likelihood_squared : likelihood_find(file->likelihood);
  bool is_default;
  if (!ops)
    return status_set(STATUS_INPUT,
                      "%s: attribute likelihood is '%s'; allowed: gaussian | logistic | poisson | squared",
                      file->path, file->likelihood);
  TRY(config_is_default(config, "likelihood", &is_default));
  if (!is_default && self->likelihood.ops != ops)
    return status_set(STATUS_INPUT, "likelihood: %s, but the likelihood of %s is %s; leave the key out",
                      self->likelihood.ops->name, file->path, ops->name);
  cases->shares = likelihood_logistic;
  cases->shares.rewards = "from 0 to 1";
  cases->shares.admits = cases_admit_shares;
  self->likelihood.ops = ops;
  if (strcmp(ops->name, cases->shares.name) == 0) self->likelihood.ops = &cases->shares;
  return STATUS_OK;
}

/* Checks what the reader of the file cannot know: rewards, noise, and covariances. */
static Status cases_check(const CaseFile *file, const Likelihood *likelihood) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)file->d;
  double *factor;
  ALLOCATE(&scratch, factor, d * d);
  for (int number = 0; number < file->count; number++) {
    const Case *one = &file->cases[number];
    for (int k = 0; k < one->rows; k++)
      if (!likelihood->ops->admits(one->y[k]))
        return status_set(STATUS_INPUT,
                          "%s: y[%d, %d] (counted from 0) is %g; with likelihood %s it must be %s",
                          file->path, number, k, one->y[k], file->likelihood, likelihood->ops->rewards);
    if (likelihood_has_noise(likelihood) != (one->noise > 0))
      return status_set(STATUS_INPUT, "%s: noise(case) %s with likelihood %s", file->path,
                        one->noise > 0 ? "has no meaning" : "is needed", file->likelihood);
    if (one->exposure > 0 && !likelihood_has_exposure(likelihood))
      return status_set(STATUS_INPUT, "%s: exposure(case) has no meaning with likelihood %s", file->path,
                        file->likelihood);
    const int matrices = one->covariance ? one->components : 0;
    for (int c = 0; c < matrices; c++) {
      memcpy(factor, one->covariance + (size_t)c * d * d, d * d * sizeof *factor);
      if (!linalg_try_cholesky(file->d, factor))
        return status_set(STATUS_INPUT,
                          "%s: the covariance of case %d, component %d (counted from 0, without those of "
                          "weight 0) is not positive definite",
                          file->path, number, c);
    }
  }
  return STATUS_OK;
}

/* Makes the prior of a case the distribution of theta*. */
static Status cases_set_prior(Problem *self, const Case *one) {
  const size_t d = (size_t)self->d, count = (size_t)one->components;
  ThetaSource *theta = &self->theta;
  Arena *memory = &theta->memory;
  problem_theta_destroy(theta);
  *theta = (ThetaSource){.ops = problem_theta_find("mixture"), .d = self->d, .seed = self->seed};
  if (one->variance && one->components <= ISOTROPIC_COMPONENTS) {
    TRY(denoiser_isotropic_create(memory, self->d, one->components, &theta->isotropic));
    memcpy(theta->isotropic.weight, one->weight, count * sizeof *one->weight);
    memcpy(theta->isotropic.variance, one->variance, count * sizeof *one->variance);
    memcpy(theta->isotropic.mean, one->mean, count * d * sizeof *one->mean);
    return STATUS_OK;
  }
  TRY(mixture_create(memory, self->d, one->components, &theta->mixture));
  memcpy(theta->mixture.weight, one->weight, count * sizeof *one->weight);
  memcpy(theta->mixture.mean, one->mean, count * d * sizeof *one->mean);
  if (one->covariance)
    memcpy(theta->mixture.covariance, one->covariance, count * d * d * sizeof *one->covariance);
  else
    for (size_t c = 0; c < count; c++)
      for (size_t i = 0; i < d; i++) theta->mixture.covariance[(c * d + i) * d + i] = one->variance[c];
  theta->has_mixture = true;
  return mixture_prepare(&theta->mixture);
}

static Status cases_take(Problem *self, uint32_t run) {
  Cases *cases = self->state;
  const CaseFile *file = &cases->file;
  ASSERT(run < (uint32_t)file->count);
  const Case *one = &file->cases[run];
  cases->number = (int)run;
  self->arms = one->rows;
  if (one->noise > 0) self->likelihood.noise = one->noise;
  if (one->exposure > 0) self->likelihood.log_exposure = log(one->exposure);
  const Status status = cases_set_prior(self, one);
  return status == STATUS_INPUT ? status_prefix(status, "%s: case %u (counted from 0): ", file->path, run)
                                : status;
}

static Status cases_create(Problem *self, const Config *config) {
  Cases *cases = self->state;
  const char *path = config_text(config, "problem.file");
  if (!config_is(config, "prior.family", "samples"))
    return status_set(STATUS_INPUT,
                      "prior.family: %s, but with problem.family: cases each case has its own prior; leave "
                      "prior.family out",
                      config_text(config, "prior.family"));
  if (!config_is(config, "problem.noise", "auto"))
    return status_set(STATUS_INPUT,
                      "problem.noise: %g, but the noise of cases is in their file; leave it out",
                      config_real(config, "problem.noise"));
  TRY(io_cases_read(&self->memory, path, &cases->file));
  if (self->d > 0 && self->d != cases->file.d)
    return status_set(STATUS_INPUT, "problem.dimension: %d, but the cases of %s have %d", self->d, path,
                      cases->file.d);
  self->d = cases->file.d;
  self->cases = cases->file.count;
  self->arms_in_order = true;
  self->resample_arms = false;
  TRY(cases_set_likelihood(self, config));
  TRY(cases_check(&cases->file, &self->likelihood));
  return cases_take(self, 0);
}

/* Replaces theta* of the run by that of the file, if it has one. */
static void cases_set_theta(const Problem *self, RngLanes rng, double *theta) {
  const Case *one = &problem_cases_file(self)->cases[problem_cases_number(self)];
  ASSERT(rng.lanes == 1);
  if (one->theta) memcpy(theta, one->theta, (size_t)self->d * sizeof *theta);
}

static void cases_set_features(World *world) {
  const Problem *self = world->problem;
  const Case *one = &problem_cases_file(self)->cases[problem_cases_number(self)];
  ASSERT(world->runs == 1);
  memcpy(world->features, one->x, (size_t)one->rows * (size_t)self->d * sizeof *one->x);
}

static void cases_set_rewards(World *world) {
  const Problem *self = world->problem;
  const Case *one = &problem_cases_file(self)->cases[problem_cases_number(self)];
  memcpy(world->mean, one->y, (size_t)one->rows * sizeof *one->y);
}

const ProblemOps problem_cases = {.name = "cases",
                                  .summary = "posteriors from a file, one for each run, with a prior, "
                                             "observations and perhaps a reference of their own",
                                  .reference = "anybody's benchmark (data/make_cases.py)",
                                  .keys = "problem.file",
                                  .state_size = sizeof(Cases),
                                  .needs_file = true,
                                  .rewards_of = REWARDS_OF_OBSERVATIONS,
                                  .take = cases_take,
                                  .create = cases_create,
                                  .transform = cases_set_theta,
                                  .features = cases_set_features,
                                  .rewards = cases_set_rewards};

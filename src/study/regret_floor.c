#include "study/regret_floor.h"

#include "core/special.h"

#include <math.h>

static Status regret_floor_refuse(const char *why) {
  return status_set(STATUS_INPUT, "key 'metrics': regret_floor is a bound for %s", why);
}

Status regret_floor_check(const Problem *problem) {
  const ThetaSource *theta = &problem->theta;
  const bool enumerated = theta->ops->prior && problem->d <= DENOISER_MOST_VERTICES;
  if (!likelihood_is_conjugate(&problem->likelihood)) return regret_floor_refuse("Gaussian rewards only");
  if (problem->quadratic)
    return regret_floor_refuse("rewards that are linear in theta*; problem.reward is quadratic");
  if (problem->drift_every > 0) return regret_floor_refuse("a fixed theta*; with problem.drift it changes");
  if (problem->per_arm) return regret_floor_refuse("one theta* for all arms; problem.unknown is per_arm");
  if (problem->ops->arms_of_theta)
    return regret_floor_refuse("arms that reveal nothing about theta*; those of this problem.family do");
  if (problem->ops->transform ||
      !(theta->set.n > 0 || theta->has_mixture || problem_theta_is_planar(theta->ops) || enumerated))
    return regret_floor_refuse(
        "a theta* whose distribution is known: a mixture, a density in the plane, or a finite set");
  return STATUS_OK;
}

/* ---- what the oracle believes */

static Status regret_floor_create_set(Arena *memory, const Problem *problem, uint32_t replicate,
                                      RegretFloor *self) {
  const int d = self->d, n = self->members = problem_theta_test_size(&problem->theta);
  ALLOCATE(memory, self->set, (size_t)d * (size_t)n);
  ALLOCATE_ARRAYS(memory, n, self->square, self->weight);
  problem_theta_test_part(&problem->theta, replicate, self->set);
  for (size_t at = 0; at < (size_t)d * (size_t)n; at++)
    self->square[at % (size_t)n] += self->set[at] * self->set[at];
  return STATUS_OK;
}

/* Computes the mean[d] of run b, at stride B, over the members with weights exp(vector' theta - precision
 * |theta|^2 / 2). */
static void regret_floor_mean_of_set(RegretFloor *self, int b) {
  const int n = self->members, runs = self->runs;
  double top = -INFINITY, total = 0;
  for (int m = 0; m < n; m++) self->weight[m] = -0.5 * self->precision[b] * self->square[m];
  for (int i = 0; i < self->d; i++)
    for (int m = 0; m < n; m++)
      self->weight[m] += self->vector[i * runs + b] * self->set[(size_t)i * (size_t)n + (size_t)m];
  for (int m = 0; m < n; m++) top = fmax(top, self->weight[m]);
  for (int m = 0; m < n; m++) total += self->weight[m] = special_exp(self->weight[m] - top);
  for (int i = 0; i < self->d; i++) {
    double sum = 0;
    for (int m = 0; m < n; m++) sum += self->weight[m] * self->set[(size_t)i * (size_t)n + (size_t)m];
    self->mean[i * runs + b] = sum / total;
  }
}

/* Allocates memory for a call of the denoiser: its workspace, then eigenvalues, vector and mean of z, and the
 * covariance. */
static Status regret_floor_create_denoiser(Arena *memory, RegretFloor *self) {
  const size_t d = (size_t)self->d, lanes = DENOISER_LANES;
  ALLOCATE(memory, self->basis, d * d * lanes);
  ALLOCATE(memory, self->work, self->prior.denoiser->workspace + (3 + d) * d * lanes);
  for (size_t i = 0; i < d; i++)
    for (size_t n = 0; n < lanes; n++) self->basis[(i * d + i) * lanes + n] = 1;
  return STATUS_OK;
}

/* Computes the means of runs first .. first + DENOISER_LANES - 1; lanes beyond the last run repeat it. */
static void regret_floor_denoised_means(RegretFloor *self, int first) {
  enum { LANES = DENOISER_LANES };
  const Denoiser *denoiser = self->prior.denoiser;
  const int d = self->d, runs = self->runs;
  const size_t values = (size_t)d * LANES;
  double *eigenvalue = self->work + denoiser->workspace, *vector = eigenvalue + values,
         *mean = vector + values, *covariance = mean + values;
  int fallbacks[LANES] = {0};
  for (int i = 0; i < d; i++)
    for (int n = 0; n < LANES; n++) {
      const int b = first + n < runs ? first + n : runs - 1;
      const double scale = denoiser->scale[i], precision = self->precision[b];
      eigenvalue[i * LANES + n] = scale * scale * precision;
      vector[i * LANES + n] = scale * (self->vector[i * runs + b] - precision * denoiser->shift[i]);
    }
  denoiser->moments(denoiser, LANES, self->basis, eigenvalue, vector, mean,
                    self->prior.mixture ? NULL : covariance, fallbacks, self->work);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < LANES && first + n < runs; n++)
      self->mean[i * runs + first + n] = denoiser->shift[i] + denoiser->scale[i] * mean[i * LANES + n];
}

static void regret_floor_find_means(RegretFloor *self) {
  const int runs = self->runs;
  if (self->prior.denoiser) {
    for (int first = 0; first < runs; first += DENOISER_LANES) regret_floor_denoised_means(self, first);
    return;
  }
  for (int b = 0; b < runs; b++) {
    double mean[2];
    if (self->members > 0) {
      regret_floor_mean_of_set(self, b);
      continue;
    }
    study_planar_mean(&self->plane, self->precision[b], (double[]){self->vector[b], self->vector[runs + b]},
                      mean);
    self->mean[b] = mean[0], self->mean[runs + b] = mean[1];
  }
}

/* ---- the oracle */

static Status regret_floor_create_belief(Arena *memory, const Problem *problem, uint32_t replicate,
                                         RegretFloor *self) {
  const PriorFit chain = {.schedule = {.stages = 1, .alpha = 0.5}};
  if (problem->theta.set.n > 0) return regret_floor_create_set(memory, problem, replicate, self);
  TRY(problem_exact_prior(memory, problem, &chain, &self->prior));
  return self->prior.denoiser ? regret_floor_create_denoiser(memory, self)
                              : study_planar_mean_create(memory, &self->prior, &self->plane);
}

Status regret_floor_create(Arena *memory, const Problem *problem, const Task *task, RegretFloor *out) {
  const size_t d = (size_t)problem->d, runs = (size_t)task->runs;
  *out = (RegretFloor){.d = problem->d, .runs = task->runs};
  ALLOCATE_ARRAYS(memory, runs, out->precision, out->longest, out->arm);
  ALLOCATE_ARRAYS(memory, d * runs, out->vector, out->mean, out->noise);
  return regret_floor_create_belief(memory, problem, task->replicate, out);
}

double regret_floor_cost(const Problem *problem, double rounds) {
  /* Fitted to mixtures of 1 to 100 Gaussians in 2 to 16 dimensions, corners of a cube, and both data sets. */
  const ThetaSource *theta = &problem->theta;
  const double d = problem->d, noise = problem->likelihood.noise, greedy = 2000 + 2 * d * problem->arms;
  if (theta->set.n > 0) return greedy + 100 * d * problem_theta_test_size(theta);
  if (theta->has_mixture) return greedy + theta->mixture.components * (600 + 65 * d * d);
  return greedy + (theta->ops->prior ? 200 * exp2(d) : study_planar_mean_cost(noise * noise, rounds));
}

/* Observes theta* + sigma / r N(0, I), whatever was played. */
static void regret_floor_learn_theta(RegretFloor *self, const World *world) {
  const int runs = self->runs;
  const double sigma = world->problem->likelihood.noise;
  RngLanes rng = world_streams(world, RNG_REGRET_FLOOR);
  rng_lanes_normal(&rng, self->d, self->noise);
  for (int b = 0; b < runs; b++) {
    const double root = sqrt(self->longest[b]) / sigma;
    self->precision[b] += root * root;
    for (int i = 0; i < self->d; i++)
      self->vector[i * runs + b] +=
          root * root * world->theta[i * runs + b] + root * self->noise[i * runs + b];
  }
}

void regret_floor_play(RegretFloor *self, const World *world, double *regret) {
  const int runs = self->runs;
  if (world->round == 1 || world->problem->resample_arms) world_longest_squares(world, self->longest);
  regret_floor_find_means(self);
  world_greedy(world, self->mean, self->arm);
  for (int b = 0; b < runs; b++)
    regret[b] = world->mean[world->best[b] * runs + b] - world->mean[self->arm[b] * runs + b];
  regret_floor_learn_theta(self, world);
}

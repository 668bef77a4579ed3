#include "problem/problem.h"

#include "problem/problems.h"

static const ProblemOps *const registry[] = {
#define PROBLEM_ENTRY(name) &problem_##name,
    PROBLEM_LIST(PROBLEM_ENTRY)
#undef PROBLEM_ENTRY
        NULL};

const ProblemOps *problem_family(int index) { return registry[index]; }
const char *problem_name(int index) { return registry[index] ? registry[index]->name : NULL; }

const ProblemOps *problem_named(const Config *config) {
  for (int i = 0; registry[i]; i++)
    if (config_is(config, "problem.family", registry[i]->name)) return registry[i];
  return NULL;
}

int problem_arms(const Config *config, const ProblemOps *family) {
  enum { ARMS = 100 };
  const bool given = !config_is(config, "problem.arms", "auto") && !config_is(config, "problem.arms", "all");
  if (given) return (int)config_int(config, "problem.arms");
  return family->arms ? family->arms : ARMS;
}

/* Returns problem.dimension; 0 if it is left to the distribution of theta*. */
static int64_t problem_asked_dimension(const Config *config) {
  return config_is(config, "problem.dimension", "auto") ? 0 : config_int(config, "problem.dimension");
}

/* linear_algebra.distributed_from: auto. One rank is faster below it. */
enum { DISTRIBUTED_FROM = 8192 };

static int64_t problem_distributed_from(const Config *config) {
  return config_is(config, "linear_algebra.distributed_from", "auto")
             ? DISTRIBUTED_FROM
             : config_int(config, "linear_algebra.distributed_from");
}

bool problem_is_distributed(const Config *config) {
  return problem_asked_dimension(config) >= problem_distributed_from(config);
}

Status problem_create_theta(Problem *self, const Config *config) {
  const ThetaOps *distribution = problem_theta_find(config_text(config, "problem.theta"));
  if (self->distributed || (self->together && problem_theta_is_wide(distribution, self->d))) {
    self->vectors = true;
    return problem_theta_create_vectors(distribution, self->d, self->seed, &self->theta);
  }
  return problem_theta_create(distribution, self->d, config_text(config, "problem.file"),
                              config_real(config, "prior.test_fraction"), self->seed, &self->theta);
}

/* Checks the settings, and creates the family's part of the problem. */
static Status problem_complete(Problem *self, const Config *config) {
  const ProblemOps *ops = self->ops;
  if (self->per_arm) self->resample_arms = true; /* the features are a context, drawn in every round */
  if (self->per_arm && !ops->per_arm)
    return status_set(STATUS_INPUT,
                      "problem.unknown: per_arm, but in problem.family = %s all arms share one theta*; use "
                      "synthetic or embedding",
                      ops->name);
  const bool drifts = config_is(config, "problem.drift.kind", "switch");
  if (drifts != (self->drift_every > 0))
    return status_set(STATUS_INPUT, "problem.drift: kind switch and every > 0 go together; every is %d",
                      self->drift_every);
  if (ops->needs_file && !config_text(config, "problem.file"))
    return status_set(STATUS_INPUT, "problem.family = %s needs problem.file, which is not given", ops->name);
  if (config_is(config, "problem.arms", "all") && !ops->finite_arms)
    return status_set(STATUS_INPUT,
                      "problem.arms: all, but only problem.family = embedding has a file of them");
  TRY(arena_new(&self->memory, &self->state, 1, ops->state_size));
  TRY(ops->create(self, config));
  self->d = self->theta.d;
  /* The arms of a run have different members of a finite set. */
  const int items = problem_theta_test_size(&self->theta);
  if (problem_unknowns(self) <= items) return STATUS_OK;
  return status_set(STATUS_INPUT,
                    "problem.arms: %d, but the file has only %d theta* for them; raise prior.test_fraction",
                    self->arms, items);
}

Status problem_create(const Config *config, const ProblemOps *family, ProblemUse use, Problem *out) {
  *out = (Problem){.ops = family,
                   .d = (int)problem_asked_dimension(config),
                   .arms = problem_arms(config, family),
                   .rounds = (int)config_int(config, "problem.rounds"),
                   .drift_every = (int)config_int(config, "problem.drift.every"),
                   .resample_arms = config_bool(config, "problem.resample_arms"),
                   .per_arm = config_is(config, "problem.unknown", "per_arm"),
                   .together = use != PROBLEM_APART,
                   .distributed = use == PROBLEM_DISTRIBUTED,
                   .seed = (uint64_t)config_int(config, "seed")};
  double noise = config_is(config, "problem.noise", "auto") ? 1 : config_real(config, "problem.noise");
  out->likelihood = (Likelihood){.ops = likelihood_find(config_text(config, "likelihood")), .noise = noise};
  ASSERT(out->ops && out->likelihood.ops);
  if (out->d == 0) out->d = out->ops->dimension;
  const Status status = problem_complete(out, config);
  if (status != STATUS_OK) problem_destroy(out);
  return status;
}

Status problem_set_likelihood(Problem *self, const Config *config, const Likelihood *own) {
  bool is_default;
  TRY(config_is_default(config, "likelihood", &is_default));
  if (!is_default && self->likelihood.ops != own->ops)
    return status_set(STATUS_INPUT,
                      "likelihood: %s, but problem.family: %s has likelihood %s; leave the key out",
                      self->likelihood.ops->name, self->ops->name, own->ops->name);
  self->likelihood = *own;
  return STATUS_OK;
}

void problem_destroy(Problem *problem) {
  problem_theta_destroy(&problem->theta);
  arena_free(&problem->memory);
  *problem = (Problem){0};
}

/* Transforms samples of `theta` into theta* of the runs, if the family does so. */
static void problem_transform_theta(const Problem *problem, uint32_t first_run, int runs, double *theta) {
  const RngLanes rng =
      rng_lanes(rng_key(problem->seed, RNG_ROTATION), first_run, runs, 1, problem->theta.segment);
  if (problem->ops->transform) problem->ops->transform(problem, rng, theta);
}

void problem_theta(const Problem *problem, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  problem_theta_draw(&problem->theta, RNG_THETA, replicate, first_run, runs, theta);
  problem_transform_theta(problem, first_run, runs, theta);
}

void problem_theta_for_pictures(const Problem *problem, int count, double *theta) {
  problem_theta_draw(&problem->theta, RNG_THETA_SHOWN, 0, 0, count, theta);
  problem_transform_theta(problem, 0, count, theta);
}

Status problem_training_samples(Arena *memory, const Problem *problem, uint32_t replicate, int64_t limit,
                                Samples *out) {
  TRY(problem_theta_training_samples(memory, &problem->theta, replicate, limit, out));
  const RngKey key = rng_subkey(rng_key(problem->seed, RNG_PRIOR_SAMPLES), RNG_ROTATION);
  const RngLanes rng = rng_lanes(key, replicate, 1, out->n, 0);
  if (problem->ops->transform) problem->ops->transform(problem, rng, out->theta);
  return STATUS_OK;
}

bool problem_has_exact_prior(const Problem *problem) {
  const bool own = problem->ops->take || (!problem->ops->transform && !problem->ops->rewards);
  return own && (problem->vectors || problem_theta_has_prior(&problem->theta));
}

Status problem_check_exact_prior(const Problem *problem) {
  if (problem_has_exact_prior(problem)) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "there is no exact prior: theta* is drawn from a finite set, or its density is not known; "
      "problem.family = pool has one, and so does synthetic with any problem.theta except 'file'");
}

Status problem_exact_prior(Arena *memory, const Problem *problem, const PriorFit *chain_settings,
                           Prior *out) {
  TRY(problem_check_exact_prior(problem));
  return problem_theta_prior(memory, &problem->theta, chain_settings, out);
}

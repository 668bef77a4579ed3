#include "problem/problem_theta.h"

#include "core/lanes.h"

#include <limits.h>

const char *problem_theta_name(int index) { return theta_distributions[index].name; }

const ThetaOps *problem_theta_find(const char *name) {
  for (const ThetaOps *ops = theta_distributions; ops->name; ops++)
    if (strcmp(ops->name, name) == 0) return ops;
  return NULL;
}

/* Checks the dimension d of theta; `dimension` 0 allows any. `source` says in messages where theta comes
 * from. */
static Status problem_theta_star_check_dimension(int dimension, int d, const char *source) {
  if (!dimension || dimension == d) return STATUS_OK;
  return status_set(STATUS_INPUT, "problem.dimension: %d, but %s holds theta in %d dimensions", dimension,
                    source, d);
}

Status problem_theta_create_set(const Samples *set, const char *source, int dimension, double test_fraction,
                                uint64_t seed, ThetaSource *out) {
  out->ops = problem_theta_find("file");
  out->d = set->d;
  out->set = *set;
  out->test_fraction = test_fraction;
  out->seed = seed;
  if (out->set.n < 2)
    return status_set(STATUS_INPUT,
                      "%s: %d sample of theta; at least 2 are needed (one to learn from, one to test)",
                      source, out->set.n);
  return problem_theta_star_check_dimension(dimension, out->d, source);
}

/* Creates the mixture of a distribution that is given by `planar` or `modes`. */
static Status problem_theta_star_create_mixture(Arena *memory, const ThetaOps *ops, int d, Mixture *out) {
  int planar = 0;
  while (ops->planar && ops->planar[planar].weight > 0) planar++;
  TRY(mixture_create(memory, planar ? 2 : d, planar ? planar : ops->modes, out));
  for (int c = 0; c < planar; c++) {
    out->weight[c] = ops->planar[c].weight;
    memcpy(out->mean + 2 * c, ops->planar[c].mean, sizeof ops->planar[c].mean);
    memcpy(out->covariance + 4 * c, ops->planar[c].covariance, sizeof ops->planar[c].covariance);
  }
  for (size_t c = 0, n = (size_t)d; c < (size_t)ops->modes; c++) {
    out->weight[c] = 1.0 / ops->modes;
    for (size_t i = 0; i < n; i++) out->covariance[(c * n + i) * n + i] = ops->variance;
  }
  if (ops->means) TRY(ops->means(d, out->mean));
  return mixture_prepare(out);
}

Status problem_theta_create(const ThetaOps *ops, int dimension, const char *file, double test_fraction,
                            uint64_t seed, ThetaSource *out) {
  const char *source = file ? file : ops->name;
  *out = (ThetaSource){.ops = ops, .seed = seed};
  if ((ops->load || ops->set) && !file)
    return status_set(STATUS_INPUT, "problem.theta = %s needs problem.file, which is not given", ops->name);
  if (ops->set) {
    Samples set;
    TRY(ops->set(&out->memory, file, &set));
    return problem_theta_create_set(&set, source, dimension, test_fraction, seed, out);
  }
  out->d = dimension ? dimension : ops->dimension ? ops->dimension : 2;
  const bool given = ops->planar || ops->modes;
  if (given) TRY(problem_theta_star_create_mixture(&out->memory, ops, out->d, &out->mixture));
  if (ops->mixture) TRY(ops->mixture(&out->memory, out->d, &out->mixture));
  if (ops->load) TRY(ops->load(&out->memory, file, &out->mixture));
  out->has_mixture = given || ops->mixture || ops->load;
  if (out->has_mixture) out->d = out->mixture.d;
  if (ops->prior) {
    const PriorFit chain = {.schedule = {.stages = 1, .alpha = 0.5}};
    TRY(ops->prior(&out->memory, out->d, &chain, &out->prior));
  }
  if (ops->dimension && out->d != ops->dimension)
    return status_set(STATUS_INPUT, "problem.dimension: %d, but problem.theta = %s has %d dimensions",
                      dimension, ops->name, ops->dimension);
  return problem_theta_star_check_dimension(dimension, out->d, source);
}

Status problem_theta_create_gaussian(int d, uint64_t seed, ThetaSource *out) {
  return problem_theta_create(problem_theta_find("gaussian"), d, NULL, 0, seed, out);
}

bool problem_theta_is_wide(const ThetaOps *ops, int d) {
  enum { MOST_NUMBERS = 1 << 19 };
  const int64_t modes = ops->modes <= ISOTROPIC_COMPONENTS ? ops->modes : 0;
  return modes * d * d > MOST_NUMBERS;
}

Status problem_theta_create_vectors(const ThetaOps *ops, int d, uint64_t seed, ThetaSource *out) {
  *out = (ThetaSource){.ops = ops, .d = d, .seed = seed};
  if (ops->modes < 1 || ops->modes > ISOTROPIC_COMPONENTS)
    return status_set(
        STATUS_INPUT,
        "problem.theta: %s, but in %d dimensions matrices are spread over ranks, and theta* must "
        "be from a mixture of isotropic Gaussians: gaussian or gm_sphere",
        ops->name, d);
  Isotropic *mixture = &out->isotropic;
  TRY(denoiser_isotropic_create(&out->memory, d, ops->modes, mixture));
  for (int c = 0; c < ops->modes; c++) {
    mixture->weight[c] = 1.0 / ops->modes;
    mixture->variance[c] = ops->variance;
  }
  return ops->means ? ops->means(d, mixture->mean) : STATUS_OK;
}

void problem_theta_destroy(ThetaSource *source) {
  arena_free(&source->memory);
  *source = (ThetaSource){0};
}

int problem_theta_test_size(const ThetaSource *source) {
  if (source->set.n == 0) return INT_MAX;
  if (source->held_out > 0) return source->held_out;
  int size = (int)(source->test_fraction * source->set.n + 0.5);
  if (size < 1) size = 1;
  return size < source->set.n ? size : source->set.n - 1;
}

/* Copies to column `at` of theta[d, columns] the member at a place in the replicate's random order of a
 * finite set, whose first problem_theta_test_size members are for testing. */
static void problem_theta_star_copy_member(const ThetaSource *source, uint32_t replicate, int place, int at,
                                           int columns, double *theta) {
  const int fixed = source->held_out;
  const int member = place < fixed
                         ? place
                         : fixed + rng_permuted(source->set.n - fixed, rng_key(source->seed, RNG_SPLIT),
                                                replicate, place - fixed);
  lanes_copy(source->d, 1, source->set.theta + member, source->set.n, theta + at, columns);
}

/* Draws one theta per lane from a distribution in the plane. Rejection uses more of some streams than of
 * others; afterwards all are at the position of the one that went furthest. */
static void problem_theta_star_sample_planar(const ThetaOps *ops, RngLanes *rng, double *theta) {
  uint32_t furthest = rng->position;
  for (uint32_t n = 0; n < rng->lanes; n++) {
    Rng stream = rng_of_lane(rng, n);
    stream.position = rng->position;
    double point[2];
    if (ops->sample)
      ops->sample(&stream, point);
    else
      do {
        rng_uniform(&stream, 2, point);
        for (int i = 0; i < 2; i++) point[i] = 6 * point[i] - 3;
      } while (!ops->inside(point));
    theta[n] = point[0];
    theta[rng->lanes + n] = point[1];
    if (stream.position > furthest) furthest = stream.position;
  }
  rng->position = furthest;
}

/* Draws one theta per lane, unless the distribution is a finite set; returns whether it did. */
static bool problem_theta_star_draw_lanes(const ThetaSource *source, RngLanes lanes, double *theta) {
  if (source->isotropic.d > 0)
    denoiser_isotropic_sample(&source->isotropic, &lanes, theta);
  else if (source->has_mixture)
    mixture_sample(&source->mixture, &lanes, theta);
  else if (source->ops->prior)
    source->prior.ops->sample(&source->prior, &lanes, theta);
  else if (problem_theta_is_planar(source->ops))
    problem_theta_star_sample_planar(source->ops, &lanes, theta);
  else
    return false;
  return true;
}

void problem_theta_draw(const ThetaSource *source, RngPurpose purpose, uint32_t replicate, uint32_t first_run,
                        int runs, double *theta) {
  const RngLanes lanes = rng_lanes(rng_key(source->seed, purpose), first_run, runs, 1, source->segment);
  if (problem_theta_star_draw_lanes(source, lanes, theta)) return;
  for (int b = 0; b < runs; b++) {
    Rng rng = rng_of_lane(&lanes, (uint32_t)b);
    const int place = (int)rng_index(&rng, (uint64_t)problem_theta_test_size(source));
    problem_theta_star_copy_member(source, replicate, place, b, runs, theta);
  }
}

void problem_theta_draw_each(const ThetaSource *source, uint32_t replicate, uint32_t first_run, int runs,
                             int each, double *theta) {
  const RngKey key = rng_key(source->seed, RNG_THETA);
  const int total = runs * each, size = problem_theta_test_size(source);
  ASSERT(each <= size);
  const RngLanes lanes = rng_lanes(key, first_run, runs, each, source->segment);
  if (problem_theta_star_draw_lanes(source, lanes, theta)) return;
  for (int n = 0; n < total; n++) {
    const uint64_t member = (uint64_t)source->segment * (uint64_t)each + (uint64_t)(n % each);
    const int place =
        rng_permuted(size, key, first_run + (uint32_t)(n / each), (int)(member % (uint64_t)size));
    problem_theta_star_copy_member(source, replicate, place, n, total, theta);
  }
}

void problem_theta_test_part(const ThetaSource *source, uint32_t replicate, double *theta) {
  const int size = problem_theta_test_size(source);
  for (int place = 0; place < size; place++)
    problem_theta_star_copy_member(source, replicate, place, place, size, theta);
}

int problem_theta_training_count(const ThetaSource *source, int64_t limit) {
  const bool finite = source->set.n > 0;
  const int64_t most = finite ? source->set.n - problem_theta_test_size(source) : 10000;
  return (int)(limit < 0 || (finite && limit > most) ? most : limit);
}

Status problem_theta_training_samples(Arena *memory, const ThetaSource *source, uint32_t replicate,
                                      int64_t limit, Samples *out) {
  const int n = problem_theta_training_count(source, limit);
  *out = (Samples){.d = source->d, .n = n};
  ALLOCATE(memory, out->theta, (size_t)source->d * (size_t)n);
  const RngLanes lanes = rng_lanes(rng_key(source->seed, RNG_PRIOR_SAMPLES), replicate, 1, n, 0);
  if (problem_theta_star_draw_lanes(source, lanes, out->theta)) return STATUS_OK;
  for (int s = 0; s < n; s++)
    problem_theta_star_copy_member(source, replicate, problem_theta_test_size(source) + s, s, n, out->theta);
  return STATUS_OK;
}

/* ---- as a prior */

static void problem_theta_star_prior_sample(const Prior *prior, RngLanes *rng, double *theta) {
  problem_theta_star_sample_planar(prior->state, rng, theta);
}

static void problem_theta_star_prior_log_density(const Prior *prior, int lanes, const double *theta,
                                                 double *out) {
  const ThetaOps *ops = prior->state;
  const double uniform[2] = {-INFINITY, -log(ops->inside ? ops->area : 1)};
  for (int n = 0; n < lanes; n++) {
    const double u[2] = {theta[n], theta[lanes + n]};
    out[n] =
        ops->inside ? uniform[(fabs(u[0]) < 3) & (fabs(u[1]) < 3) & ops->inside(u)] : ops->log_density(u);
  }
}

/* The distribution of theta* where it is not a mixture (DiffTS paper, Section 6.2). */
static const PriorOps density_ops = {.name = "exact",
                                     .sample = problem_theta_star_prior_sample,
                                     .log_density = problem_theta_star_prior_log_density};

bool problem_theta_has_prior(const ThetaSource *source) {
  return source->isotropic.d > 0 || source->has_mixture || source->ops->prior ||
         problem_theta_is_planar(source->ops);
}

Status problem_theta_prior(Arena *memory, const ThetaSource *source, const PriorFit *chain_settings,
                           Prior *out) {
  ASSERT(problem_theta_has_prior(source));
  if (source->isotropic.d > 0) return prior_isotropic(memory, &source->isotropic, chain_settings, out);
  if (source->has_mixture) return prior_from_mixture(memory, &source->mixture, chain_settings, out);
  if (source->ops->prior) return source->ops->prior(memory, source->d, chain_settings, out);
  ASSERT(source->d == 2);
  *out = (Prior){.memory = memory, .ops = &density_ops, .d = source->d, .state = (void *)source->ops};
  return STATUS_OK;
}

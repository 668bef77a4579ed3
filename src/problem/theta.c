#include "problem/theta.h"

#include "problem/distributions.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static Status standard_isotropic(Arena *memory, int d, Isotropic *out) {
  TRY(isotropic_create(memory, d, 1, out));
  out->weight[0] = out->variance[0] = 1;
  return STATUS_OK;
}

static Status standard_gaussian(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  TRY(mixture_create(memory, d, 1, out));
  out->weight[0] = 1;
  for (int i = 0; i < d; i++) out->covariance[i * d + i] = 1;
  return mixture_prepare(out);
}

static Status mixture_from_file(Arena *memory, int d, const char *file, Mixture *out) {
  (void)d;
  SCRATCH_ARENA(scratch);
  PriorFit chain = {.schedule = {.stages = 1, .alpha = 0.5}};
  Prior prior;
  TRY(prior_load(&scratch, file, &chain, &prior));
  if (!prior.mixture)
    return status_set(STATUS_INPUT,
                      "%s: problem.theta = mixture needs a Gaussian or mixture prior file, this one holds a "
                      "diffusion prior",
                      file);
  return mixture_copy(memory, prior.mixture, out);
}

const ThetaOps theta_mixture = {.name = "mixture",
                                .summary = "a mixture of Gaussians from a prior file (problem.file)",
                                .reference = "DiffTS, Section 6.2",
                                .needs_file = true,
                                .mixture = mixture_from_file};
const ThetaOps theta_gaussian = {.name = "gaussian",
                                 .summary = "standard Gaussian in any dimension",
                                 .reference = "DiffTS, Section 2.1",
                                 .mixture = standard_gaussian,
                                 .isotropic = standard_isotropic};
/* Six Gaussians of variance .1 with means on a sphere of radius 2, in random directions that are the same for
 * every study. */
enum { SPHERE_COMPONENTS = 6 };
static const double SPHERE_VARIANCE = 0.1, SPHERE_RADIUS = 2;

static void sphere_means(int d, double *means) {
  Rng rng = {.key = rng_key(0, RNG_DIRECTION), .run = (uint32_t)d};
  rng_normal(&rng, SPHERE_COMPONENTS * d, means);
  for (int c = 0; c < SPHERE_COMPONENTS; c++) {
    double *mean = means + c * d, square = 0;
    for (int i = 0; i < d; i++) square += mean[i] * mean[i];
    for (int i = 0; i < d; i++) mean[i] *= SPHERE_RADIUS / sqrt(square);
  }
}

static Status sphere(Arena *memory, int d, const char *file, Mixture *out) {
  (void)file;
  TRY(mixture_create(memory, d, SPHERE_COMPONENTS, out));
  sphere_means(d, out->mean);
  for (int c = 0; c < SPHERE_COMPONENTS; c++) {
    out->weight[c] = 1.0 / SPHERE_COMPONENTS;
    for (int i = 0; i < d; i++)
      out->covariance[((size_t)c * (size_t)d + (size_t)i) * (size_t)d + (size_t)i] = SPHERE_VARIANCE;
  }
  return mixture_prepare(out);
}

static Status sphere_isotropic(Arena *memory, int d, Isotropic *out) {
  TRY(isotropic_create(memory, d, SPHERE_COMPONENTS, out));
  sphere_means(d, out->mean);
  for (int c = 0; c < SPHERE_COMPONENTS; c++)
    out->weight[c] = 1.0 / SPHERE_COMPONENTS, out->variance[c] = SPHERE_VARIANCE;
  return STATUS_OK;
}

const ThetaOps theta_gm_sphere = {.name = "gm_sphere",
                                  .summary = "six narrow Gaussians on a sphere, in any dimension",
                                  .reference = "Bruna and Han (2024), Tilted transport",
                                  .mixture = sphere,
                                  .isotropic = sphere_isotropic};
const ThetaOps theta_ising = {.name = "ising",
                              .summary = "uniform on the corners of the hypercube, in any dimension",
                              .reference = "Bruna and Han (2024), Tilted transport",
                              .prior = prior_ising};
const ThetaOps theta_file = {.name = "file",
                             .summary = "drawn from the user's own samples (problem.file)",
                             .reference = "DiffTS, Section 6.3",
                             .needs_file = true,
                             .set = dataset_read_samples};

static const ThetaOps *const registry[] = {
#define THETA_ENTRY(name) &theta_##name,
    THETA_LIST(THETA_ENTRY)
#undef THETA_ENTRY
        NULL};

const ThetaOps *theta_distribution(int index) { return registry[index]; }

const char *theta_name(int index) { return registry[index] ? registry[index]->name : NULL; }

const ThetaOps *theta_find(const char *name) {
  for (int i = 0; registry[i]; i++)
    if (strcmp(registry[i]->name, name) == 0) return registry[i];
  return NULL;
}

/* Checks the dimension; `dimension` 0 allows any. `source` names where theta comes from. */
static Status check_dimension(int dimension, int d, const char *source) {
  if (!dimension || dimension == d) return STATUS_OK;
  return status_set(STATUS_INPUT, "problem.dimension: %d, but %s holds theta in %d dimensions", dimension,
                    source, d);
}

Status theta_create_set(const Samples *set, const char *source, int dimension, double test_fraction,
                        uint64_t seed, ThetaSource *out) {
  out->ops = &theta_file, out->d = set->d, out->set = *set, out->test_fraction = test_fraction,
  out->seed = seed;
  if (out->set.n < 2)
    return status_set(STATUS_INPUT,
                      "%s: %d sample of theta; at least 2 are needed (one to learn from, one to test)",
                      source, out->set.n);
  return check_dimension(dimension, out->d, source);
}

Status theta_create(const ThetaOps *ops, int dimension, const char *file, double test_fraction, uint64_t seed,
                    ThetaSource *out) {
  *out = (ThetaSource){.ops = ops, .seed = seed};
  if (ops->needs_file && !file)
    return status_set(STATUS_INPUT, "problem.theta = %s needs problem.file, which is not given", ops->name);
  if (ops->set) {
    Samples set;
    TRY(ops->set(&out->memory, file, &set));
    return theta_create_set(&set, file, dimension, test_fraction, seed, out);
  }
  out->d = dimension ? dimension : ops->dimension ? ops->dimension : 2;
  if (ops->mixture) {
    TRY(ops->mixture(&out->memory, out->d, file, &out->mixture));
    out->has_mixture = true;
    out->d = out->mixture.d;
  }
  if (ops->prior) {
    const PriorFit chain = {.schedule = {.stages = 1, .alpha = 0.5}};
    TRY(ops->prior(&out->memory, out->d, &chain, &out->prior));
  }
  if (ops->dimension && out->d != ops->dimension)
    return status_set(STATUS_INPUT, "problem.dimension: %d, but problem.theta = %s lives in %d dimensions",
                      dimension, ops->name, ops->dimension);
  return check_dimension(dimension, out->d, file ? file : ops->name);
}

Status theta_create_gaussian(int d, uint64_t seed, ThetaSource *out) {
  return theta_create(&theta_gaussian, d, NULL, 0, seed, out);
}

Status theta_create_large(const ThetaOps *ops, int d, uint64_t seed, ThetaSource *out) {
  *out = (ThetaSource){.ops = ops, .d = d, .seed = seed};
  if (!ops->isotropic)
    return status_set(STATUS_INPUT,
                      "problem.theta: %s, but in %d dimensions the matrices of a setting are shared by all "
                      "draws, and theta* is from a mixture of isotropic Gaussians: gaussian or gm_sphere",
                      ops->name, d);
  return ops->isotropic(&out->memory, d, &out->isotropic);
}

void theta_destroy(ThetaSource *source) {
  arena_free(&source->memory);
  *source = (ThetaSource){0};
}

int theta_test_size(const ThetaSource *source) {
  if (source->set.n == 0) return INT_MAX;
  if (source->held_out > 0) return source->held_out;
  int size = (int)(source->test_fraction * source->set.n + 0.5);
  if (size < 1) size = 1;
  return size < source->set.n ? size : source->set.n - 1;
}

/* Returns Member `place` of the replicate's random order of a finite set: the first theta_test_size are
 * for testing. */
static int member_at(const ThetaSource *source, uint32_t replicate, int place) {
  const int fixed = source->held_out;
  if (place < fixed) return place;
  return fixed +
         rng_permuted(source->set.n - fixed, rng_key(source->seed, RNG_SPLIT), replicate, place - fixed);
}

/* Draws one theta of each lane, unless the distribution is a finite set; returns whether it did. */
static bool draw_lanes(const ThetaSource *source, RngLanes lanes, double *theta) {
  double point[2];
  if (source->isotropic.d > 0)
    isotropic_sample(&source->isotropic, &lanes, theta);
  else if (source->has_mixture)
    mixture_sample(&source->mixture, &lanes, theta);
  else if (source->ops->prior)
    source->prior.ops->sample(&source->prior, &lanes, theta);
  else if (source->ops->sample)
    for (uint32_t n = 0; n < lanes.lanes; n++) {
      Rng rng = rng_of_lane(&lanes, n);
      source->ops->sample(&rng, point);
      theta[n] = point[0], theta[lanes.lanes + n] = point[1];
    }
  else
    return false;
  return true;
}

static void copy_member(const ThetaSource *source, int member, int at, int stride, double *theta) {
  for (int i = 0; i < source->d; i++)
    theta[(size_t)i * (size_t)stride + (size_t)at] =
        source->set.theta[(size_t)i * (size_t)source->set.n + (size_t)member];
}

static void draw_streams(const ThetaSource *source, RngKey key, uint32_t replicate, uint32_t first_run,
                         int runs, double *theta) {
  const RngLanes lanes = {
      .key = key, .run = first_run, .draws = 1, .round = source->segment, .lanes = (uint32_t)runs};
  if (draw_lanes(source, lanes, theta)) return;
  for (int b = 0; b < runs; b++) {
    Rng rng = rng_of_lane(&lanes, (uint32_t)b);
    const int place = (int)rng_index(&rng, (uint64_t)theta_test_size(source));
    copy_member(source, member_at(source, replicate, place), b, runs, theta);
  }
}

void theta_draw(const ThetaSource *source, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  draw_streams(source, rng_key(source->seed, RNG_THETA), replicate, first_run, runs, theta);
}

void theta_draw_shown(const ThetaSource *source, int count, double *theta) {
  draw_streams(source, rng_key(source->seed, RNG_THETA_SHOWN), 0, 0, count, theta);
}

void theta_draw_each(const ThetaSource *source, uint32_t replicate, uint32_t first_run, int runs, int each,
                     double *theta) {
  const RngKey key = rng_key(source->seed, RNG_THETA);
  const int total = runs * each, size = theta_test_size(source);
  ASSERT(each <= size);
  const RngLanes lanes = {.key = key,
                          .run = first_run,
                          .draws = (uint32_t)each,
                          .round = source->segment,
                          .lanes = (uint32_t)total};
  if (draw_lanes(source, lanes, theta)) return;
  for (int n = 0; n < total; n++) {
    const uint64_t member = (uint64_t)source->segment * (uint64_t)each + (uint64_t)(n % each);
    const int place =
        rng_permuted(size, key, first_run + (uint32_t)(n / each), (int)(member % (uint64_t)size));
    copy_member(source, member_at(source, replicate, place), n, total, theta);
  }
}

void theta_test_part(const ThetaSource *source, uint32_t replicate, double *theta) {
  const int size = theta_test_size(source);
  for (int place = 0; place < size; place++)
    copy_member(source, member_at(source, replicate, place), place, size, theta);
}

int theta_training_count(const ThetaSource *source, int64_t limit) {
  const bool finite = source->set.n > 0;
  const int64_t most = finite ? source->set.n - theta_test_size(source) : 10000;
  return (int)(limit < 0 || (finite && limit > most) ? most : limit);
}

Status theta_training_samples(Arena *memory, const ThetaSource *source, uint32_t replicate, int64_t limit,
                              Samples *out) {
  const int n = theta_training_count(source, limit);
  *out = (Samples){.d = source->d, .n = n};
  ALLOCATE(memory, out->theta, (size_t)source->d * (size_t)n);
  const RngLanes lanes = {.key = rng_key(source->seed, RNG_PRIOR_SAMPLES),
                          .run = replicate,
                          .draws = (uint32_t)n,
                          .lanes = (uint32_t)n};
  if (draw_lanes(source, lanes, out->theta)) return STATUS_OK;
  for (int s = 0; s < n; s++)
    copy_member(source, member_at(source, replicate, theta_test_size(source) + s), s, n, out->theta);
  return STATUS_OK;
}

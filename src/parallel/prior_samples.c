#include "parallel/prior_samples.h"

#include "io/provenance.h"
#include "study/belief.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { SAMPLES = 1000, SOURCES = 2 };

/* Returns the family that learns a reverse chain: its samples are what the figures show beside the true
 * ones. */
static const PriorOps *learned_family(void) {
  for (int i = 0; prior_family(i); i++)
    if (prior_family(i)->settle && (prior_family(i)->able & PRIOR_CHAIN)) return prior_family(i);
  ASSERT(false);
  return NULL;
}

/* Finds the first prior of that family in a setting (replicate 0); *found is false when it has none on
 * disk. */
static Status find_learned(Arena *memory, const Study *study, const Config *setting, const Problem *problem,
                           const char *directory, Prior *out, bool *found) {
  *found = false;
  for (int p = 0; p < study->file->policy_count && !*found; p++) {
    Belief belief;
    char path[4096];
    TRY(belief_create(setting, &study->file->policies[p], problem, 0, &belief));
    if (belief.kind != BELIEF_FITTED || belief.family != learned_family()) continue;
    belief_path(&belief, directory, sizeof path, path);
    if (access(path, R_OK) != 0) continue;
    *found = belief_prior(memory, &belief, problem, directory, out) == STATUS_OK;
    if (!*found) fprintf(stderr, "thompson: %s; its samples are left out\n", status_message());
  }
  return STATUS_OK;
}

/* Transposes theta[d, SAMPLES] into out[sample, dim] of the file. */
static void transpose(int d, int width, const double *theta, double *out) {
  for (int s = 0; s < SAMPLES; s++)
    for (int i = 0; i < d; i++) out[s * width + i] = theta[i * SAMPLES + s];
}

/* Fills out[SOURCES, SAMPLES, width] of one setting. */
static Status sample_setting(const Study *study, const Config *setting, const Problem *problem,
                             const char *directory, int width, double *theta, double *out) {
  for (int i = 0; i < SOURCES * SAMPLES * width; i++) out[i] = NAN;
  /* There are too many numbers for a picture, or there is no theta*. */
  if (problem->large || problem->ops->rewards) return STATUS_OK;
  problem_theta_for_pictures(problem, SAMPLES, theta);
  transpose(problem->d, width, theta, out);
  SCRATCH_ARENA(scratch);
  Prior prior;
  bool found;
  TRY(find_learned(&scratch, study, setting, problem, directory, &prior, &found));
  if (!found) return STATUS_OK;
  RngLanes rng = {.key = rng_key(study->seed, RNG_UNCONDITIONAL), .draws = SAMPLES, .lanes = SAMPLES};
  prior.ops->sample(&prior, &rng, theta);
  transpose(problem->d, width, theta, out + SAMPLES * width);
  return STATUS_OK;
}

static Status widest(const Study *study, int *width) {
  *width = 1;
  for (int s = 0; s < study->file->setting_count; s++) {
    SCOPED(Problem, problem, problem_destroy);
    TRY(problem_create(study->file->settings[s], &problem));
    if (problem.d > *width && !problem.large) *width = problem.d;
  }
  return STATUS_OK;
}

static Status fill_prior_samples(const Study *study, const char *directory, StoreFile *file, int width) {
  SCRATCH_ARENA(scratch);
  const char *const sources[SOURCES] = {"true", learned_family()->name};
  int dimension[4], id;
  double *theta, *out;
  ALLOCATE(&scratch, theta, width * SAMPLES);
  ALLOCATE(&scratch, out, width * SOURCES * SAMPLES);
  TRY(store_dimension(file, "setting", (size_t)study->file->setting_count, &dimension[0]));
  TRY(store_dimension(file, "source", SOURCES, &dimension[1]));
  TRY(store_dimension(file, "sample", SAMPLES, &dimension[2]));
  TRY(store_dimension(file, "dim", (size_t)width, &dimension[3]));
  TRY(provenance_write(file, "samples of the true and the learned prior", NULL));
  TRY(store_text_attribute(file, NULL, "config_sha256", study->file->sha256));
  TRY(store_texts(file, "setting", dimension[0], study->file->setting_count, study->file->setting_labels,
                  "label of the setting"));
  TRY(store_texts(file, "source", dimension[1], SOURCES, sources,
                  "true distribution of theta*, or the family of the learned prior"));
  TRY(store_variable(file, "theta", STORE_DOUBLE, 4, dimension, "sample of theta", "1", &id));
  TRY(store_text_attribute(file, "theta", "coordinates", "setting source"));
  for (size_t s = 0; s < (size_t)study->file->setting_count; s++) {
    const Config *setting = study->file->settings[s];
    SCOPED(Problem, problem, problem_destroy);
    TRY(problem_create(setting, &problem));
    TRY(sample_setting(study, setting, &problem, directory, width, theta, out));
    TRY(store_put_part(file, id, (size_t[]){s, 0, 0, 0}, (size_t[]){1, SOURCES, SAMPLES, (size_t)width},
                       out));
  }
  return STATUS_OK;
}

Status prior_samples_write(const Study *study, const char *directory) {
  char path[4096];
  int width;
  StoreFile *file;
  TRY(widest(study, &width));
  snprintf(path, sizeof path, "%s/prior_samples.nc", directory);
  TRY(store_create(path, STORE_NETCDF4, &file));
  return store_finish(file, fill_prior_samples(study, directory, file, width));
}

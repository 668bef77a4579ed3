#include "study/study_pack.h"

#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <math.h>
#include <string.h>

/* What all problems share: a history has new features in every round. */
static const char SHARED[] = "name: pack\n"
                             "study: posterior\n"
                             "runs: 24\n" /* histories per group */
                             "draws: 500\n"
                             "problem: {arms: 1, resample_arms: true, features: ball, noise: 1,\n"
                             "          sample_sizes: [1, 4, 16, 64]}\n";

enum { SETS = 5 };

typedef struct {
  const char *name, *summary;
  const char *sets[SETS]; /* keys of the study, in addition to SHARED; NULL ends */
} PackProblem;

static const PackProblem registry[] = {
    {"cross", "two crossed Gaussians in the plane", {"problem.theta=gm_cross", "seed=1101"}},
    {"rays", "four Gaussians along the rays of a star", {"problem.theta=gm_rays", "seed=1102"}},
    {"four", "four narrow Gaussians far apart", {"problem.theta=gm_four", "seed=1103"}},
    {"sphere5",
     "six narrow Gaussians on a sphere in 5 dimensions",
     {"problem.theta=gm_sphere", "problem.dimension=5", "seed=1104"}},
    {"curve8",
     "a tube of 100 Gaussians along a closed curve in 8 dimensions",
     {"problem.theta=gm_curve", "problem.dimension=8", "seed=1105"}},
    {"sphere16",
     "six narrow Gaussians on a sphere in 16 dimensions",
     {"problem.theta=gm_sphere", "problem.dimension=16", "seed=1106"}},
    {"cross_logistic",
     "the prior of cross with rewards 0 and 1",
     {"problem.theta=gm_cross", "likelihood=logistic", "seed=1107"}},
    {"rays_logistic",
     "the prior of rays with rewards 0 and 1",
     {"problem.theta=gm_rays", "likelihood=logistic", "seed=1108"}},
    {"ising8",
     "uniform on the corners of the hypercube in 8 dimensions",
     {"problem.theta=ising", "problem.dimension=8", "problem.noise=2", "seed=1109"}},
    {.name = NULL}};

const char *study_pack_name(int index) { return registry[index].name; }

static Status study_pack_problem_of_name(Arena *memory, const char *name, PackProblem *out) {
  for (int i = 0; registry[i].name; i++)
    if (strcmp(registry[i].name, name) == 0) {
      *out = registry[i];
      return STATUS_OK;
    }
  if (!store_is_netcdf(name)) {
    const char *near = config_nearest(name, study_pack_name);
    return status_set(STATUS_INPUT, "'%s' is neither a problem of the pack nor a prior file%s%s%s", name,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  }
  *out = (PackProblem){
      .name = "own", .summary = "the prior of a file", .sets = {"problem.theta=mixture", "seed=1100"}};
  /* Quoted so that YAML accepts any characters in the path. */
  char *quoted;
  ALLOCATE(memory, quoted, 2 * strlen(name) + 1);
  for (char *end = quoted; *name; name++) {
    if (*name == '\'') *end++ = '\'';
    *end++ = *name;
  }
  return arena_print(memory, &out->sets[2], "problem.file='%s'", quoted);
}

/* Creates a group and records its history: in each round, one observation for all its runs. */
static Status study_pack_group_create(Arena *memory, const Pack *pack, PackGroup *group) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)pack->problem.d, n = (size_t)group->histories, longest = (size_t)pack->longest;
  int *arm;
  double *phi, *y, *regret;
  ALLOCATE(&scratch, arm, n);
  ALLOCATE_ARRAYS(&scratch, n, &y, &regret);
  ALLOCATE(&scratch, phi, d * n);
  group->x = pack->x + group->first * longest * d;
  group->y = pack->y + group->first * longest;
  ALLOCATE(memory, group->theta, d * n);
  TRY(history_create(memory, pack->problem.d, group->histories, &pack->problem.likelihood, &group->history));
  TRY(history_reserve(&group->history, group->observations));
  SCOPED(World, world, world_destroy);
  TRY(world_create(&pack->problem, 0, group->first, group->histories, &world));
  for (size_t k = 0; k < (size_t)group->observations; k++) {
    world_advance(&world, (uint32_t)k + 1);
    world_play(&world, arm, phi, y, regret);
    history_record(&group->history, arm, phi, y);
    for (size_t h = 0; h < n; h++) {
      group->y[h * longest + k] = y[h];
      for (size_t i = 0; i < d; i++) group->x[(h * longest + k) * d + i] = phi[i * n + h];
    }
  }
  memcpy(group->theta, world.theta, d * n * sizeof *group->theta);
  return STATUS_OK;
}

Status study_pack_create(Arena *memory, const char *name, Pack *out) {
  PackProblem problem;
  int sets = 0;
  *out = (Pack){0};
  TRY(study_pack_problem_of_name(memory, name, &problem));
  out->name = problem.name;
  out->summary = problem.summary;
  while (problem.sets[sets]) sets++;
  TRY(config_study_parse("pack", SHARED, &study_schema, sets, problem.sets, &out->file));
  const Config *setting = out->file->settings[0];
  const int64_t *sizes;
  TRY(study_problem_create(setting, &out->problem));
  const PriorFit chain = fit_of_keys(setting, out->problem.seed, 0);
  TRY(problem_exact_prior(memory, &out->problem, &chain, &out->prior));
  out->draws = (int)config_int(setting, "draws");
  out->groups = config_ints(setting, "problem.sample_sizes", &sizes);
  const int runs = (int)config_int(setting, "runs");
  out->histories = out->groups * runs;
  out->longest = (int)sizes[out->groups - 1];
  const size_t rows = (size_t)out->histories * (size_t)out->longest, d = (size_t)out->problem.d;
  ALLOCATE(memory, out->group, out->groups);
  ALLOCATE(memory, out->x, rows * d);
  ALLOCATE(memory, out->y, rows);
  ALLOCATE(memory, out->observations, out->histories);
  for (size_t k = 0; k < rows; k++) out->y[k] = NAN;
  for (size_t k = 0; k < rows * d; k++) out->x[k] = NAN;
  for (int h = 0; h < out->histories; h++) out->observations[h] = (int)sizes[h / runs];
  for (int g = 0; g < out->groups; g++) {
    out->group[g] =
        (PackGroup){.observations = (int)sizes[g], .histories = runs, .first = (uint32_t)(g * runs)};
    TRY(study_pack_group_create(memory, out, &out->group[g]));
  }
  return STATUS_OK;
}

void study_pack_destroy(Pack *pack) {
  problem_destroy(&pack->problem);
  config_study_free(pack->file);
}

/* Adds x[n], but for what is NaN because a history is shorter than others. */
static void study_pack_digest_reals(Digest *digest, size_t n, const double *x) {
  char text[32];
  for (size_t i = 0; i < n; i++) {
    if (isnan(x[i])) continue;
    const int length = snprintf(text, sizeof text, "%.6e\n", x[i]);
    digest_add(digest, text, (size_t)length);
  }
}

Status study_pack_digest(const Pack *pack, char out[DIGEST_SIZE]) {
  Digest digest;
  digest_begin(&digest);
  for (int g = 0; g < pack->groups; g++) {
    const PackGroup *group = &pack->group[g];
    const size_t rows = (size_t)group->histories * (size_t)pack->longest;
    study_pack_digest_reals(&digest, rows * (size_t)pack->problem.d, group->x);
    study_pack_digest_reals(&digest, rows, group->y);
  }
  return digest_end(&digest, out);
}

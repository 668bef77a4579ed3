/* The pack of frozen problems, and the scoring of draws on it: the histories are the frozen ones, they come
 * from their theta*, which no exported file has, and exact draws are told from narrow and from shifted
 * ones. */
#include "harness.h"

#include "app/app_score_files.h"
#include "sampler/methods.h"
#include "study/score.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The digests of the histories of the pack; other histories need another PACK_NAME. */
static const struct {
  const char *name, *sha256;
} frozen[] = {
    {"cross", "ebae5bcbb908f3b5dfa11007849ab8942a46e9f55c35dfb3b34937c4b0bb56bf"},
    {"rays", "a78381d3c0e47b33352d47d65ff15a47d062018dc2aa0253717b31177f06e1e0"},
    {"four", "e8e6b1c748f26792c1d2d9fd661e31349112355690c4a17705c764e8bfc99846"},
    {"sphere5", "a9a3b86af1cdc33e4a47b45ac85150945e7aa4ad2d2980a093cf5fadcf83c88e"},
    {"curve8", "4b4c0bcfa8331e7165c19ae3ceb56ab41c7b84beb674e3cd594c0dd9135d5c3a"},
    {"sphere16", "82b6f2de3fa8120ec0a01a5b8ea2e84d7a5aadf0d0269b30b66dff7e7f1de44d"},
    {"cross_logistic", "dd30487d34e5562de7a102e22676b2ff19f17efd22992da250ec0cda69441c64"},
    {"rays_logistic", "889c235abe599e1d1a88abfc4cad18ebdc7e1993c3c5192bd631e0db7dc8aa34"},
    {"ising8", "886876dabe9d0706c2d1832689b2e5a51b6dc749b8d70ba43468ddf5e3278836"},
};

static void test_frozen(void) {
  const int count = sizeof frozen / sizeof *frozen;
  CU_ASSERT_STRING_EQUAL(PACK_NAME, "thompson-1");
  for (int i = 0; i < count; i++) {
    SCRATCH_ARENA(memory);
    Pack pack;
    char digest[DIGEST_SIZE];
    CU_ASSERT_STRING_EQUAL_FATAL(study_pack_name(i), frozen[i].name);
    CHECK_OK(study_pack_create(&memory, frozen[i].name, &pack));
    CHECK_OK(study_pack_digest(&pack, digest));
    CU_ASSERT_STRING_EQUAL(digest, frozen[i].sha256);
    if (strcmp(digest, frozen[i].sha256) != 0) printf("%s: %s\n", frozen[i].name, digest);
    study_pack_destroy(&pack);
  }
  CU_ASSERT_PTR_NULL(study_pack_name(count));
}

/* Returns the residual of observation k of history h: y - x' theta*. */
static double residual(const Pack *pack, const PackGroup *group, int h, int k) {
  const int d = pack->problem.d;
  const size_t at = (size_t)h * (size_t)pack->longest + (size_t)k;
  double u = 0;
  for (int i = 0; i < d; i++)
    u += group->x[at * (size_t)d + (size_t)i] * group->theta[i * group->histories + h];
  return group->y[at] - u;
}

/* Checks that rewards come from theta*: the mean square of n residuals is 1 within 5 standard errors, sqrt(2
 * / n). */
static void test_histories(void) {
  SCRATCH_ARENA(memory);
  Pack pack;
  double sum = 0;
  int n = 0, histories = 0;
  CHECK_OK(study_pack_create(&memory, "sphere5", &pack));
  for (int g = 0; g < pack.groups; g++) {
    const PackGroup *group = &pack.group[g];
    CU_ASSERT_EQUAL((int)group->first, histories);
    histories += group->histories;
    for (int h = 0; h < group->histories; h++)
      for (int k = 0; k < group->observations; k++, n++) sum += pow(residual(&pack, group, h, k), 2);
  }
  CU_ASSERT_EQUAL(pack.histories, histories);
  CHECK_NEAR(sum / n, 1, 5 * sqrt(2.0 / n));
  CU_ASSERT_NOT_EQUAL(pack.group[0].theta[0], pack.group[1].theta[0]); /* a theta* for each history */
  study_pack_destroy(&pack);
}

static void test_refusals(void) {
  SCRATCH_ARENA(memory);
  Pack pack;
  CHECK_FAILS(study_pack_create(&memory, "spher5", &pack), STATUS_INPUT, "did you mean 'sphere5'?");
  CHECK_FAILS(study_pack_create(&memory, "/nowhere/it's.nc", &pack), STATUS_FILE, "/nowhere/it's.nc");
  study_pack_destroy(&pack);
}

/* ---- scores */

/* Makes a problem with fewer draws than usual: the cost of the distance in the plane grows faster than their
 * square, and every bound below is in standard errors or in floors, which are computed from the same number
 * of draws. */
static void create_small(Arena *memory, const char *name, Pack *out) {
  CHECK_OK(study_pack_create(memory, name, out));
  out->draws = 200;
}

/* Draws for all histories by the exact sampler, from streams that the score does not use; then theta <-
 * center + factor (theta - center) + shift, where the center is their mean: theta[histories, M, d]. */
static double *draw(Arena *memory, const Pack *pack, double factor, double shift) {
  const int d = pack->problem.d, m = pack->draws;
  double *out = NULL, *at;
  CHECK_OK(arena_new(memory, (void **)&out, (size_t)(pack->histories * m * d), sizeof *out));
  at = out;
  for (int g = 0; g < pack->groups; g++) {
    const PackGroup *group = &pack->group[g];
    const int lanes = group->histories * m;
    SCRATCH_ARENA(scratch);
    Sampler exact;
    double *theta = NULL;
    int64_t fallbacks[64] = {0};
    const SamplerSetup setup = {
        .prior = &pack->prior, .likelihood = &pack->problem.likelihood, .runs = group->histories, .draws = m};
    const RngLanes rng = {
        .key = rng_key(5, RNG_TEST), .run = group->first, .draws = (uint32_t)m, .lanes = (uint32_t)lanes};
    CHECK_OK(arena_new(&scratch, (void **)&theta, (size_t)(lanes * d), sizeof *theta));
    CHECK_OK(sampler_create(&scratch, &sampler_exact, &setup, &exact));
    sampler_sample(&exact, &group->history, rng, m, theta, fallbacks);
    for (int h = 0; h < group->histories; h++)
      for (int i = 0; i < d; i++) {
        const double *x = theta + i * lanes + h * m;
        double center = 0;
        for (int n = 0; n < m; n++) center += x[n] / m;
        for (int n = 0; n < m; n++) at[(h * m + n) * d + i] = center + factor * (x[n] - center) + shift;
      }
    at += lanes * d;
  }
  return out;
}

/* Checks exact draws: 4 standard errors of a ratio, one in 16 000 at random; ranks at the same level. */
static void test_exact_draws(void) {
  const char *const names[] = {"rays_logistic", "ising8"};
  for (int i = 0; i < 2; i++) {
    SCRATCH_ARENA(memory);
    Pack pack;
    Score score;
    create_small(&memory, names[i], &pack);
    CHECK_OK(score_draws(&memory, &pack, draw(&memory, &pack, 1, 0), &score));
    CHECK_NEAR(score.ratio.mean, 1, 4 * score.ratio.se);
    CU_ASSERT_TRUE(score.ratio.se < 0.03);
    for (int r = 0; r < SCORE_RANKS; r++)
      CU_ASSERT_TRUE(score.rank_p[r] > 6e-5 && score.rank_p_exact[r] > 6e-5);
    CU_ASSERT_EQUAL(isnan(score.means[0][SCORE_MODE_ERROR].mean), i == 1);
    study_pack_destroy(&pack);
  }
}

/* Checks draws of half the width, and draws moved by 1 in each coordinate; the mode weights are those of
 * exact draws, or not. */
static void test_wrong_draws(void) {
  SCRATCH_ARENA(memory);
  Pack pack;
  Score narrow, moved;
  create_small(&memory, "cross", &pack);
  CHECK_OK(score_draws(&memory, &pack, draw(&memory, &pack, 0.5, 0), &narrow));
  CHECK_OK(score_draws(&memory, &pack, draw(&memory, &pack, 1, 1), &moved));
  for (int r = 0; r < pack.groups; r++) {
    CU_ASSERT_TRUE(narrow.means[r][SCORE_RATIO].mean > 1 + 4 * narrow.means[r][SCORE_RATIO].se);
    /* A cloud cannot be moved by this much at a smaller cost anywhere. */
    CU_ASSERT_TRUE(moved.means[r][SCORE_DISTANCE].mean > sqrt(2) - moved.means[r][SCORE_FLOOR].mean);
    CU_ASSERT_TRUE(moved.means[r][SCORE_DISTANCE].mean < sqrt(2) + moved.means[r][SCORE_FLOOR].mean);
  }
  CU_ASSERT_TRUE(narrow.rank_p[0] < 1e-3);
  for (int r = 0; r < SCORE_RANKS; r++) {
    if (r != 1) CU_ASSERT_TRUE(moved.rank_p[r] < 1e-3); /* the norm may be larger or smaller */
    CU_ASSERT_EQUAL(narrow.rank_p_exact[r], moved.rank_p_exact[r]);
  }
  study_pack_destroy(&pack);
}

/* Checks ties: draws equal to theta* are ranked on either side at random; with no other draws ranks are
 * uniform whatever theta* is. */
static void test_ties(void) {
  SCRATCH_ARENA(memory);
  Pack pack;
  Score score;
  double *theta = NULL, *at;
  create_small(&memory, "ising8", &pack);
  CHECK_OK(arena_new(&memory, (void **)&theta, (size_t)(pack.histories * pack.draws * pack.problem.d),
                     sizeof *theta));
  at = theta;
  for (int g = 0; g < pack.groups; g++)
    for (int h = 0; h < pack.group[g].histories; h++)
      for (int n = 0; n < pack.draws; n++)
        for (int i = 0; i < pack.problem.d; i++) *at++ = pack.group[g].theta[i * pack.group[g].histories + h];
  CHECK_OK(score_draws(&memory, &pack, theta, &score));
  for (int r = 0; r < SCORE_RANKS; r++) CU_ASSERT_TRUE(score.rank_p[r] > 6e-5);
  CU_ASSERT_TRUE(score.ratio.mean > 2);
  study_pack_destroy(&pack);
}

/* Checks against scipy.stats.chisquare of the counts 18, 2, 10, ..., 10. */
static void test_uniform_p(void) {
  double u[110];
  for (int i = 0; i < 110; i++) u[i] = (i % 11 + 0.5) / 11;
  CHECK_NEAR(score_uniform_p(110, u), 1, 1e-15);
  for (int i = 1; i < 89; i += 11) u[i] = 0.01;
  CHECK_NEAR(score_uniform_p(110, u), 0.23507003369761623, 1e-12);
  CU_ASSERT_TRUE(isnan(score_uniform_p(54, u)));
}

/* ---- what is exported */

static Pack exported;

static bool is_theta(double value) {
  for (int g = 0; g < exported.groups; g++)
    for (int i = 0; i < exported.problem.d * exported.group[g].histories; i++)
      if (value == exported.group[g].theta[i]) return true;
  return false;
}

/* Counts the numbers of a text file that are a coordinate of a theta*. */
static int count_theta(const char *path) {
  char *text = NULL, *end;
  size_t size;
  int found = 0;
  CHECK_OK(store_read_text(path, 1 << 20, &text, &size));
  for (char *at = strchr(text, '\n'); at && at[1]; at = end + (*end == ',')) {
    found += is_theta(strtod(at, &end));
    if (end == at) break;
  }
  free(text);
  return found;
}

/* Counts the same among the doubles of histories.nc, at any place of the file. */
static int count_theta_in_netcdf(const char *path) {
  StoreFile *file;
  SCRATCH_ARENA(memory);
  size_t shape[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
  double *x = NULL;
  int found = 0;
  CHECK_OK(store_open(path, &file));
  CHECK_OK(store_shape(file, "x", 3, shape));
  const size_t rows = shape[0] * shape[1], count = rows * shape[2];
  CHECK_OK(arena_new(&memory, (void **)&x, count + rows, sizeof *x));
  CHECK_OK(store_get_doubles(file, "x", x));
  CHECK_OK(store_get_doubles(file, "y", x + count));
  for (size_t k = 0; k < count + rows; k++) found += is_theta(x[k]);
  store_abandon(file);
  return found;
}

/* Checks that nothing that is exported is a coordinate of a theta*, and that the count would find one. */
static void test_theta_is_kept_back(void) {
  SCRATCH_ARENA(memory);
  char folder[] = "/tmp/thompson-score-XXXXXX", path[512], one[64];
  int texts = 0;
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  CHECK_OK(study_pack_create(&memory, "cross", &exported));
  CHECK_OK(app_score_files_export(&exported, folder));
  CHECK_FAILS(app_score_files_export(&exported, folder), STATUS_FILE, "File exists");
  CHECK_FAILS(app_score_files_begin(folder, 1, &exported), STATUS_FILE, "is not empty");
  snprintf(path, sizeof path, "%s/cross", folder);
  DIR *entries = opendir(path);
  for (const struct dirent *entry; (entry = readdir(entries));) {
    snprintf(path, sizeof path, "%s/cross/%s", folder, entry->d_name);
    if (strstr(path, ".csv")) CU_ASSERT_EQUAL(count_theta(path), 0);
    if (strstr(path, "histories.nc")) CU_ASSERT_EQUAL(count_theta_in_netcdf(path), 0);
    texts += strstr(path, ".csv") != NULL;
    unlink(path);
  }
  closedir(entries);
  CU_ASSERT_EQUAL(texts, exported.histories + 1);
  snprintf(one, sizeof one, "x1,y\n1,%.17g\n", exported.group[1].theta[3]);
  snprintf(path, sizeof path, "%s/one.csv", folder);
  CHECK_OK(store_write_text(path, one, true));
  CU_ASSERT_EQUAL(count_theta(path), 1);
  unlink(path);
  snprintf(path, sizeof path, "%s/cross", folder);
  CU_ASSERT_EQUAL(rmdir(path) | rmdir(folder), 0);
  study_pack_destroy(&exported);
}

int main(void) {
  CU_TestInfo tests[] = {{"the histories are the frozen ones", test_frozen},
                         {"the histories are of their theta*", test_histories},
                         {"what is no problem is refused", test_refusals},
                         {"exact draws are at the floor and calibrated", test_exact_draws},
                         {"wrong draws are told apart", test_wrong_draws},
                         {"equal draws share a rank", test_ties},
                         {"uniform ranks", test_uniform_p},
                         {"theta* is in no exported file", test_theta_is_kept_back},
                         CU_TEST_INFO_NULL};
  return harness_run("score", tests);
}

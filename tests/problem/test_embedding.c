/* Embedding files and the bandits on them: rows come back as they are in the file, arms are uniform, priors
 * never learn from theta*, and files that do not fit are refused. */
#include "harness.h"

#include "problem/embedding/embedding_file.h"
#include "problem/problem.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study_problem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 50, ARMS = 7, D = 3, MOST = 60 };

/* How a test's file departs from a good one. */
typedef struct {
  StoreType type;
  int items, theta_columns, arms, feature_columns;
  bool no_theta, no_features, transposed, no_noise;
  int held_step, held_value; /* one item in so many is marked, by this value; 0: none, and no variable */
  double first_theta, noise;
} Form;

static const Form good = {.type = STORE_DOUBLE,
                          .items = ITEMS,
                          .theta_columns = D,
                          .arms = ARMS,
                          .feature_columns = D,
                          .first_theta = 0,
                          .noise = 0.5};

/* Returns the value at a place: theta[item, i] = item + i / 8; features[arm, i] = -arm - i / 8: each number
 * tells its place. */
static double place(int row, int column) { return row + column / 8.0; }

static void put_matrix(StoreFile *file, const Form *form, const char *name, const char *rows_name, int rows,
                       int columns, double sign, double first) {
  double values[MOST * D + MOST] = {0};
  float floats[MOST * D + MOST];
  char dim[32];
  int dimension[2];
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < columns; i++) values[r * columns + i] = sign * place(r, i);
  if (rows > 0) values[0] += first;
  for (int i = 0; i < rows * columns; i++) floats[i] = (float)values[i];
  snprintf(dim, sizeof dim, columns == D ? "dim" : "other_dim");
  CHECK_OK(store_dimension(file, rows_name, (size_t)rows, &dimension[form->transposed]));
  if (store_has_dimension(file, dim))
    dimension[!form->transposed] = 1; /* defined second, for the first matrix */
  else
    CHECK_OK(store_dimension(file, dim, (size_t)columns, &dimension[!form->transposed]));
  CHECK_OK(store_write(file, name, form->type, 2, dimension, NULL, NULL,
                       form->type == STORE_FLOAT ? (const void *)floats : values));
}

static void put_held_out(StoreFile *file, const Form *form) {
  int held[MOST] = {0}, item = 0; /* the dimension that was defined first */
  for (int r = 0; r < form->items; r += form->held_step) held[r] = form->held_value;
  CHECK_OK(store_write(file, "held_out", STORE_INT, 1, &item, NULL, NULL, held));
}

static void write_form(const char *path, const Form *form) {
  StoreFile *file;
  CHECK_OK(store_create(path, &file));
  if (!form->no_noise) CHECK_OK(store_real_attribute(file, "noise", form->noise));
  if (!form->no_theta)
    put_matrix(file, form, "theta", "item", form->items, form->theta_columns, 1, form->first_theta);
  if (!form->no_features) put_matrix(file, form, "features", "arm", form->arms, form->feature_columns, -1, 0);
  if (form->held_step > 0) put_held_out(file, form);
  CHECK_OK(store_finish(file, STATUS_OK));
}

static char path[64];

static StudyFile *study_of(const char *keys) {
  char text[512];
  StudyFile *file = NULL;
  snprintf(text, sizeof text, "name: t\nproblem: {family: embedding, file: %s, %s}\npolicies: [ts]\n", path,
           keys);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  return file;
}

static Status open_problem(const char *keys, StudyFile **study, Problem *problem) {
  *study = study_of(keys);
  return study_problem_create((*study)->settings[0], problem);
}

static void close_problem(StudyFile *study, Problem *problem) {
  problem_destroy(problem);
  config_study_free(study);
}

/* Checks that reals and floats, and the files of embedding_create, are read back unchanged. */
static void test_round_trip(void) {
  SCRATCH_ARENA(memory);
  for (int kind = 0; kind < 3; kind++) {
    Embedding embedding;
    Form form = good;
    form.type = kind == 1 ? STORE_FLOAT : STORE_DOUBLE;
    write_form(path, &form);
    if (kind == 2) {
      StoreFile *file;
      Embedding first;
      CHECK_OK(embedding_read(&memory, path, &first));
      CHECK_OK(embedding_create(path, "a test", &first, NULL, &file));
      CHECK_OK(store_finish(file, STATUS_OK));
    }
    CHECK_OK(embedding_read(&memory, path, &embedding));
    CU_ASSERT_EQUAL_FATAL(embedding.d, D);
    CU_ASSERT_EQUAL_FATAL(embedding.theta.n, ITEMS);
    CU_ASSERT_EQUAL_FATAL(embedding.arms, ARMS);
    CHECK_NEAR(embedding.noise, 0.5, 0);
    for (int i = 0; i < D; i++) {
      for (int r = 0; r < ITEMS; r++) CHECK_NEAR(embedding.theta.theta[i * ITEMS + r], place(r, i), 0);
      for (int r = 0; r < ARMS; r++) CHECK_NEAR(embedding.features[r * D + i], -place(r, i), 0);
    }
  }
}

static void refused(Form form, const char *part) {
  SCRATCH_ARENA(memory);
  Embedding embedding;
  write_form(path, &form);
  CHECK_FAILS(embedding_read(&memory, path, &embedding), STATUS_INPUT, part);
}

static void test_refusals(void) {
  SCRATCH_ARENA(memory);
#define REFUSED(part, ...)                                                                                   \
  do {                                                                                                       \
    Form form = good;                                                                                        \
    __VA_ARGS__;                                                                                             \
    refused(form, part);                                                                                     \
  } while (0)
  REFUSED("has no variable 'theta'", form.no_theta = true);
  REFUSED("has no variable 'features'", form.no_features = true);
  REFUSED("'theta' has 3 columns, but 'features' has 2", form.feature_columns = 2);
  REFUSED("theta[0, 0] is nan", form.first_theta = NAN);
  REFUSED("theta[0, 0] is inf", form.first_theta = INFINITY);
  REFUSED("'theta' is transposed", form.transposed = true);
  REFUSED("'features' has no arms", form.arms = 0);
  REFUSED("'noise' is 0; it must be above zero", form.noise = 0);
  REFUSED("'noise' is inf", form.noise = INFINITY);
  REFUSED("held_out[0] is 2; it must be 0 or 1", form.held_step = 10, form.held_value = 2);
  REFUSED("all of the 50 items are held out", form.held_step = form.held_value = 1);
  REFUSED("none of the 50 items are held out", form.held_step = 1);
#undef REFUSED
  Embedding embedding;
  FILE *out = fopen(path, "wb");
  fputs("no NetCDF", out);
  fclose(out);
  CHECK_FAILS(embedding_read(&memory, path, &embedding), STATUS_INPUT, "not a NetCDF file");
  unlink(path);
  CHECK_FAILS(embedding_read(&memory, path, &embedding), STATUS_FILE, path);
}

static void test_refused_problems(void) {
  StudyFile *study;
  Problem problem;
  write_form(path, &good);
  CHECK_FAILS(open_problem("dimension: 4", &study, &problem), STATUS_INPUT, "holds theta in 3 dimensions");
  close_problem(study, &problem);
  Form form = good;
  form.items = 1;
  write_form(path, &form);
  CHECK_FAILS(open_problem("arms: 2", &study, &problem), STATUS_INPUT, "1 sample of theta");
  close_problem(study, &problem);
  form = good;
  form.no_noise = true;
  write_form(path, &form);
  CHECK_FAILS(open_problem("arms: 2", &study, &problem), STATUS_INPUT, "problem.noise is needed");
  close_problem(study, &problem);
  CHECK_OK(open_problem("noise: 2", &study, &problem));
  close_problem(study, &problem);
  CHECK_OK(config_study_parse("test", "name: t\nproblem: {family: embedding}\npolicies: [ts]\n",
                              &study_schema, 0, NULL, &study));
  CHECK_FAILS(study_problem_create(study->settings[0], &problem), STATUS_INPUT, "needs problem.file");
  close_problem(study, &problem);
}

static void test_noise(void) {
  static const struct {
    const char *keys;
    double noise;
  } cases[] = {{"arms: 2", 0.5}, {"noise: auto", 0.5}, {"noise: 0.75", 0.75}};
  write_form(path, &good);
  for (int i = 0; i < 3; i++) {
    StudyFile *study;
    Problem problem;
    CHECK_OK(open_problem(cases[i].keys, &study, &problem));
    CHECK_NEAR(problem.likelihood.noise, cases[i].noise, 0);
    close_problem(study, &problem);
  }
}

/* Returns the row of the file that arm k of run b is; -1 when it is none of them. */
static int row_of(const World *world, int k, int b) {
  double first = world->features[(size_t)(k * D) * (size_t)world->runs + (size_t)b];
  int row = (int)-first;
  for (int i = 0; i < D; i++)
    if (world->features[(size_t)(k * D + i) * (size_t)world->runs + (size_t)b] != -place(row, i)) return -1;
  return row >= 0 && row < ARMS ? row : -1;
}

/* Checks that arms are whole rows, each row equally often and no two alike, drawn afresh in each round; they
 * do not change with more arms, other blocks, or another visit. */
static void test_arms(void) {
  enum { K = 4, RUNS = 10, ROUNDS = 100 };
  StudyFile *study, *wider;
  Problem problem, wide;
  World world, other, alone;
  int count[ARMS] = {0}, changed = 0, same = 0, previous[K * RUNS] = {0};
  write_form(path, &good);
  CHECK_OK(open_problem("arms: 4, resample_arms: true", &study, &problem));
  CHECK_OK(open_problem("arms: 6, resample_arms: true", &wider, &wide));
  CHECK_OK(world_create(&problem, 0, 5, RUNS, &world));
  CHECK_OK(world_create(&wide, 0, 5, RUNS, &other));
  CHECK_OK(world_create(&problem, 0, 8, 1, &alone));
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    world_advance(&world, round), world_advance(&other, round), world_advance(&alone, round);
    for (int k = 0; k < K; k++)
      for (int b = 0; b < RUNS; b++) {
        int row = row_of(&world, k, b);
        CU_ASSERT_TRUE_FATAL(row >= 0);
        count[row]++;
        for (int other_arm = 0; other_arm < k; other_arm++)
          CU_ASSERT_NOT_EQUAL(row, row_of(&world, other_arm, b));
        changed += row != previous[k * RUNS + b];
        previous[k * RUNS + b] = row;
        same += row == row_of(&other, k, b);
        if (b == 3) CU_ASSERT_EQUAL(row, row_of(&alone, k, 0));
      }
  }
  CU_ASSERT_EQUAL(same, K * RUNS * ROUNDS);
  /* 4000 draws: 571.4 per row, sd at most sqrt(4000 (1/7) (6/7)) = 22; a change with probability 6/7; 4.5 sd
   * each. */
  for (int row = 0; row < ARMS; row++) CHECK_NEAR(count[row], 4000.0 / 7, 4.5 * 22.2);
  CHECK_NEAR(changed, 4000.0 * 6 / 7, 4.5 * 22.2);
  world_destroy(&world), world_destroy(&other), world_destroy(&alone);
  close_problem(study, &problem), close_problem(wider, &wide);
  CHECK_OK(open_problem("arms: 4, resample_arms: false", &study, &problem));
  CHECK_OK(world_create(&problem, 0, 5, RUNS, &world));
  double before[K * D * RUNS];
  memcpy(before, world.features, sizeof before);
  world_advance(&world, 1), world_advance(&world, 2);
  CU_ASSERT_EQUAL(memcmp(before, world.features, sizeof before), 0); /* one set for each run */
  world_destroy(&world);
  close_problem(study, &problem);
}

/* Checks that a study can have every arm of the file, in the file's order; fewer arms than 100 are all by
 * default, and more than there are are refused. With a theta* for each arm the rows are contexts. */
static void test_all_arms(void) {
  enum { RUNS = 3 };
  static const char *const all[] = {"arms: all", "arms: auto", "arms: 7", "arms: all, resample_arms: true"};
  StudyFile *study;
  Problem problem;
  World world;
  write_form(path, &good);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    CHECK_OK(open_problem(all[i], &study, &problem));
    CU_ASSERT_EQUAL_FATAL(problem.arms, ARMS);
    CHECK_OK(world_create(&problem, 0, 5, RUNS, &world));
    world_advance(&world, 1);
    for (int k = 0; k < ARMS; k++)
      for (int b = 0; b < RUNS; b++) CU_ASSERT_EQUAL(row_of(&world, k, b), k);
    world_destroy(&world);
    close_problem(study, &problem);
  }
  CHECK_FAILS(open_problem("arms: 8", &study, &problem), STATUS_INPUT, "has 7 arms");
  close_problem(study, &problem);
  CHECK_OK(open_problem("arms: 8, unknown: per_arm", &study, &problem));
  CU_ASSERT_EQUAL(problem.arms, 8);
  close_problem(study, &problem);
  CHECK_FAILS(open_problem("arms: all, unknown: per_arm", &study, &problem), STATUS_INPUT, "are contexts");
  close_problem(study, &problem);
  CHECK_OK(config_study_parse("test", "name: t\nproblem: {arms: all}\npolicies: [ts]\n", &study_schema, 0,
                              NULL, &study));
  CHECK_FAILS(study_problem_create(study->settings[0], &problem), STATUS_INPUT,
              "problem.arms: all, but only");
  close_problem(study, &problem);
}

/* Checks that theta* comes from the test part and priors from the rest, and that both are whole rows. */
static void test_split(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 500 };
  StudyFile *study;
  Problem problem;
  write_form(path, &good);
  CHECK_OK(open_problem("arms: 4", &study, &problem));
  for (uint32_t replicate = 0; replicate < 3; replicate++) {
    Samples samples;
    double theta[D * RUNS];
    bool learned[ITEMS] = {false};
    CHECK_OK(problem_training_samples(&memory, &problem, replicate, -1, &samples));
    CU_ASSERT_EQUAL(samples.n, 40); /* 0.2 of 50 are kept */
    for (int s = 0; s < samples.n; s++) {
      int row = (int)samples.theta[s];
      for (int i = 0; i < D; i++) CHECK_NEAR(samples.theta[i * samples.n + s], place(row, i), 0);
      learned[row] = true;
    }
    problem_theta(&problem, replicate, 0, RUNS, theta);
    for (int b = 0; b < RUNS; b++) {
      int row = (int)theta[b];
      for (int i = 0; i < D; i++) CHECK_NEAR(theta[i * RUNS + b], place(row, i), 0);
      CU_ASSERT_FALSE(learned[row]);
    }
  }
  close_problem(study, &problem);
}

/* Checks marked items: the items that the file marks as held out are theta* of every replicate, and priors
 * learn from all others; also when the file has been written again. */
static void test_held_out(void) {
  SCRATCH_ARENA(memory);
  enum { RUNS = 500, HELD = 17 };
  Form form = good;
  form.held_step = 3, form.held_value = 1;
  write_form(path, &form);
  for (int again = 0; again < 2; again++) {
    StudyFile *study;
    Problem problem;
    CHECK_OK(open_problem("arms: 4", &study, &problem));
    for (uint32_t replicate = 0; replicate < 2; replicate++) {
      Samples samples;
      double theta[D * RUNS];
      bool met[ITEMS] = {false}, learned[ITEMS] = {false};
      CHECK_OK(problem_training_samples(&memory, &problem, replicate, -1, &samples));
      problem_theta(&problem, replicate, 0, RUNS, theta);
      CU_ASSERT_EQUAL(samples.n, ITEMS - HELD);
      for (int s = 0; s < samples.n; s++) learned[(int)samples.theta[s]] = true;
      for (int b = 0; b < RUNS; b++) {
        met[(int)theta[b]] = true;
        for (int i = 0; i < D; i++) CHECK_NEAR(theta[i * RUNS + b], place((int)theta[b], i), 0);
      }
      for (int r = 0; r < ITEMS; r++) CU_ASSERT(met[r] == (r % 3 == 0) && learned[r] != met[r]);
    }
    close_problem(study, &problem);
    Embedding first;
    StoreFile *file;
    CHECK_OK(embedding_read(&memory, path, &first));
    CU_ASSERT_EQUAL(first.held_out, HELD);
    CHECK_OK(embedding_create(path, "a test", &first, NULL, &file));
    CHECK_OK(store_finish(file, STATUS_OK));
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"files come back as they were written", test_round_trip},
                         {"files that do not fit are refused", test_refusals},
                         {"studies that do not fit are refused", test_refused_problems},
                         {"noise of the file or of the study", test_noise},
                         {"arms are uniform rows, each at most once", test_arms},
                         {"all arms, and no more", test_all_arms},
                         {"theta is split", test_split},
                         {"the file says which theta are held out", test_held_out},
                         CU_TEST_INFO_NULL};
  snprintf(path, sizeof path, "embedding-%d.nc", (int)getpid());
  int failed = harness_run("embedding", tests);
  unlink(path);
  return failed;
}

/* Alternating least squares: one half-sweep is ridge regression, NumPy agrees over many sweeps, and a
 * low-rank matrix is recovered. */
#include "harness.h"

#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "core/rng.h"
#include "io/store.h"
#include "problem/embedding/embedding_factorisation.h"

#include <stdlib.h>
#include <string.h>

static double *array(size_t count) {
  double *out = calloc(count, sizeof *out);
  if (!out) abort();
  return out;
}

static Arena kept; /* what is read and trained; freed at the end */

/* Makes all pairs of `users` and `items` for which keep(u, i); value[users, items]. */
static Ratings make(int users, int items, bool (*keep)(int user, int item), const double *value) {
  Ratings ratings = {.users = users, .items = items};
  if (arena_new(&kept, (void **)&ratings.rating, (size_t)users * (size_t)items, sizeof *ratings.rating))
    abort();
  for (int u = 0; u < users; u++)
    for (int i = 0; i < items; i++)
      if (keep(u, i)) ratings.rating[ratings.count++] = (Rating){u, i, value[u * items + i]};
  return ratings;
}

static void normals(uint32_t run, int n, double *out) {
  Rng rng = {.key = rng_key(17, RNG_TEST), .run = run};
  rng_normal(&rng, n, out);
}

static bool keep_most(int user, int item) { return (user * 7 + item * 3) % 5 != 0; }
static bool keep_all(int user, int item) { return user >= 0 && item >= 0; }

/* Computes w = (X'X + ridge I)^-1 X'y by one dense inverse, written separately from the program's own
 * loops. */
static void ridge_regression(int n, int d, double ridge, const double *x, const double *y, double *w) {
  double *a = array((size_t)d * d), *inverse = array((size_t)d * d), *b = array((size_t)d);
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      a[i * d + j] = i == j ? ridge : 0;
      for (int e = 0; e < n; e++) a[i * d + j] += x[e * d + i] * x[e * d + j];
    }
  for (int i = 0; i < d; i++)
    for (int e = 0; e < n; e++) b[i] += x[e * d + i] * y[e];
  CHECK_OK(linalg_cholesky(d, a));
  linalg_inverse(d, a, inverse);
  for (int i = 0; i < d; i++) {
    w[i] = 0;
    for (int j = 0; j < d; j++) w[i] += inverse[i * d + j] * b[j];
  }
  free(a), free(inverse), free(b);
}

/* Checks a half-sweep with ranks below and above LINALG_BATCH_DIMENSION, both sides, rows with more and fewer
 * ratings than the rank. */
static void test_half_sweep(void) {
  enum { USERS = 13, ITEMS = 11, MOST = 20 };
  double value[USERS * ITEMS], other[USERS * MOST], own[USERS * MOST], workspace[MOST * MOST];
  normals(1, USERS * ITEMS, value);
  Ratings ratings = make(USERS, ITEMS, keep_most, value);
  for (int d = 1; d <= MOST; d += d < 5 ? 2 : 15)
    for (int items = 0; items < 2; items++) {
      SCRATCH_ARENA(memory);
      SparseRows sparse;
      FactorisationSetup setup = {.d = d, .ridge = 0.5};
      CHECK_OK(embedding_factorisation_rows_create(&memory, &ratings, 0.25, items, &sparse));
      normals(2, USERS * d, other);
      embedding_factorisation_update(&sparse, &setup, other, own, workspace);
      for (int row = 0; row < sparse.rows; row++) {
        double x[USERS * MOST], y[USERS], w[MOST];
        int n = 0;
        for (int column = 0; column < sparse.columns; column++) {
          int user = items ? column : row, item = items ? row : column;
          if (!keep_most(user, item)) continue;
          memcpy(x + n * d, other + column * d, (size_t)d * sizeof *x);
          y[n++] = value[user * ITEMS + item] - 0.25;
        }
        ridge_regression(n, d, setup.ridge, x, y, w);
        for (int i = 0; i < d; i++)
          CHECK_NEAR(own[row * d + i], w[i], 1e-11); /* well conditioned because of the ridge */
      }
    }
}

/* Performs all sweeps, from the given item vectors; user[users, d], item[items, d]. */
static void alternate(const Ratings *ratings, const FactorisationSetup *setup, double *user, double *item) {
  SCRATCH_ARENA(memory);
  SparseRows users, items;
  double *workspace = array((size_t)setup->d * (size_t)setup->d);
  CHECK_OK(embedding_factorisation_rows_create(&memory, ratings, ratings_mean(ratings), false, &users));
  CHECK_OK(embedding_factorisation_rows_create(&memory, ratings, ratings_mean(ratings), true, &items));
  for (int s = 0; s < setup->sweeps; s++) {
    embedding_factorisation_update(&users, setup, item, user, workspace);
    embedding_factorisation_update(&items, setup, user, item, workspace);
  }
  free(workspace);
}

static void ignore(int sweep, double rmse) { (void)sweep, (void)rmse; }

static double *golden(StoreFile *file, const char *name, size_t count) {
  double *out = array(count);
  CHECK_OK(store_get_doubles(file, name, out));
  return out;
}

static void test_numpy(void) {
  const char *root = getenv("THOMPSON_SOURCE");
  char data[4096], numbers[4096];
  const char *input = data;
  snprintf(data, sizeof data, "%s/data/samples/ratings_1m.dat", root ? root : "..");
  snprintf(numbers, sizeof numbers, "%s/tests/golden/factorisation.nc", root ? root : "..");
  Ratings ratings;
  StoreFile *file;
  size_t shape[2] = {SIZE_MAX, SIZE_MAX}, sweeps = SIZE_MAX;
  double mean;
  FactorisationSetup setup = {.d = 4};
  CHECK_OK(ratings_read(&kept, 1, &input, "auto", &ratings));
  CHECK_OK(store_open(numbers, &file));
  CHECK_OK(store_shape(file, "start", 2, shape));
  CHECK_OK(store_shape(file, "rmse", 1, &sweeps));
  CHECK_OK(store_get_real_attribute(file, "mean", &mean));
  CHECK_OK(store_get_real_attribute(file, "ridge", &setup.ridge));
  CU_ASSERT_EQUAL_FATAL(shape[0], (size_t)ratings.items);
  CU_ASSERT_EQUAL_FATAL(shape[1], 4);
  size_t item_size = shape[0] * 4, user_size = (size_t)ratings.users * 4;
  double *item = golden(file, "start", item_size), *user = array(user_size),
         *expected_user = golden(file, "user_vector", user_size),
         *expected_item = golden(file, "item_vector", item_size);
  CHECK_NEAR(ratings_mean(&ratings), mean, 1e-13);
  setup.sweeps = (int)sweeps;
  alternate(&ratings, &setup, user, item);
  /* Rounding grows a little from sweep to sweep. */
  for (size_t i = 0; i < user_size; i++) CHECK_NEAR(user[i], expected_user[i], 1e-9);
  for (size_t i = 0; i < item_size; i++) CHECK_NEAR(item[i], expected_item[i], 1e-9);
  free(item), free(user), free(expected_user), free(expected_item);
  store_abandon(file);
}

enum { LOW_USERS = 40, LOW_ITEMS = 30, LOW_RANK = 3 };

static bool keep_mirrored(int user, int item) { return keep_most(user % (LOW_USERS / 2), item); }

/* Checks that without noise, with a tiny ridge and a fifth of the entries missing, a matrix of rank 3 is
 * recovered, the missing entries included. The second half of the users mirrors the first, so that the mean
 * rating is exactly 3.5 and its subtraction does not change the rank. */
static void test_low_rank(void) {
  double u[LOW_USERS * LOW_RANK], v[LOW_ITEMS * LOW_RANK], value[LOW_USERS * LOW_ITEMS];
  int half = LOW_USERS / 2 * LOW_RANK;
  normals(3, half, u);
  normals(4, LOW_ITEMS * LOW_RANK, v);
  for (int i = 0; i < half; i++) u[half + i] = -u[i];
  for (int r = 0; r < LOW_USERS; r++)
    for (int i = 0; i < LOW_ITEMS; i++) {
      double *entry = &value[r * LOW_ITEMS + i];
      *entry = 3.5;
      for (int k = 0; k < LOW_RANK; k++) *entry += u[r * LOW_RANK + k] * v[i * LOW_RANK + k];
    }
  Ratings ratings = make(LOW_USERS, LOW_ITEMS, keep_mirrored, value);
  FactorisationSetup setup = {.d = LOW_RANK, .ridge = 1e-9, .sweeps = 100, .seed = 3};
  SCRATCH_ARENA(memory);
  Factorisation found;
  CHECK_OK(embedding_factorise(&memory, &ratings, &setup, ignore, &found));
  CHECK_NEAR(ratings_mean(&ratings), 3.5, 1e-12);
  double worst = 0;
  for (int r = 0; r < LOW_USERS; r++)
    for (int i = 0; i < LOW_ITEMS; i++) {
      double guess = 3.5;
      for (int k = 0; k < LOW_RANK; k++) guess += found.user[r * LOW_RANK + k] * found.item[i * LOW_RANK + k];
      worst = fmax(worst, fabs(guess - value[r * LOW_ITEMS + i]));
    }
  /* The bias is about the ridge over the smallest squared singular value that a row sees, 1e-9 / 1. */
  CHECK_NEAR(worst, 0, 1e-7);
  CHECK_NEAR(found.rmse[setup.sweeps - 1], 0, 1e-7);
}

/* Checks that the penalised sum of squares never rises, so with a tiny ridge the residuals never do. The
 * start depends on the seed and lies in (-1, 1). */
static void test_descent_and_start(void) {
  enum { USERS = 25, ITEMS = 20 };
  double value[USERS * ITEMS];
  normals(5, USERS * ITEMS, value);
  Ratings ratings = make(USERS, ITEMS, keep_all, value);
  FactorisationSetup setup = {.d = 3, .ridge = 1e-9, .sweeps = 30, .seed = 8};
  SCRATCH_ARENA(memory);
  Factorisation first, other;
  CHECK_OK(embedding_factorise(&memory, &ratings, &setup, ignore, &first));
  for (int s = 1; s < setup.sweeps; s++) CU_ASSERT_TRUE(first.rmse[s] <= first.rmse[s - 1] * (1 + 1e-12));
  setup.seed = 9;
  CHECK_OK(embedding_factorise(&memory, &ratings, &setup, ignore, &other));
  CU_ASSERT_NOT_EQUAL(memcmp(first.item, other.item, ITEMS * 3 * sizeof *first.item), 0);
  double start[1000 * 3], more[1001 * 3], sum = 0, squares = 0;
  embedding_factorisation_start(&setup, 1000, start);
  embedding_factorisation_start(&setup, 1001, more);
  CU_ASSERT_EQUAL(memcmp(start, more, sizeof start), 0); /* with more items the first ones stay as they are */
  for (int i = 0; i < 3000; i++) {
    CU_ASSERT_TRUE(fabs(start[i]) < 1);
    sum += start[i] / 3000, squares += start[i] * start[i] / 3000;
  }
  /* U(-1, 1): mean 0, sd 0.577; mean square 1/3, sd 0.298; 3000 draws, 4 standard errors. */
  CHECK_NEAR(sum, 0, 4 * 0.577 / sqrt(3000));
  CHECK_NEAR(squares, 1.0 / 3, 4 * 0.298 / sqrt(3000));
}

int main(void) {
  CU_TestInfo tests[] = {{"a half-sweep is ridge regression", test_half_sweep},
                         {"NumPy's alternating least squares", test_numpy},
                         {"a low-rank matrix is found again", test_low_rank},
                         {"residuals fall; the start is a named stream", test_descent_and_start},
                         CU_TEST_INFO_NULL};
  const int status = harness_run("factorisation", tests);
  arena_free(&kept);
  return status;
}

/* thompson prepare movielens: ratings to user and movie vectors (DiffTS paper, Section 6.3). Movie vectors
 * are the parameters theta, user vectors the features of arms. */
#include "app/app.h"
#include "app/prepare.h"
#include "core/memory.h"
#include "io/digest.h"
#include "parallel/factorise.h"
#include "problem/embedding/embedding_file.h"
#include "problem/embedding/ratings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const ConfigKey prepare_movielens_keys[] = {
    {.name = "format",
     .type = KEY_WORD,
     .fallback = "auto",
     .words = RATINGS_FORMATS,
     .help = "form of the ratings; auto: as the first line of each file shows"},
    {.name = "dimension",
     .type = KEY_INT,
     .minimum = 1,
     .maximum = 1000,
     .fallback = "5",
     .help = "rank d of the factorisation"},
    {.name = "ridge",
     .type = KEY_REAL,
     .minimum = 1e-9,
     .maximum = 1e9,
     .fallback = "1",
     .help = "penalty on the squared length of every vector"},
    {.name = "sweeps",
     .type = KEY_INT,
     .minimum = 1,
     .maximum = 100000,
     .fallback = "50",
     .help = "sweeps of alternating least squares"},
    {.name = NULL}};

/* Root mean squared error of the mean rating as the prediction of every rating. */
static double baseline_rmse(const Ratings *ratings, double mean) {
  double sum = 0;
  for (int64_t i = 0; i < ratings->count; i++) {
    double residual = ratings->rating[i].value - mean;
    sum += residual * residual;
  }
  return sqrt(sum / (double)ratings->count);
}

static void report(int sweep, double rmse) {
  if (app_speaks) fprintf(stderr, "sweep %d: root mean squared residual %.6f\n", sweep, rmse);
}

/* The ratings that the vectors came from, whatever the form of their files. */
static void hash_ratings(const Ratings *ratings, char hash[DIGEST_SIZE]) {
  Digest digest;
  digest_begin(&digest);
  for (int64_t i = 0; i < ratings->count; i++) {
    const Rating *rating = &ratings->rating[i];
    digest_add(&digest, &ratings->user_id[rating->user], sizeof *ratings->user_id);
    digest_add(&digest, &ratings->item_id[rating->item], sizeof *ratings->item_id);
    digest_add(&digest, &rating->value, sizeof rating->value);
  }
  digest_end(&digest, hash);
}

static Status write_ids(StoreFile *file, const char *name, int dimension, const char *long_name,
                        const int64_t *ids) {
  int id;
  TRY(store_variable(file, name, STORE_INT64, 1, &dimension, long_name, NULL, &id));
  return store_put(file, id, ids);
}

static Status write_details(StoreFile *file, const PrepareJob *job, const Ratings *ratings,
                            const FactorisationSetup *setup, const Factorisation *result, int item, int arm) {
  char hash[DIGEST_SIZE];
  int sweep, id;
  hash_ratings(ratings, hash);
  TRY(store_text_attribute(file, NULL, "ratings_sha256", hash));
  TRY(store_int_attribute(file, NULL, "ratings", ratings->count));
  TRY(store_real_attribute(file, NULL, "rating_mean", result->mean));
  TRY(store_real_attribute(file, NULL, "rmse_of_mean", baseline_rmse(ratings, result->mean)));
  TRY(store_real_attribute(file, NULL, "ridge", setup->ridge));
  TRY(store_int_attribute(file, NULL, "seed", (int64_t)job->seed));
  TRY(write_ids(file, "item_id", item, "movie of the input files", ratings->item_id));
  TRY(write_ids(file, "arm_id", arm, "user of the input files", ratings->user_id));
  TRY(store_dimension(file, "sweep", (size_t)result->sweeps, &sweep));
  TRY(store_variable(file, "rmse", STORE_DOUBLE, 1, &sweep, "root mean squared residual after a sweep", "1",
                     &id));
  return store_put(file, id, result->rmse);
}

/* item[items, d] as theta[d, items]. */
static Status write_file(const PrepareJob *job, const Ratings *ratings, const FactorisationSetup *setup,
                         const Factorisation *result) {
  int d = result->d, item, arm;
  Embedding embedding = {.d = d,
                         .theta = {.d = d, .n = ratings->items},
                         .arms = ratings->users,
                         .features = result->user,
                         .noise = result->rmse[result->sweeps - 1]};
  StoreFile *file;
  NEW(embedding.theta.theta, (size_t)d * (size_t)ratings->items);
  for (int m = 0; m < ratings->items; m++)
    for (int i = 0; i < d; i++)
      embedding.theta.theta[(size_t)i * (size_t)ratings->items + (size_t)m] = result->item[(size_t)m * d + i];
  Status status = embedding_create(job->output, "embedding of ratings by alternating least squares",
                                   &embedding, &item, &arm, &file);
  free(embedding.theta.theta);
  TRY(status);
  return store_finish(file, write_details(file, job, ratings, setup, result, item, arm));
}

static void print_summary(const PrepareJob *job, const Ratings *ratings, const FactorisationSetup *setup,
                          const Factorisation *result) {
  double rmse = result->rmse[result->sweeps - 1];
  printf("%s: %lld ratings of %d movies by %d users, mean %.6f\n", job->output, (long long)ratings->count,
         ratings->items, ratings->users, result->mean);
  printf("  root mean squared error: mean rating alone %.4f, factorisation of rank %d %.4f (%d sweeps, ridge "
         "%g)\n",
         baseline_rmse(ratings, result->mean), result->d, rmse, result->sweeps, setup->ridge);
  printf("  noise, from the residuals: %.4f\n", rmse);
}

Status prepare_movielens(const Parallel *parallel, const PrepareJob *job) {
  FactorisationSetup setup = {.d = (int)config_int(job->options, "dimension"),
                              .ridge = config_real(job->options, "ridge"),
                              .sweeps = (int)config_int(job->options, "sweeps"),
                              .seed = job->seed};
  Ratings ratings = {0};
  Factorisation result = {0};
  Status status = STATUS_OK;
  if (parallel->rank == 0)
    status = ratings_read(job->input_count, job->inputs, config_text(job->options, "format"), &ratings);
  status = parallel_agree(parallel, status);
  if (status == STATUS_OK) status = factorise_share(parallel, &ratings);
  if (status == STATUS_OK) status = factorise(parallel, &ratings, &setup, report, &result);
  if (status == STATUS_OK && parallel->rank == 0) {
    status = write_file(job, &ratings, &setup, &result);
    if (status == STATUS_OK) print_summary(job, &ratings, &setup, &result);
  }
  factorise_free(&result);
  ratings_free(&ratings);
  return parallel_agree(parallel, status);
}

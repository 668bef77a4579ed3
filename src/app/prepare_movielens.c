/* thompson prepare movielens: turns ratings into user and movie vectors (DiffTS paper, Section 6.3). Movie
 * vectors are the parameters theta and user vectors the features of arms, or the other way round
 * (tasks=users). */
#include "app/app.h"
#include "app/prepare.h"
#include "io/config/config_rows.h"
#include "io/digest.h"
#include "problem/embedding/embedding_factorisation.h"
#include "problem/embedding/embedding_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* With --option tasks=users: the situation of a service that recommends movies to new
 * users. The movies' vectors, factorised from the ratings of some users, are the features of arms; each
 * held-out user is a task, whose theta* is the vector that fits this user's ratings of these movies; and the
 * ratings of the other users are the logs that a prior is learned from (`thompson train --logs`). */

/* Writes logs into an embedding file, in which `dim` is the dimension of theta: task(observation), the user;
 * x(observation, dim), the movie's vector; and y(observation), the rating minus the mean. */
static Status prepare_movielens_write_logs(StoreFile *file, int dim, const Ratings *ratings,
                                           const Factorisation *result) {
  enum { ROWS = 4096 /* written at once */ };
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)result->d, total = (size_t)ratings->count;
  int axis[] = {0, dim}, task, x, y;
  int64_t *tasks;
  double *features, *rewards;
  ALLOCATE_ARRAYS(&scratch, ROWS, tasks, rewards);
  ALLOCATE(&scratch, features, ROWS * d);
  TRY(store_dimension(file, "observation", total, &axis[0]));
  TRY(store_variable(file, "task", STORE_INT64, 1, axis, "user of the input files", NULL, &task));
  TRY(store_variable(file, "x", STORE_DOUBLE, 2, axis, "features of the movie", "1", &x));
  TRY(store_variable(file, "y", STORE_DOUBLE, 1, axis, "rating minus the mean rating", "1", &y));
  for (size_t first = 0; first < total; first += ROWS) {
    const size_t n = total - first < ROWS ? total - first : ROWS, start[] = {first, 0}, count[] = {n, d};
    for (size_t r = 0; r < n; r++) {
      const Rating *rating = &ratings->rating[first + r];
      tasks[r] = ratings->user_id[rating->user];
      memcpy(features + r * d, result->item + (size_t)rating->item * d, d * sizeof *features);
      rewards[r] = rating->value - result->mean;
    }
    TRY(store_put_part(file, task, start, count, tasks));
    TRY(store_put_part(file, x, start, count, features));
    TRY(store_put_part(file, y, start, count, rewards));
  }
  return STATUS_OK;
}

const ConfigKey prepare_movielens_keys[] = {
    {WORD("format", "auto", "format of the ratings; auto: recognised from the first line of each file"),
     .words = RATINGS_FORMATS},
    {WORD("tasks", "movies",
          "what each theta belongs to: movies, with users as arms, as in the paper; or users, with movies as "
          "arms, "
          "some users held out and the ratings of the others written as logs for `train --logs`"),
     .words = "movies users"},
    {REAL("test_fraction", 1e-9, 0.999999999, "0.2", "tasks=users: share of users to hold out")},
    {INT("dimension", 1, 1000, "5", "rank d of the factorisation")},
    {REAL("ridge", 1e-9, 1e9, "1", "penalty on the squared length of every vector")},
    {INT("sweeps", 1, 100000, "50", "sweeps of alternating least squares")},
    {.name = NULL}};

typedef struct {
  FactorisationSetup setup;
  Ratings ratings, held_out; /* of the users to learn from, and of the held-out users */
  Factorisation result;
  double baseline; /* root mean squared error of predicting every rating by the mean rating */
  Samples theta;
  int64_t *id; /* [theta.n], in the input files */
} Movielens;

/* Copies rows[n, d] into the samples, starting at sample `first`. */
static void prepare_movielens_put_rows(int first, int n, const int64_t *id, const double *rows,
                                       Movielens *out) {
  const size_t d = (size_t)out->theta.d, stride = (size_t)out->theta.n;
  memcpy(out->id + first, id, (size_t)n * sizeof *id);
  for (size_t m = 0; m < (size_t)n; m++)
    for (size_t i = 0; i < d; i++) out->theta.theta[i * stride + (size_t)first + m] = rows[m * d + i];
}

static void prepare_movielens_report(int sweep, double rmse) {
  fprintf(stderr, "sweep %d: root mean squared residual %.6f\n", sweep, rmse);
}

static Status prepare_movielens_add_details(StoreFile *file, const PrepareJob *job, const Movielens *work,
                                            const int *axes) {
  const bool users = work->held_out.users > 0;
  const Factorisation *result = &work->result;
  const Ratings *ratings = &work->ratings;
  char hash[DIGEST_SIZE];
  int sweep;
  Digest digest;
  digest_begin(&digest); /* of the ratings, independently of their file format */
  for (int64_t i = 0; i < ratings->count; i++) {
    const Rating *rating = &ratings->rating[i];
    digest_add(&digest, &ratings->user_id[rating->user], sizeof *ratings->user_id);
    digest_add(&digest, &ratings->item_id[rating->item], sizeof *ratings->item_id);
    digest_add(&digest, &rating->value, sizeof rating->value);
  }
  TRY(digest_end(&digest, hash));
  TRY(store_text_attribute(file, NULL, "ratings_sha256", hash));
  TRY(store_int_attribute(file, "ratings", ratings->count));
  TRY(store_real_attribute(file, "rating_mean", result->mean));
  TRY(store_real_attribute(file, "rmse_of_mean", work->baseline));
  TRY(store_real_attribute(file, "ridge", work->setup.ridge));
  TRY(store_int_attribute(file, "seed", (int64_t)job->seed));
  TRY(store_write(file, "item_id", STORE_INT64, 1, &axes[0],
                  users ? "user of the input files" : "movie of the input files", NULL, work->id));
  TRY(store_write(file, "arm_id", STORE_INT64, 1, &axes[1],
                  users ? "movie of the input files" : "user of the input files", NULL,
                  users ? ratings->item_id : ratings->user_id));
  TRY(store_dimension(file, "sweep", (size_t)result->sweeps, &sweep));
  TRY(store_write(file, "rmse", STORE_DOUBLE, 1, &sweep, "root mean squared residual after a sweep", "1",
                  result->rmse));
  return users ? prepare_movielens_write_logs(file, axes[2], ratings, result) : STATUS_OK;
}

/* Computes the samples of theta: the movies' vectors or, with tasks=users, those of the users, first the
 * held-out ones, by a ridge regression of their ratings on the movies' vectors, then the others, by their
 * vectors in the factorisation. */
static Status prepare_movielens_theta(Arena *memory, Movielens *work) {
  SCRATCH_ARENA(scratch);
  const Ratings *ratings = &work->ratings, *held_out = &work->held_out;
  const Factorisation *result = &work->result;
  const bool users = held_out->users > 0;
  const size_t d = (size_t)result->d, own = (size_t)held_out->users * d;
  SparseRows sparse;
  double *rows;
  Samples *theta = &work->theta;
  *theta = (Samples){.n = users ? held_out->users + ratings->users : ratings->items, .d = result->d};
  ALLOCATE(memory, theta->theta, (size_t)theta->n * d);
  ALLOCATE(memory, work->id, theta->n);
  if (!users) {
    prepare_movielens_put_rows(0, ratings->items, ratings->item_id, result->item, work);
    return STATUS_OK;
  }
  ALLOCATE(&scratch, rows, own + d * d);
  TRY(embedding_factorisation_rows_create(&scratch, held_out, result->mean, false, &sparse));
  embedding_factorisation_update(&sparse, &work->setup, result->item, rows, rows + own);
  prepare_movielens_put_rows(0, held_out->users, held_out->user_id, rows, work);
  prepare_movielens_put_rows(held_out->users, ratings->users, ratings->user_id, result->user, work);
  return STATUS_OK;
}

static void prepare_movielens_print_summary(const PrepareJob *job, const Movielens *work) {
  const Ratings *ratings = &work->ratings;
  const Factorisation *result = &work->result;
  printf("%s: %lld ratings of %d movies by %d users, mean %.6f\n", job->output, (long long)ratings->count,
         ratings->items, ratings->users, result->mean);
  printf("  root mean squared error: mean rating alone %.4f, factorisation of rank %d %.4f (%d sweeps, ridge "
         "%g)\n",
         work->baseline, result->d, result->rmse[result->sweeps - 1], result->sweeps, work->setup.ridge);
  printf("  noise, from the residuals: %.4f\n", result->rmse[result->sweeps - 1]);
  if (work->held_out.users > 0)
    printf("  %d more users are held out, with %lld ratings of these movies\n", work->held_out.users,
           (long long)work->held_out.count);
}

static void prepare_movielens_destroy(Movielens *work) {
  ratings_free(&work->ratings);
  ratings_free(&work->held_out);
}

Status prepare_movielens(const PrepareJob *job) {
  SCRATCH_ARENA(memory);
  SCOPED(Ratings, all, ratings_free);
  SCOPED(Movielens, work, prepare_movielens_destroy);
  work.setup = (FactorisationSetup){.d = (int)config_int(job->options, "dimension"),
                                    .ridge = config_real(job->options, "ridge"),
                                    .sweeps = (int)config_int(job->options, "sweeps"),
                                    .seed = job->seed};
  const bool users = config_is(job->options, "tasks", "users");
  const Factorisation *result = &work.result;
  int axes[3];
  StoreFile *file;
  TRY(ratings_read(job->input_count, job->inputs, config_text(job->options, "format"),
                   users ? &all : &work.ratings));
  if (users)
    TRY(ratings_split(&all, config_real(job->options, "test_fraction"), job->seed, &work.ratings,
                      &work.held_out));
  ratings_free(&all);
  TRY(embedding_factorise(&memory, &work.ratings, &work.setup, prepare_movielens_report, &work.result));
  for (int64_t i = 0; i < work.ratings.count; i++) {
    const double residual = work.ratings.rating[i].value - result->mean;
    work.baseline += residual * residual;
  }
  work.baseline = sqrt(work.baseline / (double)work.ratings.count);
  TRY(prepare_movielens_theta(&memory, &work));
  const Embedding embedding = {.d = result->d,
                               .theta = work.theta,
                               .held_out = work.held_out.users,
                               .arms = users ? work.ratings.items : work.ratings.users,
                               .features = users ? result->item : result->user,
                               .noise = result->rmse[result->sweeps - 1]};
  TRY(embedding_create(job->output, "embedding of ratings by alternating least squares", &embedding, axes,
                       &file));
  TRY(store_finish(file, prepare_movielens_add_details(file, job, &work, axes)));
  prepare_movielens_print_summary(job, &work);
  return STATUS_OK;
}

#include "app/prepare_users.h"

#include <string.h>

static Status theta_create_named(Arena *memory, int n, int d, NamedTheta *out) {
  *out = (NamedTheta){.samples = {.n = n, .d = d}};
  ALLOCATE(memory, out->samples.theta, (size_t)n * (size_t)d);
  ALLOCATE(memory, out->id, n);
  return STATUS_OK;
}

/* Copies rows[n, d] to the samples from `first` on. */
static void put_rows(int first, int n, const int64_t *id, const double *rows, NamedTheta *out) {
  const size_t d = (size_t)out->samples.d, stride = (size_t)out->samples.n;
  memcpy(out->id + first, id, (size_t)n * sizeof *id);
  for (size_t m = 0; m < (size_t)n; m++)
    for (size_t i = 0; i < d; i++) out->samples.theta[i * stride + (size_t)first + m] = rows[m * d + i];
}

Status theta_of_rows(Arena *memory, int n, const int64_t *id, int d, const double *rows, NamedTheta *out) {
  TRY(theta_create_named(memory, n, d, out));
  put_rows(0, n, id, rows, out);
  return STATUS_OK;
}

Status users_theta(Arena *memory, const Ratings *ratings, const Ratings *held_out,
                   const FactorisationSetup *setup, const Factorisation *result, NamedTheta *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)result->d, own = (size_t)held_out->users * d;
  SparseRows sparse;
  double *rows;
  ALLOCATE(&scratch, rows, own + d * d);
  TRY(sparse_rows_create(&scratch, held_out, result->mean, false, &sparse));
  factorisation_update(&sparse, setup, result->item, rows, rows + own);
  TRY(theta_create_named(memory, held_out->users + ratings->users, result->d, out));
  put_rows(0, held_out->users, held_out->user_id, rows, out);
  put_rows(held_out->users, ratings->users, ratings->user_id, result->user, out);
  return STATUS_OK;
}

enum { ROWS = 4096 /* written at once */ };

static Status write_rows(StoreFile *file, const int *variable, const Ratings *ratings,
                         const Factorisation *result, int64_t first, int64_t *task, double *x, double *y) {
  const int64_t left = ratings->count - first;
  const size_t n = left < ROWS ? (size_t)left : ROWS, d = (size_t)result->d;
  for (size_t r = 0; r < n; r++) {
    const Rating *rating = &ratings->rating[first + (int64_t)r];
    task[r] = ratings->user_id[rating->user];
    memcpy(x + r * d, result->item + (size_t)rating->item * d, d * sizeof *x);
    y[r] = rating->value - result->mean;
  }
  const size_t start[] = {(size_t)first, 0}, count[] = {n, d};
  TRY(store_put_part(file, variable[0], start, count, task));
  TRY(store_put_part(file, variable[1], start, count, x));
  return store_put_part(file, variable[2], start, count, y);
}

Status users_write_logs(StoreFile *file, int dim, const Ratings *ratings, const Factorisation *result) {
  SCRATCH_ARENA(scratch);
  int axis[] = {0, dim}, variable[3];
  int64_t *task;
  double *x, *y;
  ALLOCATE(&scratch, task, ROWS);
  ALLOCATE(&scratch, x, ROWS * (size_t)result->d);
  ALLOCATE(&scratch, y, ROWS);
  TRY(store_dimension(file, "observation", (size_t)ratings->count, &axis[0]));
  TRY(store_variable(file, "task", STORE_INT64, 1, axis, "user of the input files", NULL, &variable[0]));
  TRY(store_variable(file, "x", STORE_DOUBLE, 2, axis, "features of the movie", "1", &variable[1]));
  TRY(store_variable(file, "y", STORE_DOUBLE, 1, axis, "rating less the mean rating", "1", &variable[2]));
  for (int64_t first = 0; first < ratings->count; first += ROWS)
    TRY(write_rows(file, variable, ratings, result, first, task, x, y));
  return STATUS_OK;
}

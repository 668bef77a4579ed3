/* Embedding files, read and written; and the problem `embedding`, whose theta* and arms are rows of such a
 * file. */
#include "problem/embedding/embedding_file.h"

#include "io/provenance.h"
#include "problem/problem.h"

#include <math.h>
#include <string.h>

/* Reads which items are held out, and moves these columns of theta[d, n] to the front. */
static Status embedding_read_held_out(StoreFile *file, Embedding *out) {
  SCRATCH_ARENA(scratch);
  const int n = out->theta.n;
  size_t length = (size_t)n;
  int64_t *held;
  double *row;
  if (!store_has_variable(file, "held_out")) return STATUS_OK;
  TRY(store_shape(file, "held_out", 1, &length));
  ALLOCATE(&scratch, held, n);
  ALLOCATE(&scratch, row, n);
  TRY(store_get_int64s(file, "held_out", held));
  for (int m = 0; m < n; m++) {
    if (held[m] != 0 && held[m] != 1)
      return status_set(STATUS_INPUT, "%s: held_out[%d] is %lld; it must be 0 or 1", store_path(file), m,
                        (long long)held[m]);
    out->held_out += (int)held[m];
  }
  if (out->held_out == 0 || out->held_out == n)
    return status_set(
        STATUS_INPUT,
        "%s: %s of the %d items are held out; some are needed for theta*, and others to learn from",
        store_path(file), out->held_out ? "all" : "none", n);
  for (int i = 0; i < out->d; i++) {
    double *own = out->theta.theta + (size_t)i * (size_t)n;
    memcpy(row, own, (size_t)n * sizeof *row);
    int first = 0, other = out->held_out;
    for (int m = 0; m < n; m++) own[held[m] ? first++ : other++] = row[m];
  }
  return STATUS_OK;
}

Status embedding_read(Arena *memory, const char *path, Embedding *out) {
  SCRATCH_ARENA(scratch);
  SCOPED(StoreFile *, file, store_close);
  static const char *const theta_axes[] = {"item", "dim"}, *const features_axes[] = {"arm", "dim"};
  Samples *theta = &out->theta;
  double *rows;
  int columns;
  *out = (Embedding){.noise = NAN};
  TRY(store_open(path, &file));
  TRY(io_dataset_read_matrix(&scratch, file, "theta", theta_axes, &theta->n, &theta->d, &rows));
  if (theta->n == 0) return status_set(STATUS_INPUT, "%s: 'theta' has no items", store_path(file));
  ALLOCATE(memory, theta->theta, (size_t)theta->n * (size_t)theta->d);
  io_dataset_transpose(theta->n, theta->d, rows, theta->theta);
  TRY(io_dataset_check_spread(store_path(file), theta));
  out->d = theta->d;
  TRY(embedding_read_held_out(file, out));
  TRY(io_dataset_read_matrix(memory, file, "features", features_axes, &out->arms, &columns, &out->features));
  if (out->arms == 0) return status_set(STATUS_INPUT, "%s: 'features' has no arms", store_path(file));
  if (columns != out->d)
    return status_set(STATUS_INPUT,
                      "%s: 'theta' has %d columns, but 'features' has %d; the numbers must agree",
                      store_path(file), out->d, columns);
  if (!store_has_attribute(file, "noise")) return STATUS_OK;
  TRY(store_get_real_attribute(file, "noise", &out->noise));
  if (isfinite(out->noise) && out->noise > 0) return STATUS_OK;
  return status_set(STATUS_INPUT, "%s: the attribute 'noise' is %g; it must be above zero", store_path(file),
                    out->noise);
}

static Status embedding_write(StoreFile *file, const char *title, const Embedding *embedding, int axes[3]) {
  SCRATCH_ARENA(scratch);
  const size_t items = (size_t)embedding->theta.n, d = (size_t)embedding->d;
  double *theta; /* [items, d] */
  signed char *held;
  ALLOCATE(&scratch, theta, items * d);
  ALLOCATE(&scratch, held, items);
  io_dataset_transpose(embedding->d, embedding->theta.n, embedding->theta.theta, theta);
  memset(held, 1, (size_t)embedding->held_out);
  TRY(provenance_write(file, title, NULL));
  TRY(store_real_attribute(file, "noise", embedding->noise));
  TRY(store_dimension(file, "item", items, &axes[0]));
  TRY(store_dimension(file, "arm", (size_t)embedding->arms, &axes[1]));
  TRY(store_dimension(file, "dim", d, &axes[2]));
  TRY(store_write(file, "theta", STORE_DOUBLE, 2, (int[]){axes[0], axes[2]}, "parameter of an item", "1",
                  theta));
  if (embedding->held_out > 0)
    TRY(store_write(file, "held_out", STORE_BYTE, 1, axes, "1: kept for theta*, not learned from", "1",
                    held));
  return store_write(file, "features", STORE_DOUBLE, 2, axes + 1, "features of an arm", "1",
                     embedding->features);
}

Status embedding_create(const char *path, const char *title, const Embedding *embedding, int axes[3],
                        StoreFile **out) {
  int own[3];
  *out = NULL;
  TRY(store_create(path, out));
  const Status status = embedding_write(*out, title, embedding, axes ? axes : own);
  if (status == STATUS_OK) return STATUS_OK;
  store_abandon(*out);
  *out = NULL;
  return status;
}

/* ---- bandits whose theta* and arms are rows of such a file (DiffTS paper, Sections 6.3 and C.2) */

/* Sets K. With a theta* for each arm the rows are contexts, one a round, and K is that of the keys. */
static Status embedding_count_arms(Problem *self, const Config *config, const Embedding *file) {
  const char *path = config_text(config, "problem.file");
  const bool all = config_is(config, "problem.arms", "all");
  if (self->per_arm && !all) return STATUS_OK;
  if (self->per_arm)
    return status_set(STATUS_INPUT, "problem.arms: all, but with problem.unknown = per_arm the arms are "
                                    "theta*, and the rows of 'features' are contexts: give their number");
  if (all || (config_is(config, "problem.arms", "auto") && self->arms > file->arms)) self->arms = file->arms;
  if (self->arms <= file->arms) return STATUS_OK;
  return status_set(STATUS_INPUT, "problem.arms: %d, but %s has %d arms: give no more, or all", self->arms,
                    path, file->arms);
}

static Status embedding_problem_create(Problem *self, const Config *config) {
  Embedding *file = self->state;
  const char *path = config_text(config, "problem.file");
  TRY(embedding_read(&self->memory, path, file));
  if (config_is(config, "problem.noise", "auto")) self->likelihood.noise = file->noise;
  if (isnan(self->likelihood.noise))
    return status_set(STATUS_INPUT, "%s has no attribute 'noise', so problem.noise is needed", path);
  TRY(problem_theta_create_set(&file->theta, path, self->d, config_real(config, "prior.test_fraction"),
                               self->seed, &self->theta));
  self->theta.held_out = file->held_out;
  TRY(embedding_count_arms(self, config, file));
  self->feature_scratch = 2 * (size_t)file->arms;
  return STATUS_OK;
}

/* Exchanges two places of an order, whose entries are small integers. */
static void embedding_exchange(double *order, size_t one, size_t other) {
  const double kept = order[one];
  order[one] = order[other];
  order[other] = kept;
}

/* Draws K rows of the file's features for each run (one row if each arm has its own theta*), uniformly
 * without replacement, by the first K steps of a shuffle (Fisher and Yates); all rows are in the file's
 * order. Adding arms leaves the first ones unchanged, unless that makes them all. */
static void embedding_draw_features(World *world) {
  const Problem *self = world->problem;
  const Embedding *file = self->state;
  const RngKey key = rng_key(self->seed, RNG_ARMS);
  const size_t d = (size_t)self->d, runs = (size_t)world->runs, rows = (size_t)file->arms,
               vectors = (size_t)problem_vectors(self);
  double *order = world->scratch, *partner = order + rows;
  for (size_t k = 0; k < rows; k++) order[k] = (double)k;
  for (size_t b = 0; b < runs; b++) {
    Rng rng = {.key = key, .run = world->first_run + (uint32_t)b, .round = world->round};
    for (size_t k = 0; k < vectors; k++) {
      partner[k] = (double)(vectors < rows ? k + rng_index(&rng, rows - k) : k);
      embedding_exchange(order, k, (size_t)partner[k]);
      const double *row = file->features + (size_t)order[k] * d;
      for (size_t i = 0; i < d; i++) world->features[(k * d + i) * runs + b] = row[i];
    }
    /* Undo them, last first: every run begins with the file's order. */
    for (size_t k = vectors; k-- > 0;) embedding_exchange(order, k, (size_t)partner[k]);
  }
}

const ProblemOps problem_embedding = {.name = "embedding",
                                      .summary = "theta* and arms from the rows of an embedding file",
                                      .reference = "DiffTS, Section 6.3",
                                      .keys = "problem.file problem.resample_arms",
                                      .state_size = sizeof(Embedding),
                                      .needs_file = true,
                                      .per_arm = true,
                                      .finite_arms = true,
                                      .create = embedding_problem_create,
                                      .features = embedding_draw_features};

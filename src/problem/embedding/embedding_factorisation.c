#include "problem/embedding/embedding_factorisation.h"

#include "core/linalg/linalg.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

/* Sorts by counting. Ratings are sorted by user, then item, so that columns ascend within each row on either
 * side. */
Status embedding_factorisation_rows_create(Arena *memory, const Ratings *ratings, double mean, bool items,
                                           SparseRows *out) {
  SCRATCH_ARENA(scratch);
  int64_t *next;
  *out = (SparseRows){.rows = items ? ratings->items : ratings->users,
                      .columns = items ? ratings->users : ratings->items};
  ALLOCATE(memory, out->start, (size_t)out->rows + 1);
  ALLOCATE(memory, out->column, ratings->count);
  ALLOCATE(memory, out->value, ratings->count);
  ALLOCATE(&scratch, next, out->rows);
  for (int64_t i = 0; i < ratings->count; i++)
    out->start[(items ? ratings->rating[i].item : ratings->rating[i].user) + 1]++;
  for (int r = 0; r < out->rows; r++) out->start[r + 1] += out->start[r];
  memcpy(next, out->start, (size_t)out->rows * sizeof *next);
  for (int64_t i = 0; i < ratings->count; i++) {
    const Rating *rating = &ratings->rating[i];
    const int64_t at = next[items ? rating->item : rating->user]++;
    out->column[at] = items ? rating->user : rating->item;
    out->value[at] = rating->value - mean;
  }
  return STATUS_OK;
}

void embedding_factorisation_start(const FactorisationSetup *setup, int rows, double *out) {
  RngKey key = rng_key(setup->seed, RNG_FACTORISATION);
  for (int r = 0; r < rows; r++) {
    Rng rng = {.key = key, .run = (uint32_t)r};
    double *row = out + (size_t)r * (size_t)setup->d;
    rng_uniform(&rng, setup->d, row);
    for (int i = 0; i < setup->d; i++) row[i] = 2 * row[i] - 1;
  }
}

void embedding_factorisation_update(const SparseRows *sparse, const FactorisationSetup *setup,
                                    const double *other, double *own, double *workspace) {
  const size_t d = (size_t)setup->d;
  double *a = workspace; /* [d, d]: the lower triangle of X' X + ridge I of a row */
  for (int row = 0; row < sparse->rows; row++) {
    double *w = own + (size_t)row * d;
    memset(a, 0, d * d * sizeof *a);
    memset(w, 0, d * sizeof *w);
    for (size_t i = 0; i < d; i++) a[i * d + i] = setup->ridge;
    for (int64_t e = sparse->start[row]; e < sparse->start[row + 1]; e++) {
      const double *x = other + (size_t)sparse->column[e] * d;
      for (size_t i = 0; i < d; i++) {
        w[i] += x[i] * sparse->value[e];
        for (size_t j = 0; j <= i; j++) a[i * d + j] += x[i] * x[j];
      }
    }
    linalg_factor_cholesky(setup->d, 1, a, NULL);
    linalg_factor_solve(setup->d, 1, a, w);
  }
}

Status embedding_factorise(Arena *memory, const Ratings *ratings, const FactorisationSetup *setup,
                           void (*report)(int sweep, double rmse), Factorisation *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)setup->d;
  SparseRows users, items;
  double *workspace;
  *out = (Factorisation){.d = setup->d, .sweeps = setup->sweeps, .mean = ratings_mean(ratings)};
  ALLOCATE(memory, out->user, (size_t)ratings->users * d);
  ALLOCATE(memory, out->item, (size_t)ratings->items * d);
  ALLOCATE(memory, out->rmse, setup->sweeps);
  ALLOCATE(&scratch, workspace, d * d);
  TRY(embedding_factorisation_rows_create(&scratch, ratings, out->mean, false, &users));
  TRY(embedding_factorisation_rows_create(&scratch, ratings, out->mean, true, &items));
  embedding_factorisation_start(setup, ratings->items, out->item);
  for (int s = 0; s < setup->sweeps; s++) {
    embedding_factorisation_update(&users, setup, out->item, out->user, workspace);
    embedding_factorisation_update(&items, setup, out->user, out->item, workspace);
    double total = 0; /* of the squared residuals, which are summed user by user */
    for (int row = 0; row < users.rows; row++) {
      const double *w = out->user + (size_t)row * d;
      double sum = 0;
      for (int64_t e = users.start[row]; e < users.start[row + 1]; e++) {
        const double *x = out->item + (size_t)users.column[e] * d;
        double residual = users.value[e];
        for (size_t i = 0; i < d; i++) residual -= w[i] * x[i];
        sum += residual * residual;
      }
      total += sum;
    }
    out->rmse[s] = sqrt(total / (double)ratings->count);
    report(s + 1, out->rmse[s]);
  }
  return STATUS_OK;
}

#include "problem/embedding/factorisation.h"

#include "core/linalg.h"
#include "core/memory.h"
#include "core/rng.h"

#include <stdlib.h>
#include <string.h>

static int row_of(const Rating *rating, bool items) { return items ? rating->item : rating->user; }
static int column_of(const Rating *rating, bool items) { return items ? rating->user : rating->item; }

/* Counting sort by row. Ratings come sorted by user, then item, so that columns ascend within each row on
 * either side. */
static void fill(const Ratings *ratings, double mean, bool items, int64_t *next, SparseRows *out) {
  for (int64_t i = 0; i < ratings->count; i++) out->start[row_of(&ratings->rating[i], items) + 1]++;
  for (int r = 0; r < out->rows; r++) out->start[r + 1] += out->start[r];
  memcpy(next, out->start, (size_t)out->rows * sizeof *next);
  for (int64_t i = 0; i < ratings->count; i++) {
    int64_t at = next[row_of(&ratings->rating[i], items)]++;
    out->column[at] = column_of(&ratings->rating[i], items);
    out->value[at] = ratings->rating[i].value - mean;
  }
}

static Status allocate(int64_t count, int64_t **next, SparseRows *out) {
  NEW(out->start, (size_t)out->rows + 1);
  NEW(out->column, count);
  NEW(out->value, count);
  NEW(*next, out->rows);
  return STATUS_OK;
}

Status sparse_rows_create(const Ratings *ratings, double mean, bool items, SparseRows *out) {
  *out = (SparseRows){.rows = items ? ratings->items : ratings->users,
                      .columns = items ? ratings->users : ratings->items};
  int64_t *next = NULL;
  Status status = allocate(ratings->count, &next, out);
  if (status == STATUS_OK)
    fill(ratings, mean, items, next, out);
  else
    sparse_rows_free(out);
  free(next);
  return status;
}

void sparse_rows_free(SparseRows *sparse) {
  free(sparse->start);
  free(sparse->column);
  free(sparse->value);
  *sparse = (SparseRows){0};
}

void factorisation_start(const FactorisationSetup *setup, int rows, double *out) {
  RngKey key = rng_key(setup->seed, RNG_FACTORISATION);
  for (int r = 0; r < rows; r++) {
    Rng rng = {.key = key, .run = (uint32_t)r};
    double *row = out + (size_t)r * (size_t)setup->d;
    rng_uniform(&rng, setup->d, row);
    for (int i = 0; i < setup->d; i++) row[i] = 2 * row[i] - 1;
  }
}

/* Normal equations (X' X + ridge I) w = X' y of one row: a[d, d] (lower triangle), b[d]. */
static void normal_equations(const SparseRows *sparse, const FactorisationSetup *setup, int row,
                             const double *other, double *a, double *b) {
  int d = setup->d;
  memset(a, 0, (size_t)d * (size_t)d * sizeof *a);
  memset(b, 0, (size_t)d * sizeof *b);
  for (int i = 0; i < d; i++) a[(size_t)i * d + i] = setup->ridge;
  for (int64_t e = sparse->start[row]; e < sparse->start[row + 1]; e++) {
    const double *x = other + (size_t)sparse->column[e] * (size_t)d;
    for (int i = 0; i < d; i++) {
      b[i] += x[i] * sparse->value[e];
      for (int j = 0; j <= i; j++) a[(size_t)i * d + j] += x[i] * x[j];
    }
  }
}

void factorisation_update(const SparseRows *sparse, const FactorisationSetup *setup, int first, int last,
                          const double *other, double *own, double *workspace) {
  int d = setup->d;
  for (int row = first; row < last; row++) {
    double *w = own + (size_t)row * (size_t)d;
    normal_equations(sparse, setup, row, other, workspace, w);
    linalg_cholesky_lanes(d, 1, workspace, NULL);
    linalg_solve_lanes(d, 1, workspace, w);
  }
}

void factorisation_residuals(const SparseRows *sparse, int d, int first, int last, const double *other,
                             const double *own, double *out) {
  for (int row = first; row < last; row++) {
    const double *w = own + (size_t)row * (size_t)d;
    out[row] = 0;
    for (int64_t e = sparse->start[row]; e < sparse->start[row + 1]; e++) {
      const double *x = other + (size_t)sparse->column[e] * (size_t)d;
      double residual = sparse->value[e];
      for (int i = 0; i < d; i++) residual -= w[i] * x[i];
      out[row] += residual * residual;
    }
  }
}

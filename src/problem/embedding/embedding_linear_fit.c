#include "problem/embedding/embedding_linear_fit.h"

#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "core/rng.h"

#include <string.h>

enum { MOST_LABELS = 128 };

/* Rows sorted by label: those of label l are order[begin[l]] to order[begin[l + 1] - 1]. */
typedef struct {
  int *order; /* [rows] */
  int begin[MOST_LABELS + 1];
} Sorted;

static Status labelled_rows_sort(Arena *memory, const LabelledRows *rows, Sorted *out) {
  int next[MOST_LABELS];
  *out = (Sorted){0};
  for (int i = 0; i < rows->rows; i++) {
    ASSERT(rows->label[i] < rows->labels);
    out->begin[rows->label[i] + 1]++;
  }
  for (int l = 0; l < rows->labels; l++) {
    if (out->begin[l + 1] < LINEAR_FIT_EACH)
      return status_set(STATUS_INPUT, "label %d has %d rows; each label needs at least %d", l,
                        out->begin[l + 1], LINEAR_FIT_EACH);
    out->begin[l + 1] += out->begin[l];
    next[l] = out->begin[l];
  }
  ALLOCATE(memory, out->order, rows->rows);
  for (int i = 0; i < rows->rows; i++) out->order[next[rows->label[i]]++] = i;
  return STATUS_OK;
}

/* Chooses LINEAR_FIT_EACH distinct places in the order, chosen[LINEAR_FIT_EACH], uniformly from `count`
 * places: those from `first` on, without the `skipped` places that begin at `gap`. */
static void labelled_rows_choose(Rng *rng, int first, int count, int gap, int skipped, int *chosen) {
  for (int k = 0; k < LINEAR_FIT_EACH;) {
    int place = first + (int)rng_index(rng, (uint64_t)count), j = 0;
    if (place >= gap) place += skipped;
    while (j < k && chosen[j] != place) j++;
    chosen[k] = place;
    k += j == k;
  }
}

double embedding_linear_fit_mean_square(const LabelledRows *rows) {
  double sum = 0;
  size_t count = (size_t)rows->rows * (size_t)rows->d;
  for (size_t i = 0; i < count; i++) sum += rows->x[i] * rows->x[i];
  return sum / rows->rows;
}

Status embedding_linear_fit_check(const LabelledRows *rows) {
  SCRATCH_ARENA(scratch);
  Sorted sorted;
  return labelled_rows_sort(&scratch, rows, &sorted);
}

Status embedding_linear_fit_sample(const LabelledRows *rows, double ridge, uint64_t seed, int n,
                                   double *theta, signed char *positive) {
  ASSERT(rows->labels >= 2 && rows->labels <= MOST_LABELS && ridge > 0);
  SCRATCH_ARENA(scratch);
  const double penalty = ridge * embedding_linear_fit_mean_square(rows);
  const size_t d = (size_t)rows->d, lanes = (size_t)n;
  double *a;
  Sorted sorted;
  if (!(penalty > 0)) return status_set(STATUS_INPUT, "all features are zero: no linear model can be fitted");
  TRY(labelled_rows_sort(&scratch, rows, &sorted));
  ALLOCATE(&scratch, a, d * d * lanes);
  memset(theta, 0, d * lanes * sizeof *theta);
  for (size_t m = 0; m < lanes; m++) { /* the normal equations of a random set, in lane m of X'X and X'y */
    Rng rng = {.key = rng_key(seed, RNG_PRIOR_SAMPLES), .run = (uint32_t)m};
    const int label = (int)rng_index(&rng, (uint64_t)rows->labels), begin = sorted.begin[label],
              count = sorted.begin[label + 1] - begin;
    int chosen[2 * LINEAR_FIT_EACH];
    labelled_rows_choose(&rng, begin, count, rows->rows, 0, chosen);
    labelled_rows_choose(&rng, 0, rows->rows - count, begin, count, chosen + LINEAR_FIT_EACH);
    positive[m] = (signed char)label;
    for (size_t i = 0; i < d; i++) a[(i * d + i) * lanes + m] = penalty;
    for (int k = 0; k < 2 * LINEAR_FIT_EACH; k++) { /* rows with reward 1, then those with -1 */
      const double *x = rows->x + (size_t)sorted.order[chosen[k]] * d, y = k < LINEAR_FIT_EACH ? 1 : -1;
      for (size_t i = 0; i < d; i++) {
        theta[i * lanes + m] += y * x[i];
        for (size_t j = 0; j < d; j++) a[(i * d + j) * lanes + m] += x[i] * x[j];
      }
    }
  }
  linalg_factor_cholesky(rows->d, n, a, NULL);
  linalg_factor_solve(rows->d, n, a, theta);
  return STATUS_OK;
}

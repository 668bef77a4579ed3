#include "problem/embedding/embedding_linear_fit.h"

#include "core/arena.h"
#include "core/linalg.h"
#include "core/rng.h"

enum { MOST_LABELS = 128 };

/* Rows sorted by label: those of label l are order[begin[l]] to order[begin[l + 1] - 1]. */
typedef struct {
  const LabelledRows *rows;
  int *order; /* [rows] */
  int begin[MOST_LABELS + 1];
} Sorted;

static Status labelled_rows_sort(Arena *memory, const LabelledRows *rows, Sorted *out) {
  int next[MOST_LABELS];
  *out = (Sorted){.rows = rows};
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

/* Adds a row x[d] with reward y to lane `n` of X'X[d, d, lanes] and X'y[d, lanes]. */
static void labelled_rows_add(int d, int lanes, int n, const double *x, double y, double *a, double *b) {
  for (int i = 0; i < d; i++) {
    b[(size_t)i * (size_t)lanes + (size_t)n] += y * x[i];
    for (int j = 0; j < d; j++)
      a[((size_t)i * (size_t)d + (size_t)j) * (size_t)lanes + (size_t)n] += x[i] * x[j];
  }
}

double embedding_linear_fit_mean_square(const LabelledRows *rows) {
  double sum = 0;
  size_t count = (size_t)rows->rows * (size_t)rows->d;
  for (size_t i = 0; i < count; i++) sum += rows->x[i] * rows->x[i];
  return sum / rows->rows;
}

/* Computes the normal equations of one random set, with its ridge, in lane `lane` of a[d, d, lanes] and b[d,
 * lanes]; *positive is the label with reward 1. */
static void labelled_rows_draw_fit(const Sorted *sorted, double penalty, Rng *rng, int lanes, int lane,
                                   double *a, double *b, signed char *positive) {
  const LabelledRows *rows = sorted->rows;
  int d = rows->d, label = (int)rng_index(rng, (uint64_t)rows->labels), chosen[2][LINEAR_FIT_EACH];
  int begin = sorted->begin[label], count = sorted->begin[label + 1] - begin;
  labelled_rows_choose(rng, begin, count, rows->rows, 0, chosen[0]);
  labelled_rows_choose(rng, 0, rows->rows - count, begin, count, chosen[1]);
  for (int i = 0; i < d; i++) {
    b[(size_t)i * (size_t)lanes + (size_t)lane] = 0;
    a[((size_t)i * (size_t)d + (size_t)i) * (size_t)lanes + (size_t)lane] = penalty;
  }
  for (int sign = 0; sign < 2; sign++)
    for (int k = 0; k < LINEAR_FIT_EACH; k++)
      labelled_rows_add(d, lanes, lane, rows->x + (size_t)sorted->order[chosen[sign][k]] * (size_t)d,
                        sign == 0 ? 1 : -1, a, b);
  *positive = (signed char)label;
}

Status embedding_linear_fit_sample(const LabelledRows *rows, double ridge, uint64_t seed, int n,
                                   double *theta, signed char *positive) {
  ASSERT(rows->labels >= 2 && rows->labels <= MOST_LABELS && ridge > 0);
  SCRATCH_ARENA(scratch);
  const double penalty = ridge * embedding_linear_fit_mean_square(rows);
  double *a;
  Sorted sorted;
  if (!(penalty > 0)) return status_set(STATUS_INPUT, "all features are zero: no linear model can be fitted");
  TRY(labelled_rows_sort(&scratch, rows, &sorted));
  ALLOCATE(&scratch, a, (size_t)rows->d * (size_t)rows->d * (size_t)n);
  for (int i = 0; i < n; i++) {
    Rng rng = {.key = rng_key(seed, RNG_PRIOR_SAMPLES), .run = (uint32_t)i};
    labelled_rows_draw_fit(&sorted, penalty, &rng, n, i, a, theta, &positive[i]);
  }
  linalg_cholesky_lanes(rows->d, n, a, NULL);
  linalg_solve_lanes(rows->d, n, a, theta);
  return STATUS_OK;
}

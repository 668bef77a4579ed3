/* The evidence of one run in coordinates where its precision is diagonal: 2 d numbers, whatever was observed.
 * It is made whole (sampler/observed.c), and nothing is added to it. */
#include "model/history/history_internal.h"

#include <math.h>
#include <string.h>

typedef struct {
  struct HistoryContent common;
  double *q, *b; /* [d] */
  double reward_squares; /* sum of (y / sigma)^2 */
} Diagonal;

static const Diagonal *diagonal_of(const History *history) {
  ASSERT(history_is_diagonal(history));
  return (const Diagonal *)history->content;
}

bool history_is_diagonal(const History *history) { return history->ops == &history_form_diagonal; }

static void diagonal_append(History *history, const int *arm, const double *phi, const double *y) {
  (void)history;
  (void)arm;
  (void)phi;
  (void)y;
  ASSERT(false); /* nothing is added to it */
}

static void diagonal_clear(History *history) {
  Diagonal *self = (Diagonal *)history->content;
  memset(self->q, 0, (size_t)history->d * sizeof *self->q);
  memset(self->b, 0, (size_t)history->d * sizeof *self->b);
  self->reward_squares = 0;
}

/* Returns sum |phi|^2 = sigma^2 times the trace of the precision. */
static double diagonal_squares(const History *history, int run) {
  const Diagonal *self = diagonal_of(history);
  double sum = 0;
  (void)run;
  for (int i = 0; i < history->d; i++) sum += self->q[i];
  return history->likelihood->noise * history->likelihood->noise * sum;
}

const HistoryOps history_form_diagonal = {.size = sizeof(Diagonal),
                                          .append = diagonal_append,
                                          .clear = diagonal_clear,
                                          .squares = diagonal_squares};

Status history_create_diagonal(Arena *memory, const DiagonalEvidence *evidence, const Likelihood *likelihood,
                               History *out) {
  const HistoryLayout layout = {.form = &history_form_diagonal, .share = 1};
  const size_t d = (size_t)evidence->d;
  TRY(history_begin(memory, evidence->d, 1, layout, likelihood, out));
  Diagonal *self = (Diagonal *)out->content;
  ALLOCATE_ARRAYS(memory, d, &self->q, &self->b);
  history_set_diagonal(out, evidence);
  return STATUS_OK;
}

void history_set_diagonal(History *history, const DiagonalEvidence *evidence) {
  Diagonal *self = (Diagonal *)history->content;
  ASSERT(history_is_diagonal(history) && history->d == evidence->d);
  memcpy(self->q, evidence->q, (size_t)history->d * sizeof *self->q);
  memcpy(self->b, evidence->b, (size_t)history->d * sizeof *self->b);
  self->reward_squares = evidence->reward_squares;
  history->content->observations[0] = history->rounds = evidence->observations;
}

void history_diagonal(const HistoryView *view, double *q, double *b) {
  const Diagonal *self = diagonal_of(view->history);
  const double temper = view->history->temper;
  const size_t lanes = (size_t)view->lanes;
  for (size_t i = 0; i < (size_t)view->history->d; i++) {
    const double scale = view->scale ? view->scale[i] : 1, shift = view->shift ? view->shift[i] : 0,
                 precision = temper * scale * scale * self->q[i],
                 vector = temper * scale * (self->b[i] - shift * self->q[i]);
    for (size_t n = 0; n < lanes; n++) {
      q[i * lanes + n] = precision;
      b[i * lanes + n] = vector;
    }
  }
}

void history_diagonal_expand(const HistoryView *view, double *precision, double *vector) {
  const size_t d = (size_t)view->history->d, lanes = (size_t)view->lanes, row = lanes * sizeof *precision;
  history_diagonal(view, precision, vector); /* the first d rows, which are taken apart from the last on */
  memset(precision + d * lanes, 0, (d * d - d) * row);
  for (size_t i = d; i-- > 1;) {
    memcpy(precision + i * (d + 1) * lanes, precision + i * lanes, row);
    memset(precision + i * lanes, 0, row);
  }
}

double history_diagonal_residual(const HistoryView *view) {
  const Diagonal *self = diagonal_of(view->history);
  double sum = self->reward_squares;
  if (view->shift)
    for (int i = 0; i < view->history->d; i++)
      sum += view->shift[i] * (self->q[i] * view->shift[i] - 2 * self->b[i]);
  return view->history->temper * fmax(sum, 0);
}

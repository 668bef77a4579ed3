/* A likelihood that is known by a function of theta (LikelihoodFunctions): observations are where the
 * function finds them, and only their number is kept here. */
#include "core/lanes.h"
#include "model/history/history_internal.h"

#include <math.h>

typedef struct {
  struct HistoryContent common;
  int lanes; /* n, of one call of the function */
  double *theta, *gradient; /* [d, n] */
} Functions;

const LikelihoodOps likelihood_functions = {.name = "functions",
                                            .summary = "any, known by its values at theta",
                                            /* of the curvature nothing is known */
                                            .self_concordance = INFINITY};

static void functions_append(History *history, const int *arm, const double *phi, const double *y) {
  (void)history;
  (void)arm;
  (void)phi;
  (void)y;
}

static void functions_clear(History *history) { (void)history; }

static void functions_copy_run(const History *from, int m, History *to, int n) {
  (void)from;
  (void)m;
  (void)to;
  (void)n;
}

static Status functions_reserve(History *history, int rounds) {
  Functions *self = (Functions *)history->content;
  (void)rounds;
  if (self->lanes > 0) return STATUS_OK;
  self->lanes = likelihood_most_points(history->d);
  ALLOCATE_ARRAYS(history->memory, (size_t)history->d * (size_t)self->lanes, &self->theta, &self->gradient);
  return STATUS_OK;
}

/* Copies n lanes of z from `first` on, as theta. */
static void functions_to_theta(const HistoryView *view, const double *z, int first, int n, double *theta) {
  const int d = view->history->d;
  lanes_copy(d, n, z + first, view->lanes, theta, n);
  for (int i = 0; i < d; i++) {
    const double shift = view->shift ? view->shift[i] : 0, scale = view->scale ? view->scale[i] : 1;
    for (int k = 0; k < n; k++) theta[i * n + k] = shift + scale * theta[i * n + k];
  }
}

/* Multiplies values, and gradients with respect to theta, by `temper`, and the latter by the scale: gradient
 * [d, n] may be NULL. */
static void functions_scale(const HistoryView *view, int n, double *value, double *gradient) {
  const double temper = view->history->temper;
  for (int k = 0; k < n; k++) value[k] *= temper;
  if (!gradient) return;
  for (int i = 0; i < view->history->d; i++) {
    const double factor = temper * (view->scale ? view->scale[i] : 1);
    for (int k = 0; k < n; k++) gradient[i * n + k] *= factor;
  }
}

/* Asks the function about at most `lanes` lanes of one run at a time. */
static void functions_log_likelihood(const HistoryView *view, const double *z, double *value,
                                     double *gradient) {
  const Functions *self = (const Functions *)view->history->content;
  const LikelihoodFunctions *functions = view->history->likelihood->functions;
  const int d = view->history->d;
  double *own = gradient ? self->gradient : NULL;
  history_check_view(view);
  ASSERT(!gradient || functions->has_gradient);
  for (int first = 0, n; first < view->lanes; first += n) {
    const int lane = view->first + first, of_run = view->draws - lane % view->draws,
              left = view->lanes - first, most = self->lanes < of_run ? self->lanes : of_run;
    n = most < left ? most : left;
    functions_to_theta(view, z, first, n, self->theta);
    functions->density(functions->context, lane / view->draws, n, self->theta, value + first, own);
    functions_scale(view, n, value + first, own);
    if (gradient) lanes_copy(d, n, own, n, gradient + first, view->lanes);
  }
}

const HistoryOps history_form_functions = {.size = sizeof(Functions),
                                           .reserve = functions_reserve,
                                           .append = functions_append,
                                           .clear = functions_clear,
                                           .copy_run = functions_copy_run,
                                           .log_likelihood = functions_log_likelihood};

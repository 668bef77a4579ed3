/* What the steps of EM (em_logs.c) and the evidence of tasks (em_logs_evidence.c) share: one chunk of tasks
 * at a time. */
#pragma once

#include "model/history/ep.h"
#include "model/history/irls.h"
#include "model/logs/em_logs.h"
#include "model/logs/logs_points.h"

enum { N = LOGS_BLOCK }; /* tasks per chunk: the lanes below */

/* One chunk of tasks; unused lanes have no evidence. */
typedef struct EmLogsScratch {
  int used;
  double *gram, *moment; /* [d, d, N] and [d, N]: X'X and X'y in coordinates z */
  double *square, *count; /* [N]: y'y, n */
  double *precision, *vector; /* [d, d, N], [d, N]: evidence, of one component if each has its own */
  double *factor, *mean, *inverse; /* [d, d, N], [d, N], [d, d, N]: L_c, P_c^-1 h_c, P_c^-1 */
  double *constant; /* [C] of the mixture */
  double *features; /* [C, F, N]: expected under each component */
  double *share; /* [C, N]: log weight, then responsibility */
  double *log_sum; /* [N]: log marginal likelihood */
  double *expected; /* [F, N]: expected under all components */
  double *one_precision, *one_vector; /* [d, d, N], [d, N]: prior of one component, in each lane */
  int *jitters; /* [N] */
  double *slices; /* [EM_LOGS_SLICES, 3 + C F]: log likelihood, squared residuals, n, sums */
  /* For likelihoods that are not conjugate: the rows, as one history per chunk. Tasks with fewer rows than
   * the longest of their chunk are padded with rows of x = 0, which carry no information. */
  History *history; /* [chunks] */
  double *padding; /* [chunks, N]: log likelihood of the padding rows */
  Irls irls;
  Ep ep;
  LogsPoints points; /* correct ep */
  bool *inexact,
      *few; /* [N], [C, N]: points are wanted; too few have weight, and the numbers are those of ep */
  Arena *memory; /* the creator's */
  int most, kept; /* C; the components whose evidence is kept, 0 at first */
  double *evidence; /* [C, chunks, F, N]: what is kept, log_scale, b and the lower triangle of Lambda */
  double *one_mean, *one_root; /* [d, N], [d, d, N]: the same prior as mean and Cholesky factor */
  double *mode; /* [d, N] */
  int64_t *fallbacks; /* [N] */
} Scratch;

/* Loads the tasks from item `first` on, of `items`; with a conjugate likelihood also their evidence. */
void em_logs_load_chunk(const EmLogs *self, int first, int items);
/* Finds the evidence of each lane of the chunk under component c, kept or found now, with log_scale[N]: the
 * likelihood is close to exp(log_scale + b' z - z' Lambda z / 2). */
void em_logs_find_evidence(const EmLogs *self, const Mixture *mixture, int c, int first, double *log_scale);
/* Gives each lane n the prior of component c[n]. */
void em_logs_set_priors(const EmLogs *self, const Mixture *mixture, const int *c);
/* Finds the evidence of each lane under the prior that it was given, kept or found now. */
void em_logs_find_own_evidence(const EmLogs *self, int first);
/* Computes L_c and L_c^-1 h_c of each lane for its evidence, and log_weight[N]. */
void em_logs_integrate(const EmLogs *self, const Mixture *mixture, int c, double *log_weight);
/* Creates what tasks with rows need. */
Status em_logs_create_rows(Arena *memory, int components, const EmLogs *self);

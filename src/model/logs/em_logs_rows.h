/* Internal to src/model: the rows of logs whose likelihood is not conjugate, as one history per chunk of
 * LOGS_BLOCK tasks. Tasks with fewer rows than the longest of their chunk are padded with rows of x = 0,
 * which carry no information. */
#pragma once

#include "model/history/ep.h"
#include "model/history/irls.h"
#include "model/logs/logs.h"

typedef struct {
  int d;
  History *history; /* one per chunk */
  double *padding; /* [chunks, LOGS_BLOCK]: log likelihood of the padding rows */
  Irls irls;
  Ep ep;
  double *mode; /* [d, LOGS_BLOCK] */
  int64_t *fallbacks; /* [LOGS_BLOCK] */
} EmLogsRows;

/* Creates the rows; items as in em_logs_create. */
Status em_logs_rows_create(Arena *memory, const Logs *logs, int first, int items, EmLogsRows *out);
/* Computes the evidence of the tasks of a chunk by expectation propagation (model/history/ep.h), each under
 * its prior N(P^-1 h, P^-1), P[d, d, LOGS_BLOCK] and h[d, LOGS_BLOCK], in coordinates z: `precision` and
 * `vector`, of the same shapes, and log_evidence[LOGS_BLOCK], without the factor that depends on the prior
 * alone. */
void em_logs_rows_evidence(EmLogsRows *self, int chunk, const double *shift, const double *scale,
                           const double *prior_precision, const double *prior_vector, double *precision,
                           double *vector, double *log_evidence);

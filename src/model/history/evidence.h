/* The evidence of a conjugate likelihood in the eigenbasis of its precision, Lambda = U diag(q) U'. */
#ifndef MODEL_HISTORY_EVIDENCE_H
#define MODEL_HISTORY_EVIDENCE_H

#include "model/history/history.h"

/* Decomposes the evidence in x, theta = A x with root[d, d] = A (NULL: identity), where Lambda becomes A'
 * Lambda A and b A' b. For n lanes, lane last: basis[d, d, n] = U, q[d, n] >= 0 and b[d, n] = U' b. The
 * draws of a run share it: it is decomposed once for each run. Scratch: matrix[d, d, n], column[d, n]. */
void evidence_decompose(const HistoryView *view, const double *root, double *matrix, double *column,
                        double *basis, double *q, double *b);

#endif

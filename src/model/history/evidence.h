/* The evidence of a conjugate likelihood in the eigenbasis of its precision, Lambda = U diag(q) U'. */
#pragma once

#include "model/history/history.h"

/* U of n lanes. */
typedef struct {
  double *u; /* [d, d, n], or [d, d] if shared */
  bool shared; /* all lanes are draws of one run */
} EvidenceBasis;

/* Computes y[d, n] = U x, or U' x; the bits are the same whether U is shared or not. */
void evidence_basis_apply(const EvidenceBasis *basis, int d, int lanes, bool transpose, const double *x,
                          double *y);

/* Decomposes the evidence in x, theta = A x with root[d, d] = A (NULL: identity), where Lambda becomes A'
 * Lambda A and b becomes A' b. For n lanes, lane last: basis = U, q[d, n] >= 0 and b[d, n] = U' b. Each run
 * is decomposed once for all its draws, and if all lanes belong to one run the basis stays a single matrix.
 * basis->u has room for [d, d, n]. Scratch: matrix[d, d, n], column[d, n]. */
void evidence_decompose(const HistoryView *view, const double *root, double *matrix, double *column,
                        EvidenceBasis *basis, double *q, double *b);
/* Does the same without a root, for all lanes: u[d, d, n] = U. */
void evidence_decompose_lanes(const HistoryView *view, double *matrix, double *column, double *u, double *q,
                              double *b);

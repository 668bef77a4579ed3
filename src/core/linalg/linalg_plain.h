/* Products and Cholesky factors of many small matrices, lane last, in plain loops: what linalg_kernel.h and
 * linalg_factor.h compute, for readers and for tests; not part of the program. */
#pragma once

#include "core/linalg/linalg_kernel.h"

/* Computes c[rows, columns, lanes] = A B with A[rows, depth, lanes] and B[depth, columns, lanes], whose
 * strides tell whether they are transposed; or C += A B. */
void linalg_plain_product(MatrixShape shape, const double *a, MatrixOrder of_a, const double *b,
                          MatrixOrder of_b, bool added, double *c);
/* Computes L of A = L L' in the lower triangle of a[d, d, lanes], where each product is fused with its sum. A
 * pivot that is not above zero is replaced by 2^-52 times the largest diagonal entry (2^-1000 when that is
 * zero) and the column below it by zeros, which adds one to jitters[lanes]. */
void linalg_plain_cholesky(int d, int lanes, double *a, int *jitters);

/* Gauss-Hermite quadrature: expectations of functions of one normal variable. */
#pragma once

#include "core/status.h"

enum { QUADRATURE_MOST = 32 };

/* Computes node[n], weight[n] with sum of weight f(node) = E f(z), z standard normal, for polynomials up
 * to degree 2 n - 1; n <= QUADRATURE_MOST. Returns STATUS_INTERNAL when LAPACK fails. */
Status quadrature_hermite(int n, double *node, double *weight);

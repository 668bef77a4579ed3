#include "core/linalg/quadrature.h"

#include "core/linalg/linalg.h"

#include <math.h>

/* Computes nodes and weights by the method of Golub and Welsch: the eigenvalues, and the squares of the first
 * entries of the eigenvectors, of the Jacobi matrix of the Hermite polynomials, whose off-diagonal is
 * sqrt(k). */
Status quadrature_hermite(int n, double *node, double *weight) {
  double jacobi[QUADRATURE_MOST * QUADRATURE_MOST] = {0}, vectors[QUADRATURE_MOST * QUADRATURE_MOST];
  ASSERT(n >= 1 && n <= QUADRATURE_MOST);
  for (int k = 1; k < n; k++) jacobi[k * n + k - 1] = jacobi[(k - 1) * n + k] = sqrt(k);
  TRY(linalg_eigen(n, jacobi, vectors, node));
  for (int k = 0; k < n; k++) weight[k] = vectors[k] * vectors[k];
  return STATUS_OK;
}

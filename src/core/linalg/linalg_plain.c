#include "core/linalg/linalg_plain.h"

void linalg_plain_product(MatrixShape shape, const double *a, MatrixOrder of_a, const double *b,
                          MatrixOrder of_b, bool added, double *c) {
  const size_t rows = (size_t)shape.rows, columns = (size_t)shape.columns, depth = (size_t)shape.depth,
               lanes = (size_t)shape.lanes;
  for (size_t n = 0; n < lanes; n++)
    for (size_t i = 0; i < rows; i++)
      for (size_t j = 0; j < columns; j++) {
        double *entry = &c[(i * columns + j) * lanes + n], sum = added ? *entry : 0;
        for (size_t k = 0; k < depth; k++)
          sum += a[(i * of_a.row + k * of_a.column) * lanes + n] *
                 b[(k * of_b.row + j * of_b.column) * lanes + n];
        *entry = sum;
      }
}

/* Factors the matrix of one lane, column by column; entry (i, j) is a[(i d + j) lanes]. */
static void linalg_plain_factor(int d, int lanes, double *a, int *jitters) {
  double least = 0x1p-1000;
  for (int i = 0; i < d; i++) least = fmax(least, 0x1p-52 * a[i * (d + 1) * lanes]);
  for (int j = 0; j < d; j++) {
    double *diagonal = &a[j * (d + 1) * lanes], pivot = *diagonal;
    for (int k = 0; k < j; k++) pivot = fma(-a[(j * d + k) * lanes], a[(j * d + k) * lanes], pivot);
    *jitters += !(pivot > 0);
    *diagonal = sqrt(pivot > 0 ? pivot : least);
    for (int i = j + 1; i < d; i++) {
      double sum = a[(i * d + j) * lanes];
      for (int k = 0; k < j; k++) sum = fma(-a[(i * d + k) * lanes], a[(j * d + k) * lanes], sum);
      a[(i * d + j) * lanes] = pivot > 0 ? sum * (1 / *diagonal) : 0;
    }
  }
}

void linalg_plain_cholesky(int d, int lanes, double *a, int *jitters) {
  for (int n = 0; n < lanes; n++) linalg_plain_factor(d, lanes, a + n, &jitters[n]);
}

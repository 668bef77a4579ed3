#include "metric/metric_dense_draws.h"

#include <math.h>

/* For each draw: its component, its distance to the truth, and whether it is below the truth along the
 * direction. */
enum { OF_COMPONENT, OF_DISTANCE, OF_RANK, OF_DRAW };

/* Computes values[OF_DRAW, n] for this rank's columns x[d, count]. */
static void metric_measure_columns(const DenseMeasure *measure, DenseColumns columns, int n, const double *x,
                                   double *values) {
  const size_t d = (size_t)measure->modes->d, count = (size_t)columns.count, all = (size_t)n;
  int component[DENSE_COLUMNS];
  double square[DENSE_COLUMNS] = {0}, above[DENSE_COLUMNS] = {0};
  if (count == 0) return;
  denoiser_isotropic_nearest(measure->modes, columns.count, x, component);
  for (size_t i = 0; i < d; i++)
    for (size_t k = 0; k < count; k++) {
      const double step = x[i * count + k] - measure->truth[i];
      square[k] += step * step;
      above[k] += measure->direction[i] * step;
    }
  values += columns.first;
  for (size_t k = 0; k < count; k++) {
    values[OF_COMPONENT * all + k] = component[k];
    values[OF_DISTANCE * all + k] = sqrt(square[k]);
    values[OF_RANK * all + k] = above[k] < 0;
  }
}

/* Measures the draws. Every rank measures its columns; sums are taken in the order of draws, so that they do
 * not depend on which rank measured what. */
static void metric_measure_draws(const DenseMeasure *measure, const DenseMatrix *theta, double *values,
                                 double *work, DenseDraws *out) {
  const Dense *dense = measure->dense;
  const int n = theta->columns;
  double *x = work, *scratch = x + (size_t)theta->rows * (size_t)dense_most_columns(dense, n);
  for (int round = 0; round < dense_rounds(dense, n); round++) {
    dense_get_columns(dense, round, theta, scratch, x);
    metric_measure_columns(measure, dense_columns(dense, n, round, dense->rank), n, x, values);
  }
  dense->sum(OF_DRAW * (size_t)n, values);
  int count[ISOTROPIC_COMPONENTS] = {0};
  for (int k = 0; k < n; k++) {
    count[(int)values[OF_COMPONENT * n + k]]++;
    out->distance += values[OF_DISTANCE * n + k];
    out->rank += values[OF_RANK * n + k];
  }
  out->distance /= n;
  for (int c = 0; c < measure->modes->components; c++) out->fraction[c] = (double)count[c] / n;
}

/* Computes |X' Y|^2 / (n m) of centred draws. */
static Status metric_covariance_product(const DenseMeasure *measure, const DenseMatrix *x,
                                        const DenseMatrix *y, double *out) {
  SCOPED(DenseMatrix, product, dense_matrix_destroy);
  TRY(dense_matrix_create(measure->dense, x->columns, y->columns, &product));
  dense_multiply(measure->dense, 1, true, x, false, y, &product);
  *out = dense_square(measure->dense, &product) / ((double)x->columns * y->columns);
  return STATUS_OK;
}

static Status metric_allocate_dense(Arena *scratch, const Dense *dense, DenseDraws *out, double **values,
                                    double **work) {
  const size_t d = (size_t)out->centred.rows;
  NEW(out->mean, d);
  ALLOCATE(scratch, *values, OF_DRAW * (size_t)out->centred.columns);
  ALLOCATE(scratch, *work, 2 * d * (size_t)dense_most_columns(dense, out->centred.columns));
  return STATUS_OK;
}

Status metric_dense_draws_create(const DenseMeasure *measure, DenseMatrix *theta, DenseDraws *out) {
  SCRATCH_ARENA(scratch);
  const Dense *dense = measure->dense;
  double *values, *work;
  *out = (DenseDraws){.centred = *theta};
  *theta = (DenseMatrix){0};
  TRY(dense_agree(dense, metric_allocate_dense(&scratch, dense, out, &values, &work)));
  metric_measure_draws(measure, &out->centred, values, work, out);
  dense_centre(dense, &out->centred, out->mean);
  out->trace = dense_square(dense, &out->centred) / out->centred.columns;
  if (!measure->covariance) return STATUS_OK;
  return metric_covariance_product(measure, &out->centred, &out->centred, &out->square);
}

void metric_dense_draws_destroy(DenseDraws *draws) {
  dense_matrix_destroy(&draws->centred);
  free(draws->mean);
  *draws = (DenseDraws){0};
}

Status metric_dense_draws_covariance_error(const DenseMeasure *measure, const DenseDraws *x,
                                           const DenseDraws *y, double *out) {
  double both;
  TRY(metric_covariance_product(measure, &x->centred, &y->centred, &both));
  *out = sqrt(fmax(x->square - 2 * both + y->square, 0) / y->square);
  return STATUS_OK;
}

#include "model/history/history_plain.h"

#include <math.h>
#include <string.h>

/* Returns phi' x. */
static double history_plain_product(int d, const double *phi, const double *x) {
  double sum = 0;
  for (int i = 0; i < d; i++) sum += phi[i] * x[i];
  return sum;
}

/* Adds factor phi to vector[d], or (below) factor phi phi' to matrix[d, d]. */
static void history_plain_add(int d, double factor, const double *phi, double *vector) {
  for (int i = 0; i < d; i++) vector[i] += factor * phi[i];
}
static void history_plain_add_square(int d, double factor, const double *phi, double *matrix) {
  for (int i = 0; i < d; i++) history_plain_add(d, factor * phi[i], phi, matrix + i * d);
}

double history_plain_pass(const PlainRows *rows, const double *theta, double *gradient, double *precision) {
  const Likelihood *likelihood = rows->likelihood;
  const int d = rows->d;
  double sum = 0;
  memset(gradient, 0, (size_t)d * sizeof *gradient);
  memset(precision, 0, (size_t)(d * d) * sizeof *precision);
  for (int l = 0; l < rows->count; l++) {
    const double *phi = rows->phi + l * d, u = history_plain_product(d, phi, theta);
    double slope, curvature, deviance;
    likelihood->ops->derivatives(likelihood, 1, &rows->y[l], &u, &slope, &curvature);
    likelihood->ops->deviance(likelihood, 1, &rows->y[l], &u, &deviance);
    sum -= 0.5 * deviance;
    history_plain_add(d, slope, phi, gradient);
    history_plain_add_square(d, -curvature, phi, precision);
  }
  return sum;
}

double history_plain_reach(const PlainRows *rows, const double *step) {
  double most = 0;
  for (int l = 0; l < rows->count; l++)
    most = fmax(most, fabs(history_plain_product(rows->d, rows->phi + l * rows->d, step)));
  return most;
}

void history_plain_marginals(const PlainRows *rows, const PlainMarginals *given, double *precision,
                             double *vector) {
  const int d = rows->d;
  memset(vector, 0, (size_t)d * sizeof *vector);
  memset(precision, 0, (size_t)(d * d) * sizeof *precision);
  for (int l = 0; l < rows->count; l++) {
    const double *phi = rows->phi + l * d;
    double variance = 0, slope, curvature;
    for (int i = 0; i < d; i++) variance += phi[i] * history_plain_product(d, given->covariance + i * d, phi);
    given->visit(given->context, l, history_plain_product(d, phi, given->mean), variance, &slope, &curvature);
    history_plain_add(d, slope, phi, vector);
    history_plain_add_square(d, curvature, phi, precision);
  }
  for (int i = 0; i < d; i++) vector[i] += history_plain_product(d, precision + i * d, given->mean);
}

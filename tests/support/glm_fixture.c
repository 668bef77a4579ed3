#include "glm_fixture.h"

/* ---- data */

Likelihood glm(const char *name) { return (Likelihood){.ops = likelihood_find(name), .noise = 1}; }

Rows make_rows(const Likelihood *likelihood, int d, int n, double length, uint32_t run) {
  Rows rows = {.d = d, .n = n, .likelihood = *likelihood};
  Rng rng = fixture_rng(run, 4000);
  double theta[D_MOST], normal, uniform;
  ASSERT(d <= D_MOST && n <= ROWS_MOST);
  rng_normal(&rng, d, theta);
  for (int l = 0; l < n; l++) {
    double u = 0;
    rng_normal(&rng, d, rows.phi[l]);
    for (int i = 0; i < d; i++) u += (rows.phi[l][i] *= length / sqrt(d)) * theta[i];
    rng_normal(&rng, 1, &normal);
    rng_uniform(&rng, 1, &uniform);
    rows.y[l] = likelihood->ops->sample(likelihood, fmin(u, 4), uniform, normal);
  }
  return rows;
}

History make_history(Arena *memory, int runs, const Rows *rows, const Likelihood *likelihood) {
  const int d = rows[0].d;
  History history;
  double *phi = fixture_new((size_t)(d * runs), sizeof *phi), *y = fixture_new((size_t)runs, sizeof *y);
  ASSERT(history_create(memory, d, runs, likelihood, &history) == STATUS_OK);
  ASSERT(history_reserve(&history, rows[0].n) == STATUS_OK);
  for (int l = 0; l < rows[0].n; l++) {
    for (int run = 0; run < runs; run++) {
      y[run] = rows[run].y[l];
      for (int i = 0; i < d; i++) phi[i * runs + run] = rows[run].phi[l][i];
    }
    history_record(&history, NULL, phi, y);
  }
  free(phi);
  free(y);
  return history;
}

/* ---- dense reference, straight from the definitions */

double log_reward(const Rows *rows, double y, double u) {
  if (rows->likelihood.ops == likelihood_find("logistic")) return y * u - log1p(exp(u));
  return y * u - exp(u); /* Poisson, without log y! */
}

double mean_reward(const Rows *rows, double u) {
  return rows->likelihood.ops == likelihood_find("logistic") ? 1 / (1 + exp(-u)) : exp(u);
}

double predicted(const Rows *rows, int l, const double *theta) {
  double u = 0;
  for (int i = 0; i < rows->d; i++) u += rows->phi[l][i] * theta[i];
  return u;
}

double log_likelihood(const Rows *rows, const double *theta) {
  double sum = 0;
  for (int l = 0; l < rows->n; l++) sum += log_reward(rows, rows->y[l], predicted(rows, l, theta));
  return sum;
}

double log_normal(int d, const double *theta, const double *mu, const double *precision) {
  double square = 0;
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) square += (theta[i] - mu[i]) * precision[i * d + j] * (theta[j] - mu[j]);
  return -0.5 * square;
}

void derivatives(const Rows *rows, const double *shift, const double *scale, const double *mu,
                 const double *prior, const double *theta, double *gradient, double *hessian) {
  const int d = rows->d;
  double point[D_MOST];
  for (int i = 0; i < d; i++) {
    gradient[i] = 0, point[i] = shift[i] + scale[i] * theta[i];
    for (int j = 0; j < d; j++)
      gradient[i] -= prior[i * d + j] * (theta[j] - mu[j]), hessian[i * d + j] = prior[i * d + j];
  }
  for (int l = 0; l < rows->n; l++) {
    const double *phi = rows->phi[l];
    double mean = mean_reward(rows, predicted(rows, l, point));
    double weight = rows->likelihood.ops == likelihood_find("logistic") ? mean * (1 - mean) : mean;
    for (int i = 0; i < d; i++) {
      gradient[i] += (rows->y[l] - mean) * phi[i] * scale[i];
      for (int j = 0; j < d; j++) hessian[i * d + j] += weight * phi[i] * scale[i] * phi[j] * scale[j];
    }
  }
}

const double ZEROS[D_MOST] = {0}, ONES[D_MOST] = {1, 1, 1, 1, 1};

double newton(const Rows *rows, const double *shift, const double *scale, const double *mu,
              const double *prior, double *mode, double *covariance) {
  const int d = rows->d;
  double gradient[D_MOST], hessian[SQUARE_MOST], step[D_MOST], log_det = 0;
  memcpy(mode, mu, (size_t)d * sizeof *mode);
  for (int pass = 0; pass < 2000; pass++) {
    double length = 0;
    derivatives(rows, shift, scale, mu, prior, mode, gradient, hessian);
    log_det = fixture_invert(d, hessian, covariance);
    for (int i = 0; i < d; i++) {
      step[i] = 0;
      for (int j = 0; j < d; j++) step[i] += covariance[i * d + j] * gradient[j];
      length = hypot(length, step[i]);
    }
    if (length < 1e-13) return log_det;
    for (int i = 0; i < d; i++) mode[i] += step[i] * fmin(1, 0.5 / length);
    if (length < 1e-11) return log_det;
  }
  CU_FAIL("the dense Newton iteration did not arrive");
  return log_det;
}

FixturePosterior laplace_posterior(const Mixture *prior, const Rows *rows) {
  FixturePosterior out;
  const int d = prior->d;
  double largest = -INFINITY, total = 0;
  memset(&out, 0, sizeof out);
  for (int c = 0; c < prior->components; c++) {
    double precision[SQUARE_MOST];
    const double *mu = prior->mean + c * d;
    double log_det_prior = fixture_invert(d, prior->covariance + c * d * d, precision);
    double log_det = newton(rows, ZEROS, ONES, mu, precision, out.mean[c], out.covariance[c]);
    out.weight[c] = log(prior->weight[c]) + log_likelihood(rows, out.mean[c]) +
                    log_normal(d, out.mean[c], mu, precision) - 0.5 * (log_det_prior + log_det);
    largest = fmax(largest, out.weight[c]);
  }
  for (int c = 0; c < prior->components; c++) total += out.weight[c] = exp(out.weight[c] - largest);
  for (int c = 0; c < prior->components; c++) out.weight[c] /= total;
  return out;
}

double glm_quadrature(const Mixture *prior, const Rows *rows, double *mean, double *covariance) {
  enum { POINTS = 360, MOST = 4 };
  const double step = 18.0 / POINTS;
  double precision[4 * MOST], weight[MOST], total = 0;
  for (int c = 0; c < prior->components; c++) {
    const double log_det = fixture_invert(2, prior->covariance + 4 * c, precision + 4 * c);
    weight[c] = prior->weight[c] * exp(-0.5 * log_det) / (2 * M_PI);
  }
  memset(mean, 0, 2 * sizeof *mean);
  memset(covariance, 0, 4 * sizeof *covariance);
  for (int a = 0; a < POINTS * POINTS; a++) {
    double theta[2] = {-9 + (a / POINTS + 0.5) * step, -9 + (a % POINTS + 0.5) * step}, density = 0;
    for (int c = 0; c < prior->components; c++)
      density += weight[c] * exp(log_normal(2, theta, prior->mean + 2 * c, precision + 4 * c));
    const double p = density * exp(log_likelihood(rows, theta));
    total += p;
    for (int i = 0; i < 4; i++) covariance[i] += p * theta[i / 2] * theta[i % 2];
    for (int i = 0; i < 2; i++) mean[i] += p * theta[i];
  }
  for (int i = 0; i < 2; i++) mean[i] /= total;
  for (int i = 0; i < 4; i++) covariance[i] = covariance[i] / total - mean[i / 2] * mean[i % 2];
  return log(total * step * step);
}

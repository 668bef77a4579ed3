#include "plane_fixture.h"

PlanePosterior plane_posterior(const Mixture *prior, const double *lambda, const double *b) {
  PlanePosterior out = {.total_mean = {0}};
  double largest = -1e300, total = 0;
  for (int c = 0; c < prior->components; c++) {
    double inverse[4], precision[4], h[2], m[2],
        log_prior = fixture_invert(2, prior->covariance + 4 * c, inverse);
    const double *mu = prior->mean + 2 * c;
    for (int i = 0; i < 4; i++) precision[i] = inverse[i] + lambda[i];
    for (int i = 0; i < 2; i++) h[i] = inverse[2 * i] * mu[0] + inverse[2 * i + 1] * mu[1] + b[i];
    double log_posterior = fixture_invert(2, precision, out.covariance[c]);
    for (int i = 0; i < 2; i++)
      m[i] = out.mean[c][i] = out.covariance[c][2 * i] * h[0] + out.covariance[c][2 * i + 1] * h[1];
    /* log of the prior times the likelihood at the mode, and the volume under it */
    double error[2] = {m[0] - mu[0], m[1] - mu[1]};
    out.weight[c] = log(prior->weight[c]) - 0.5 * log_prior - 0.5 * log_posterior -
                    0.5 * (error[0] * (inverse[0] * error[0] + inverse[1] * error[1]) +
                           error[1] * (inverse[2] * error[0] + inverse[3] * error[1])) +
                    m[0] * (b[0] - 0.5 * (lambda[0] * m[0] + lambda[1] * m[1])) +
                    m[1] * (b[1] - 0.5 * (lambda[2] * m[0] + lambda[3] * m[1]));
    largest = fmax(largest, out.weight[c]);
  }
  for (int c = 0; c < prior->components; c++) total += out.weight[c] = exp(out.weight[c] - largest);
  for (int c = 0; c < prior->components; c++) {
    out.weight[c] /= total;
    for (int i = 0; i < 2; i++) out.total_mean[i] += out.weight[c] * out.mean[c][i];
  }
  for (int c = 0; c < prior->components; c++)
    for (int i = 0; i < 4; i++)
      out.total_covariance[i] +=
          out.weight[c] * (out.covariance[c][i] + (out.mean[c][i / 2] - out.total_mean[i / 2]) *
                                                      (out.mean[c][i % 2] - out.total_mean[i % 2]));
  return out;
}

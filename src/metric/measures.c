/* The metrics of the posterior study: each takes what it needs from a comparison. */
#include "metric/draws.h"
#include "metric/metrics.h"

enum { PROJECTIONS = 64 /* of the sliced distances */ };

Status measure_emd(const Comparison *self, double *out) {
  return emd_distance(self->emd, self->d, self->x->n, self->x->theta, self->y->n, self->y->theta, out);
}

Status measure_sliced_wasserstein(const Comparison *self, double *out) {
  *out = wasserstein_sliced(self->wasserstein, self->d, self->x->n, self->x->theta, self->y->n,
                            self->y->theta, PROJECTIONS, self->directions);
  return STATUS_OK;
}

Status measure_max_sliced_wasserstein(const Comparison *self, double *out) {
  *out = wasserstein_max_sliced(self->wasserstein, self->d, self->x->n, self->x->theta, self->y->n,
                                self->y->theta, PROJECTIONS, self->directions);
  return STATUS_OK;
}

Status measure_sd_ratio(const Comparison *self, double *out) {
  *out = metric_sd_ratio(self->d, self->x->covariance, self->y->covariance);
  return STATUS_OK;
}

Status measure_mode_weight_error(const Comparison *self, double *out) {
  *out = metric_mode_weight_error(self->modes, self->x->n, self->x->theta, self->y->n, self->y->theta,
                                  self->work);
  return STATUS_OK;
}

Status measure_largest_mode(const Comparison *self, double *out) {
  *out = metric_largest_mode(self->modes, self->y->n, self->y->theta, self->work);
  return STATUS_OK;
}

Status measure_mean_error(const Comparison *self, double *out) {
  *out = metric_mean_error(self->d, self->x->mean, self->y->mean);
  return STATUS_OK;
}

Status measure_covariance_error(const Comparison *self, double *out) {
  *out = metric_covariance_error(self->d, self->x->covariance, self->y->covariance);
  return STATUS_OK;
}

Status measure_distance(const Comparison *self, double *out) {
  *out = metric_distance(self->d, self->x->n, self->x->theta, self->truth);
  return STATUS_OK;
}

/* Measures the rank along a random direction: in any direction ranks are uniform if the draws are exact. */
Status measure_rank(const Comparison *self, double *out) {
  Rng rng = self->directions;
  rng_normal(&rng, self->d, self->work);
  *out = metric_rank(self->d, self->x->n, self->x->theta, self->truth, self->work);
  return STATUS_OK;
}

Status measure_rank_norm(const Comparison *self, double *out) {
  double truth;
  metric_norms(self->d, 1, self->truth, &truth);
  metric_norms(self->d, self->x->n, self->x->theta, self->work);
  *out = metric_below(self->x->n, self->work, truth);
  return STATUS_OK;
}

Status measure_rank_log_likelihood(const Comparison *self, double *out) {
  const int n = self->x->n;
  double truth, *of_draws = self->work, *work = of_draws + n;
  metric_log_likelihoods(self->history, self->run, 1, self->truth, &truth, work);
  metric_log_likelihoods(self->history, self->run, n, self->x->theta, of_draws, work);
  *out = metric_below(n, of_draws, truth);
  return STATUS_OK;
}

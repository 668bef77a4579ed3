#include "model/prior/prior.h"

#include "model/prior/logs_fit.h"

#include <math.h>

Status prior_wide_create(Arena *memory, const Mixture *mixture, double width, Mixture *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  double *covariance;
  ALLOCATE(&scratch, covariance, d * d);
  TRY(mixture_create(memory, mixture->d, 1, out));
  out->weight[0] = 1;
  mixture_moments(mixture, out->mean, covariance);
  for (size_t i = 0; i < d * d; i += d + 1) out->covariance[i] = width * width * covariance[i];
  return mixture_prepare(out);
}

/* Returns the posterior mean by the urn of Eggenberger and Polya: if k of t tasks are wide, the next one is
 * wide with probability (g0 + k) / (1 + t). share[k] is the posterior probability of k, updated task by
 * task. */
double prior_wide_posterior_mean(double weight, int tasks, const double *log_ratio, double *share) {
  double mean = 0;
  share[0] = 1;
  for (int t = 0; t < tasks; t++) {
    const double most = fmax(log_ratio[t], 0), wide = exp(log_ratio[t] - most), learned = exp(-most);
    double sum = 0;
    share[t + 1] = 0;
    for (int k = t + 1; k >= 0; k--) {
      share[k] *= learned * (1 - weight + t - k);
      if (k > 0) share[k] += share[k - 1] * wide * (weight + k - 1);
      sum += share[k];
    }
    for (int k = 0; k <= t + 1; k++) share[k] /= sum;
  }
  for (int k = 0; k <= tasks; k++) mean += share[k] * (weight + k) / (1 + tasks);
  return mean;
}

Status prior_wide_learn(const Mixture *mixture, double width, const Logs *tasks, double *weight) {
  SCRATCH_ARENA(scratch);
  const size_t count = (size_t)tasks->tasks;
  Mixture wide;
  double *learned, *log_ratio, *share;
  ALLOCATE_ARRAYS(&scratch, count, &learned, &log_ratio);
  ALLOCATE(&scratch, share, count + 1);
  TRY(prior_wide_create(&scratch, mixture, width, &wide));
  TRY(logs_density(tasks, mixture, learned));
  TRY(logs_density(tasks, &wide, log_ratio));
  for (size_t t = 0; t < count; t++) log_ratio[t] -= learned[t];
  *weight = prior_wide_posterior_mean(*weight, tasks->tasks, log_ratio, share);
  return STATUS_OK;
}

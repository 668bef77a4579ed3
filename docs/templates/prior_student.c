/* Student's t in d dimensions with the samples' mean m and covariance S: a Gaussian with heavy tails (Kotz
 * and Nadarajah 2004). With nu degrees of freedom and q = (theta - m)' S^-1 (theta - m)
 *
 *   log p = constant - (nu + d) / 2 log(1 + q / (nu - 2)),   theta = m + sqrt((nu - 2) / chi^2_nu) N(0, S).
 */
#include "core/arena.h"
#include "core/linalg/linalg.h"
#include "model/mixture/mixture_density.h"
#include "model/mixture/mixture_store.h"
#include "model/prior/prior.h"

#include <math.h>
#include <string.h>

enum { NU = 6 };

/* Samples theta; the state is N(m, S), a mixture with one component. */
static void student_sample(const Prior *prior, RngLanes *rng, double *theta) {
  const Mixture *gaussian = prior->state;
  mixture_sample(gaussian, rng, theta);
  for (uint32_t n = 0; n < rng->lanes; n++) {
    RngLanes lane = *rng;
    double u[NU / 2], square = 0; /* -2 log u is chi^2 with two degrees of freedom */
    lane.first_lane += n, lane.lanes = 1;
    rng_lanes_uniform(&lane, NU / 2, u);
    for (int k = 0; k < NU / 2; k++) square -= 2 * log(u[k]);
    for (uint32_t i = 0; i < (uint32_t)prior->d; i++) {
      double *x = &theta[i * rng->lanes + n];
      *x = gaussian->mean[i] + sqrt((NU - 2) / square) * (*x - gaussian->mean[i]);
    }
  }
  rng->position += (NU / 2 + 1) / 2; /* two numbers each */
}

/* Returns q, from the log density of N(m, S). */
static double square_of(const Mixture *gaussian, double log_density) {
  return 2 * (gaussian->log_norm[0] - log_density);
}

static void student_log_density(const Prior *prior, int lanes, const double *theta, double *out) {
  const Mixture *gaussian = prior->state;
  const double d = prior->d, constant = lgamma(0.5 * (NU + d)) - lgamma(0.5 * NU) -
                                        0.5 * d * log(0.5 * (NU - 2)) + gaussian->log_norm[0];
  mixture_log_density(gaussian, lanes, theta, out);
  for (int n = 0; n < lanes; n++)
    out[n] = constant - 0.5 * (NU + d) * log1p(square_of(gaussian, out[n]) / (NU - 2));
}

/* Computes the score k g / w and its Jacobian k (2 g g' / w - S^-1) / w, with k = nu + d, w = nu - 2 + q, and
 * the score g = -S^-1 (theta - m) of N(m, S), so q = -g' (theta - m). */
static void student_score(const Prior *prior, int lanes, const double *theta, double *score,
                          double *hessian) {
  const Mixture *gaussian = prior->state;
  const double *precision = mixture_precision(gaussian, 0);
  const size_t d = (size_t)prior->d, stride = (size_t)lanes;
  mixture_score(gaussian, lanes, theta, score);
  for (size_t n = 0; n < stride; n++) {
    const double *x = theta + n;
    double *g = score + n, w = NU - 2;
    for (size_t i = 0; i < d; i++) w -= g[i * stride] * (x[i * stride] - gaussian->mean[i]);
    const double factor = (NU + prior->d) / w;
    for (size_t i = 0; hessian && i < d; i++)
      for (size_t j = 0; j < d; j++)
        hessian[(i * d + j) * stride + n] =
            factor * (2 * g[i * stride] * g[j * stride] / w - precision[i * d + j]);
    for (size_t i = 0; i < d; i++) g[i * stride] *= factor;
  }
}

static Status student_save(const Prior *prior, StoreFile *file) {
  int dim;
  return mixture_store_save(prior->state, file, &dim);
}

static Status student_load(Prior *prior, StoreFile *file, const PriorFit *chain_settings) {
  (void)chain_settings;
  Mixture *gaussian;
  ALLOCATE(prior->memory, gaussian, 1);
  prior->state = gaussian;
  TRY(mixture_store_load(prior->memory, file, gaussian));
  prior->d = gaussian->d;
  if (gaussian->components != 1)
    return status_set(STATUS_INPUT, "%s: a prior 'student' has 1 component, but the file has %d",
                      store_path(file), gaussian->components);
  return mixture_prepare(gaussian);
}

/* Returns the size of the only part: mean[d], covariance[d, d]. */
static size_t student_part_size(const PriorFit *fit, int d) {
  (void)fit;
  return (size_t)d * (1 + (size_t)d);
}

static Status student_fit_part(const PriorFit *fit, const FitSource *source, int part, double *out) {
  const Samples *samples = source->samples;
  (void)fit, (void)part;
  linalg_moments(samples->d, samples->n, samples->theta, out, out + samples->d);
  return STATUS_OK;
}

static Status student_assemble(Prior *prior, const PriorFit *fit, const FitSource *source,
                               const double *parts) {
  (void)fit;
  const Samples *samples = source->samples;
  const size_t d = (size_t)samples->d;
  Mixture *gaussian;
  ALLOCATE(prior->memory, gaussian, 1);
  prior->state = gaussian;
  TRY(mixture_create(prior->memory, samples->d, 1, gaussian));
  gaussian->weight[0] = 1;
  memcpy(gaussian->mean, parts, d * sizeof *parts);
  memcpy(gaussian->covariance, parts + d, d * d * sizeof *parts);
  TRY(mixture_store_check("the fitted prior", gaussian));
  return mixture_prepare(gaussian);
}

static void student_describe_fit(const PriorFit *fit, FILE *out) {
  (void)fit;
  fprintf(out, "moments, nu %d", NU);
}

const PriorOps prior_student = {.name = "student",
                                .summary = "Student's t with the samples' mean and covariance",
                                .reference = "Kotz and Nadarajah (2004)",
                                .sample = student_sample,
                                .save = student_save,
                                .load = student_load,
                                .part_size = student_part_size,
                                .fit_part = student_fit_part,
                                .assemble = student_assemble,
                                .describe_fit = student_describe_fit,
                                .log_density = student_log_density,
                                .score = student_score};

#include "sampler/gradient/potential.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_passes.h"
#include "sampler/mixture/moments.h"

#include <string.h>

/* Draws from which the mean and covariance of a prior without a closed form are computed. */
enum { MOMENT_DRAWS = 1024 };

static Status potential_set_start(Potential *potential, const SamplerSetup *setup) {
  const size_t d = (size_t)potential->d;
  const RngLanes rng = {
      .key = rng_key(setup->seed, RNG_PRIOR_MOMENTS), .draws = MOMENT_DRAWS, .lanes = MOMENT_DRAWS};
  TRY(moments_of_prior(setup->prior, rng, potential->start_mean, potential->start_root));
  const double shrink = 1 / sqrt(potential->prior_weight);
  for (size_t i = 0; i < d; i++)
    potential->start_deviation[i] = shrink * sqrt(potential->start_root[i * (d + 1)]);
  TRY(linalg_cholesky((int)d, potential->start_root));
  for (size_t i = 0; i < d * d; i++) potential->start_root[i] *= shrink;
  memcpy(potential->start_inverse, potential->start_root, d * d * sizeof(double));
  linalg_invert_triangle((int)d, potential->start_inverse);
  return STATUS_OK;
}

static Status potential_set_stiffest(Potential *potential) {
  SCRATCH_ARENA(scratch);
  const Prior *prior = potential->prior;
  const size_t d = (size_t)potential->d;
  if (potential->closed_prior) return STATUS_OK;
  if (prior->mixture) {
    double *work, bound;
    ALLOCATE(&scratch, work, 2 * d * d);
    for (size_t c = 0; c < (size_t)prior->mixture->components; c++) {
      linalg_lanes_fine_bound((int)d, 1, mixture_precision(prior->mixture, (int)c), &bound, work);
      potential->stiffest = fmax(potential->stiffest, bound);
    }
  } else if (prior->chain) {
    const Chain *chain = prior->chain;
    for (size_t i = 0; i < d; i++) {
      double noise = chain->scale[i] * chain->scale[i] * (1 - chain->schedule.alpha_bar[1]);
      potential->stiffest = fmax(potential->stiffest, 1 / noise);
    }
  }
  potential->stiffest *= potential->prior_weight;
  return STATUS_OK;
}

bool potential_targets_posterior(const Config *options) {
  return config_is(options, "eta", "auto") && config_real(options, "lambda") == 1;
}

Status potential_create(Arena *memory, const SamplerSetup *setup, int capacity, Potential *out) {
  const size_t d = (size_t)setup->prior->d, vector = d * (size_t)capacity;
  *out = (Potential){.d = setup->prior->d,
                     .capacity = capacity,
                     .prior = setup->prior,
                     .closed_prior = setup->prior->mixture && setup->prior->mixture->components == 1,
                     .conjugate = likelihood_is_conjugate(setup->likelihood),
                     .network = likelihood_has_network(setup->likelihood),
                     .self_concordance = setup->likelihood->ops->self_concordance};
  const double lambda = config_real(setup->options, "lambda"), noise = likelihood_noise(setup->likelihood);
  const double variance = noise * noise;
  if (config_is(setup->options, "eta", "auto")) {
    out->eta = out->likelihood_weight = 1;
    out->unit = 1 / variance;
  } else {
    out->eta = out->unit = config_real(setup->options, "eta");
    out->likelihood_weight = out->eta * variance;
  }
  out->prior_weight = out->eta * lambda;
  if (out->closed_prior) {
    out->prior_precision = mixture_precision(setup->prior->mixture, 0);
    out->prior_information = mixture_information(setup->prior->mixture, 0);
  }
  ALLOCATE_ARRAYS(memory, d, &out->start_mean, &out->start_deviation);
  if (out->network) { /* has no array that grows as d^2 per lane */
    for (size_t i = 0; i < d; i++) out->start_deviation[i] = 1 / sqrt(out->prior_weight);
    return network_rows_create(memory, &setup->likelihood->network, &out->rows);
  }
  ALLOCATE_ARRAYS(memory, d * d, &out->start_root, &out->start_inverse);
  ALLOCATE_ARRAYS(memory, d * vector, &out->precision, &out->curvature);
  ALLOCATE_ARRAYS(memory, vector, &out->vector, &out->slope, &out->score);
  TRY(potential_set_start(out, setup));
  return potential_set_stiffest(out);
}

/* ---- the coordinates z */

/* Computes matrix[d, d, n] <- A' matrix A, unless it is NULL, and vector[d, n] <- A' vector. */
static void potential_pull_back(Potential *potential, int lanes, double *matrix, double *vector) {
  if (potential->root && matrix)
    linalg_lanes_congruence(potential->d, lanes, true, potential->root, matrix, potential->half);
  potential_to_gradient(potential, lanes, vector);
}

/* Sets the start, too: in z it is the tempered prior, N(A^-1 m, I / prior_weight). */
Status potential_whiten(Arena *memory, Potential *potential) {
  const size_t d = (size_t)potential->d, vector = d * (size_t)potential->capacity;
  const size_t chunk = d * CHUNK_LANES; /* of draws, which may have more lanes than updates take at once */
  const Mixture *prior = potential->prior->mixture;
  const double shrink = 1 / sqrt(potential->prior_weight);
  if (!potential->closed_prior || potential->network || mixture_is_white(prior)) return STATUS_OK;
  double *precision, *mean;
  ALLOCATE_ARRAYS(memory, d * d, &potential->root, &potential->inverse_root, &precision);
  ALLOCATE(memory, mean, d);
  ALLOCATE(memory, potential->point, vector > chunk ? vector : chunk);
  ALLOCATE(memory, potential->half, d * vector);
  memcpy(potential->root, prior->cholesky, d * d * sizeof(double));
  memcpy(potential->inverse_root, prior->cholesky, d * d * sizeof(double));
  linalg_invert_triangle(potential->d, potential->inverse_root);
  linalg_lanes_multiply_shared(potential->d, 1, false, potential->inverse_root, potential->start_mean, mean);
  memcpy(potential->start_mean, mean, d * sizeof(double));
  for (size_t i = 0; i < d; i++) potential->start_deviation[i] = shrink;
  for (size_t i = 0; i < d * d; i++) {
    const bool diagonal = i % (d + 1) == 0;
    precision[i] = diagonal;
    potential->start_root[i] = diagonal ? shrink : 0;
    potential->start_inverse[i] = diagonal ? 1 / shrink : 0;
  }
  potential->prior_precision = precision;
  potential->prior_information = mean;
  return STATUS_OK;
}

const double *potential_theta(Potential *potential, int lanes, const double *z) {
  if (!potential->root) return z;
  linalg_lanes_multiply_shared(potential->d, lanes, false, potential->root, z, potential->point);
  return potential->point;
}

void potential_from_theta(const Potential *potential, int lanes, double *theta) {
  if (!potential->root) return;
  linalg_lanes_multiply_shared(potential->d, lanes, false, potential->inverse_root, theta, potential->point);
  memcpy(theta, potential->point, (size_t)(potential->d * lanes) * sizeof *theta);
}

void potential_to_gradient(const Potential *potential, int lanes, double *gradient) {
  if (!potential->root) return;
  linalg_lanes_multiply_shared(potential->d, lanes, true, potential->root, gradient, potential->point);
  memcpy(gradient, potential->point, (size_t)(potential->d * lanes) * sizeof *gradient);
}

/* Computes history_derivatives at z[d, n], for the lanes of the view in the coordinates z. */
static void potential_rows(Potential *potential, const double *z, double *gradient, double *precision) {
  const int lanes = potential->view.lanes;
  history_derivatives(&potential->view, potential_theta(potential, lanes, z), NULL, gradient, precision);
  potential_pull_back(potential, lanes, precision, gradient);
}

void potential_covariance(Potential *potential, int lanes, double *covariance) {
  if (!potential->root) return;
  linalg_lanes_congruence(potential->d, lanes, false, potential->root, covariance, potential->half);
}

/* ---- at the lanes of a view */

/* Computes out[rows, lanes] <- weight out + prior_weight prior[rows]; `prior` may be NULL. */
SIMD_CLONES
static void potential_weigh(int rows, int lanes, double weight, double prior_weight, const double *prior,
                            double *out) {
  for (int i = 0; i < rows; i++) {
    const double base = prior ? prior_weight * prior[i] : 0;
    for (int n = 0; n < lanes; n++) out[i * lanes + n] = weight * out[i * lanes + n] + base;
  }
}

void potential_at(Potential *potential, const HistoryView *view) {
  const int d = potential->d, lanes = view->lanes;
  ASSERT(lanes <= potential->capacity);
  potential->view = *view;
  if (potential->network) return;
  potential->whole = history_evidence(&potential->view, potential->precision, potential->vector);
  if (potential->whole) potential_pull_back(potential, lanes, potential->precision, potential->vector);
  potential_weigh(d * d, lanes, potential->likelihood_weight, potential->prior_weight,
                  potential->prior_precision, potential->precision);
  potential_weigh(d, lanes, potential->likelihood_weight, potential->prior_weight,
                  potential->prior_information, potential->vector);
}

void potential_start(const Potential *potential, RngLanes *rng, double *theta) {
  const int lanes = (int)rng->lanes;
  const double shrink = 1 / sqrt(potential->prior_weight);
  potential->prior->ops->sample(potential->prior, rng, theta);
  potential_from_theta(potential, lanes, theta);
  for (int i = 0; i < potential->d; i++)
    for (int n = 0; n < lanes; n++)
      theta[i * lanes + n] =
          potential->start_mean[i] + shrink * (theta[i * lanes + n] - potential->start_mean[i]);
}

/* Computes the derivatives with a network, whose prior is N(0, I). */
static void potential_network_derivatives(Potential *potential, const double *theta, double *gradient,
                                          double *hessian) {
  const int d = potential->d, lanes = potential->view.lanes;
  if (hessian)
    network_rows_derivatives(&potential->rows, &potential->view, theta, gradient, hessian);
  else
    network_rows_gradient(&potential->rows, &potential->view, theta, NULL, gradient);
  for (int i = 0; i < d * lanes; i++)
    gradient[i] =
        special_two_products(potential->prior_weight, theta[i], -potential->likelihood_weight, gradient[i]);
  if (!hessian) return;
  potential_weigh(d * d, lanes, potential->likelihood_weight, 0, NULL, hessian);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) hessian[i * (d + 1) * lanes + n] += potential->prior_weight;
}

/* Adds what is not quadratic to gradient and hessian; if hessian is NULL, to the gradient alone, by cheaper
 * passes over the rows. */
static void potential_add_beyond_quadratic(Potential *potential, const double *theta, double *gradient,
                                           double *hessian) {
  const int d = potential->d, lanes = potential->view.lanes;
  const size_t vector = (size_t)d * (size_t)lanes;
  double *curvature = hessian ? potential->curvature : NULL;
  if (!potential->whole) {
    potential_rows(potential, theta, potential->slope, curvature);
    lanes_add(vector, -potential->likelihood_weight, potential->slope, gradient);
    if (hessian) lanes_add((size_t)d * vector, potential->likelihood_weight, curvature, hessian);
  }
  if (potential->closed_prior) return;
  potential->prior->ops->score(potential->prior, lanes, theta, potential->score, curvature);
  lanes_add(vector, -potential->prior_weight, potential->score, gradient);
  if (!hessian) return;
  lanes_add((size_t)d * vector, -potential->prior_weight, curvature, hessian);
  linalg_lanes_symmetrise(d, lanes, hessian);
}

void potential_derivatives(Potential *potential, const double *theta, double *gradient, double *hessian) {
  const int d = potential->d, lanes = potential->view.lanes;
  if (potential->network) {
    potential_network_derivatives(potential, theta, gradient, hessian);
    return;
  }
  linalg_lanes_multiply(d, lanes, potential->precision, theta, gradient);
  lanes_add((size_t)d * (size_t)lanes, -1, potential->vector, gradient);
  if (hessian) memcpy(hessian, potential->precision, (size_t)(d * d * lanes) * sizeof *hessian);
  potential_add_beyond_quadratic(potential, theta, gradient, hessian);
}

void potential_gradients(Potential *potential, int count, const double *theta, double *gradient) {
  const int d = potential->d, lanes = potential->view.lanes;
  if (!potential->network)
    linalg_lanes_multiply_vectors(count, d, lanes, theta, false, potential->precision, gradient);
  for (int k = 0; k < count; k++, theta += d * lanes, gradient += d * lanes) {
    if (potential->network) {
      potential_network_derivatives(potential, theta, gradient, NULL);
      continue;
    }
    lanes_add((size_t)d * (size_t)lanes, -1, potential->vector, gradient);
    potential_add_beyond_quadratic(potential, theta, gradient, NULL);
  }
}

void potential_trust(Potential *potential, const double *step, double *factor) {
  const HistoryView *view = &potential->view;
  const double most = potential->self_concordance > 0 ? 1 / potential->self_concordance : INFINITY;
  const bool bounded = potential->self_concordance == 0 || view->history->rounds == 0;
  if (!bounded) history_reach(view, potential_theta(potential, view->lanes, step), most, factor);
  for (int n = 0; n < view->lanes; n++) factor[n] = bounded || factor[n] <= most ? 1 : most / factor[n];
}

void potential_ceiling(Potential *potential, const double *reference, double *bound, double *scratch) {
  const int d = potential->d, lanes = potential->view.lanes;
  const double *hessian = potential->precision;
  if (potential->network) {
    network_rows_trace(&potential->rows, &potential->view, reference, bound);
    for (int n = 0; n < lanes; n++)
      bound[n] = potential->prior_weight + potential->likelihood_weight * bound[n];
    return;
  }
  if (!potential->whole) {
    double *sum = potential->curvature;
    potential_rows(potential, reference, potential->slope, sum);
    for (int i = 0; i < d * d * lanes; i++)
      sum[i] = potential->likelihood_weight * sum[i] + potential->precision[i];
    hessian = sum;
  }
  if (scratch)
    linalg_lanes_fine_bound(d, lanes, hessian, bound, scratch);
  else
    linalg_lanes_coarse_bound(d, lanes, hessian, bound);
  for (int n = 0; n < lanes; n++) bound[n] += potential->stiffest;
}

/* ---- the value of U, for methods that weigh points by their density */

void potential_value(Potential *potential, const double *theta, const double *log_prior, double *value) {
  const int d = potential->d, lanes = potential->view.lanes;
  double *log_likelihood = potential->slope;
  memset(value, 0, (size_t)lanes * sizeof *value);
  linalg_lanes_add_quadratic(d, lanes, -1,
                             (LanesQuadratic){.matrix = potential->precision, .vector = potential->vector},
                             theta, potential->score, value);
  if (!potential->closed_prior)
    for (int n = 0; n < lanes; n++) value[n] -= potential->prior_weight * log_prior[n];
  if (potential->whole) return;
  history_log_likelihood(&potential->view, potential_theta(potential, lanes, theta), log_likelihood, NULL);
  for (int n = 0; n < lanes; n++) value[n] -= potential->likelihood_weight * log_likelihood[n];
}

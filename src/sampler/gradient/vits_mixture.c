#include "sampler/gradient/vits_mixture.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/mixture/mixture_density.h"
#include "model/mixture/mixture_fit.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { PRIOR_DRAWS = 1024, FIT_STARTS = 4, PAIRS = 8, DRAWS = 2 * PAIRS, ITERATIONS = 100 };

static const double ENOUGH = 1e-3; /* largest change of a weight at which iterations end */

/* Replaces a -U that is not finite: the draw gets no weight, and sums stay finite. */
static const double NEVER = -1e300;

/* ---- start */

/* Fits the mixture to PRIOR_DRAWS draws from the prior. The weights are those of the tempered f_j^w, whose
 * masses are weight_j^w |S_j|^((1 - w) / 2) up to a constant that all j share. */
static Status vits_mixture_set_start(Arena *memory, VitsMixture *self, const SamplerSetup *setup,
                                     double prior_weight) {
  SCRATCH_ARENA(scratch);
  const Prior *prior = setup->prior;
  const size_t d = (size_t)self->d, components = (size_t)self->components, size = sizeof(double);
  const RngKey key = rng_key(setup->seed, RNG_COMPONENTS);
  const double shrink = 1 / sqrt(prior_weight);
  RngLanes rng = {.key = key, .draws = PRIOR_DRAWS, .lanes = PRIOR_DRAWS};
  double *theta, top, total;
  ALLOCATE(&scratch, theta, d * PRIOR_DRAWS);
  prior->ops->sample(prior, &rng, theta);
  TRY(mixture_fit(memory, self->d, PRIOR_DRAWS, theta, self->components, FIT_STARTS,
                  rng_subkey(key, RNG_MIXTURE_START), 0, &self->fitted));
  memcpy(self->start_mean, self->fitted.mean, components * d * size);
  for (size_t i = 0; i < components * d * d; i++) self->start_root[i] = shrink * self->fitted.cholesky[i];
  memcpy(self->start_inverse, self->start_root, components * d * d * size);
  for (size_t j = 0; j < components; j++) {
    const double volume = linalg_log_determinant(self->d, self->fitted.cholesky + j * d * d);
    linalg_invert_triangle(self->d, self->start_inverse + j * d * d);
    self->start_weight[j] = prior_weight * log(self->fitted.weight[j]) + 0.5 * (1 - prior_weight) * volume;
  }
  lanes_exponentiate(self->components, 1, self->start_weight, &top, &total);
  for (size_t j = 0; j < components; j++) self->start_weight[j] /= total;
  return STATUS_OK;
}

Status vits_mixture_create(Arena *memory, const SamplerSetup *setup, const Potential *potential,
                           int components, int capacity, VitsMixture *out) {
  const size_t d = (size_t)potential->d, j = (size_t)components, n = (size_t)capacity;
  *out = (VitsMixture){.d = potential->d, .components = components};
  if (components == 1) return STATUS_OK;
  ALLOCATE(memory, out->start_mean, j * d);
  ALLOCATE_ARRAYS(memory, j * d * d, &out->start_root, &out->start_inverse);
  ALLOCATE(memory, out->start_weight, j);
  ALLOCATE(memory, out->factor, d * d * n);
  ALLOCATE_ARRAYS(memory, n, &out->log_norm, &out->log_prior, &out->value);
  ALLOCATE(memory, out->jitters, n);
  ALLOCATE_ARRAYS(memory, d * n, &out->eps, &out->theta, &out->point);
  ALLOCATE(memory, out->energy, DRAWS * n);
  ALLOCATE(memory, out->log_density, DRAWS * j * n);
  return vits_mixture_set_start(memory, out, setup, potential->prior_weight);
}

void vits_mixture_start(const VitsMixture *mixture, const Potential *potential, int lanes, VitsGaussian q,
                        double *weight) {
  const int d = mixture->d;
  if (mixture->components == 1) {
    vits_start(potential, lanes, 0, lanes, q);
    for (int n = 0; n < lanes; n++) weight[n] = 1;
    return;
  }
  for (int n = 0; n < lanes; n++) {
    const int j = n % mixture->components;
    weight[n] = mixture->start_weight[j];
    for (int i = 0; i < d; i++) q.mean[i * lanes + n] = mixture->start_mean[j * d + i];
    for (int i = 0; i < d * d; i++) {
      q.root[i * lanes + n] = mixture->start_root[j * d * d + i];
      q.inverse[i * lanes + n] = mixture->start_inverse[j * d * d + i];
    }
  }
}

/* ---- weights */

/* Computes out[n] = log q_j at the theta of component (j + k) % J of the same run, without -d log(2 pi) /
 * 2. */
static void vits_component_log_density(VitsMixture *self, int lanes, VitsGaussian q, int k, double *out) {
  const int d = self->d, components = self->components;
  for (int n = 0; n < lanes; n++) {
    const int j = n % components, from = n - j + (j + k) % components;
    for (int i = 0; i < d; i++)
      self->point[i * lanes + n] = self->theta[i * lanes + from] - q.mean[i * lanes + n];
  }
  linalg_factor_forward(d, lanes, self->factor, self->point);
  for (int n = 0; n < lanes; n++) {
    double square = 0;
    for (int i = 0; i < d; i++) square += self->point[i * lanes + n] * self->point[i * lanes + n];
    out[n] = self->log_norm[n] - 0.5 * square;
  }
}

/* Computes the tables energy and log_density. */
static void vits_mixture_evaluate_draws(VitsMixture *self, Potential *potential, VitsGaussian q,
                                        RngLanes *rng) {
  const Prior *prior = potential->prior;
  const int d = self->d, lanes = potential->view.lanes, components = self->components;
  for (int s = 0; s < DRAWS; s++) {
    if (s % 2 == 0) rng_lanes_normal(rng, d, self->eps);
    if (s % 2 == 1)
      for (int i = 0; i < d * lanes; i++) self->eps[i] = -self->eps[i];
    vits_place(d, lanes, q, self->eps, self->theta);
    if (prior->ops->log_density)
      prior->ops->log_density(prior, lanes, self->theta, self->log_prior);
    else
      mixture_log_density(&self->fitted, lanes, self->theta, self->log_prior);
    potential_value(potential, self->theta, self->log_prior, self->value);
    for (int n = 0; n < lanes; n++)
      self->energy[s * lanes + n] = isfinite(self->value[n]) ? -self->value[n] : NEVER;
    for (int k = 0; k < components; k++)
      vits_component_log_density(self, lanes, q, k, self->log_density + (s * components + k) * lanes);
  }
}

/* Gathers the draws of one run in the form that the weights need: share[J, DRAWS, J], q_i at draw s of
 * component j, divided by the largest over all i; excess[J], E_j[-U - log of that largest]. */
static void vits_mixture_gather_run(const VitsMixture *self, int lanes, int first, double *share,
                                    double *excess) {
  const int components = self->components;
  for (int j = 0; j < components; j++) {
    excess[j] = 0;
    for (int s = 0; s < DRAWS; s++) {
      double *q = share + (j * DRAWS + s) * components, most = NEVER;
      for (int i = 0; i < components; i++) {
        const int k = (j - i + components) % components;
        q[i] = self->log_density[(s * components + k) * lanes + first + i];
        most = fmax(most, q[i]);
      }
      for (int i = 0; i < components; i++) q[i] = exp(q[i] - most);
      excess[j] += (self->energy[s * lanes + first + j] - most) / DRAWS;
    }
  }
}

/* Takes one step of weight[J] and returns the largest change. */
static double vits_mixture_improve_weights(int components, const double *share, const double *excess,
                                           double *weight) {
  double bound[VITS_COMPONENTS], most = NEVER, sum = 0, change = 0;
  for (int j = 0; j < components; j++) {
    double total = 0; /* of log (q / largest density) over the draws of component j */
    for (int s = 0; s < DRAWS; s++, share += components) {
      double density = 0;
      for (int i = 0; i < components; i++) density += weight[i] * share[i];
      total += log(fmax(density, DBL_MIN));
    }
    bound[j] = excess[j] - total / DRAWS;
    most = fmax(most, bound[j]);
  }
  for (int j = 0; j < components; j++) sum += bound[j] = weight[j] * exp(bound[j] - most);
  for (int j = 0; j < components; j++) {
    change = fmax(change, fabs(bound[j] / sum - weight[j]));
    weight[j] = bound[j] / sum;
  }
  return change;
}

void vits_mixture_weigh(VitsMixture *mixture, Potential *potential, VitsGaussian q, RngLanes *rng,
                        double *weight, int64_t *fallbacks) {
  const HistoryView *view = &potential->view;
  const int d = mixture->d, lanes = view->lanes, components = mixture->components;
  ASSERT(view->draws == components && lanes % components == 0 && view->first % components == 0);
  if (components == 1) return;
  linalg_lanes_product_by_transposed(d, lanes, q.root, q.root, mixture->factor);
  memset(mixture->jitters, 0, (size_t)lanes * sizeof *mixture->jitters);
  linalg_factor_cholesky(d, lanes, mixture->factor, mixture->jitters);
  for (int n = 0; n < lanes; n++) {
    mixture->log_norm[n] = 0;
    for (int i = 0; i < d; i++) mixture->log_norm[n] -= log(mixture->factor[(i * d + i) * lanes + n]);
    fallbacks[(view->first + n) / view->draws] += mixture->jitters[n];
  }
  vits_mixture_evaluate_draws(mixture, potential, q, rng);
  for (int first = 0; first < lanes; first += components) {
    double share[VITS_COMPONENTS * DRAWS * VITS_COMPONENTS], excess[VITS_COMPONENTS];
    vits_mixture_gather_run(mixture, lanes, first, share, excess);
    for (int j = 0; j < components; j++) weight[first + j] = 1.0 / components;
    for (int k = 0; k < ITERATIONS; k++)
      if (vits_mixture_improve_weights(components, share, excess, weight + first) < ENOUGH) break;
  }
}

/* Stochastic localisation in the eigenbasis of the evidence (sampler/diagonal.h). Added precision stays a
 * multiple of I, so that a component of the prior, N(m_c, v_c I), has the posterior mean (m_c + v_c b) / (1 +
 * v_c p) and variance v_c / (1 + v_c p) in each coordinate, with p = q + s, and
 *
 *     C = diag(sum_c r_c v_c / (1 + v_c p)) + sum_c r_c (D_c - D) (D_c - D)',
 *
 * and a draw from it takes d normals, one more per component, and no matrix. */
#include "sampler/diagonal.h"
#include "core/chunk.h"
#include "core/lanes.h"
#include "model/denoiser/denoiser_localisation.h"

#include <string.h>

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  const Diagonal *posterior;
  double *vector, *mean, *variance, *normal; /* [d, n]: b, D, the diagonal part of C */
  double *share; /* [components, n]: r_c */
  double *along; /* [components, n]: normals for the rest of C */
} Walk;

static double localised_component_mean(const Walk *walk, int c, int i, double p, double b) {
  const Isotropic *prior = walk->posterior->prior;
  const double v = prior->variance[c];
  return (prior->mean[c * prior->d + i] + v * b) / (1 + v * p);
}

static void localised_find_moments(Walk *walk, int lanes, double s) {
  const Isotropic *prior = walk->posterior->prior;
  denoiser_isotropic_shares(prior, walk->posterior->q, s, lanes, walk->vector, walk->share);
  for (int i = 0; i < prior->d; i++) {
    const double p = walk->posterior->q[i] + s;
    double *restrict mean = walk->mean + i * lanes, *restrict variance = walk->variance + i * lanes;
    for (int n = 0; n < lanes; n++) mean[n] = variance[n] = 0;
    for (int c = 0; c < prior->components; c++) {
      const double *restrict share = walk->share + c * lanes, v = prior->variance[c];
      for (int n = 0; n < lanes; n++) {
        mean[n] += share[n] * localised_component_mean(walk, c, i, p, walk->vector[i * lanes + n]);
        variance[n] += share[n] * v / (1 + v * p);
      }
    }
  }
}

/* Adds a draw from N(gain D, gain^2 C + noise I) to x[d, n], with the moments at added precision s. */
static void localised_add_draw(Walk *walk, double s, double gain, double noise, RngLanes *rng, double *x) {
  const Isotropic *prior = walk->posterior->prior;
  const int lanes = (int)rng->lanes, count = prior->components;
  rng_lanes_normal(rng, prior->d, walk->normal);
  rng_lanes_normal(rng, count, walk->along);
  for (int i = 0; i < prior->d; i++)
    for (int n = 0; n < lanes; n++) {
      const int k = i * lanes + n;
      double step = walk->mean[k];
      for (int c = 0; c < count; c++)
        step += sqrt(walk->share[c * lanes + n]) * walk->along[c * lanes + n] *
                (localised_component_mean(walk, c, i, walk->posterior->q[i] + s, walk->vector[k]) -
                 walk->mean[k]);
      walk->normal[k] =
          special_two_products(gain, step, sqrt(gain * gain * walk->variance[k] + noise), walk->normal[k]);
    }
  for (int k = 0; k < prior->d * lanes; k++) x[k] += walk->normal[k];
}

static Status localised_diagonal_draw(const Diagonal *posterior, RngLanes rng, double *x, DrawNotes *notes,
                                      int64_t *fallbacks) {
  SCRATCH_ARENA(memory);
  const Config *options = posterior->options;
  const Isotropic *prior = posterior->prior;
  const int d = prior->d, steps = (int)config_int(options, "steps");
  double *precision, *z, square = 0;
  Walk walk = {.posterior = posterior};
  (void)fallbacks;
  ALLOCATE(&memory, precision, steps + 1);
  ALLOCATE_ARRAYS(&memory, d * CHUNK_LANES, &z, &walk.vector, &walk.mean, &walk.variance, &walk.normal);
  ALLOCATE_ARRAYS(&memory, prior->components * CHUNK_LANES, &walk.share, &walk.along);
  denoiser_isotropic_moments(prior, walk.mean, walk.variance);
  for (int i = 0; i < d; i++) square += walk.variance[i] / d;
  notes->calls = 2 * (steps + 1); /* D, and a product with C, at every step */
  const double scale = sqrt(square), unit = 1 / (scale * scale); /* precisions are in units of 1 / scale^2 */
  denoiser_localisation_precisions(steps, config_real(options, "first_precision"),
                                   config_real(options, "last_precision"), precision);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    lanes_repeat(d, chunk.lanes, posterior->b, walk.vector);
    memset(z, 0, (size_t)(d * chunk.lanes) * sizeof *z);
    for (int k = 0; k <= steps; k++) {
      const double s = unit * precision[k], delta = k < steps ? unit * precision[k + 1] - s : 0;
      localised_find_moments(&walk, chunk.lanes, s);
      if (k < steps)
        localised_add_draw(&walk, s, delta, delta, &chunk.rng, walk.vector);
      else
        localised_add_draw(&walk, s, 1, 0, &chunk.rng, z);
    }
    chunk_store(&chunk, d, z, x);
  }
  return STATUS_OK;
}

static Status localised_diagonal_check(const Config *options) {
  const double first = config_real(options, "first_precision"), last = config_real(options, "last_precision");
  if (!config_is(options, "covariance", "jacobian"))
    return status_set(STATUS_INPUT,
                      "key 'covariance': large settings compute it in closed form; leave it out");
  if (first > last)
    return status_set(STATUS_INPUT, "first_precision %g is above last_precision %g; precision must increase",
                      first, last);
  return STATUS_OK;
}

const DiagonalOps diagonal_localised = {.check = localised_diagonal_check, .draw = localised_diagonal_draw};

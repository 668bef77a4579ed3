#include "sampler/check/strays.h"

#include <math.h>

/* Conditional width of a coordinate in a component, relative to its deviation in the mixture, that counts as
 * rounding; and the distance that shows. */
static const double FIXED = 4e-6, VISIBLE = 1e-3;

static bool strays_is_fixed(const Mixture *prior, int c, int i, const double *deviation) {
  const size_t d = (size_t)prior->d;
  return prior->cholesky[(size_t)c * d * d + (size_t)i * (d + 1)] <= FIXED * deviation[i];
}

/* Returns whether draw n agrees with component c in the coordinates that it fixes; e[d] is scratch. */
static bool strays_agree(const Mixture *prior, int c, const double *deviation, int draws, int n,
                         const double *theta, double *e) {
  const size_t d = (size_t)prior->d;
  const double *root = prior->cholesky + (size_t)c * d * d, *mean = prior->mean + (size_t)c * d;
  for (size_t i = 0; i < d; i++) {
    double rest = theta[i * (size_t)draws + (size_t)n] - mean[i];
    for (size_t j = 0; j < i; j++) rest -= root[i * d + j] * e[j];
    e[i] = rest / root[i * (d + 1)];
    if (strays_is_fixed(prior, c, (int)i, deviation) && !(fabs(rest) <= VISIBLE * deviation[i])) return false;
  }
  return true;
}

Status strays_count(const Mixture *prior, int draws, const double *theta, int *count) {
  SCRATCH_ARENA(scratch);
  const int d = prior->d;
  double *mean, *covariance, *deviation, *e;
  *count = 0;
  ALLOCATE_ARRAYS(&scratch, d, &mean, &deviation, &e);
  ALLOCATE(&scratch, covariance, (size_t)d * (size_t)d);
  mixture_moments(prior, mean, covariance);
  for (int i = 0; i < d; i++) deviation[i] = sqrt(covariance[i * (d + 1)]);
  for (int c = 0; c < prior->components; c++) {
    bool fixes = false;
    for (int i = 0; i < d; i++) fixes = fixes || strays_is_fixed(prior, c, i, deviation);
    if (!fixes) return STATUS_OK;
  }
  for (int n = 0; n < draws; n++) {
    bool agrees = false;
    for (int c = 0; c < prior->components; c++)
      agrees = agrees || strays_agree(prior, c, deviation, draws, n, theta, e);
    *count += !agrees;
  }
  return STATUS_OK;
}

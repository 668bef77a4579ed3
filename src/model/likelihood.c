/* The likelihood families. */
#include "model/likelihood.h"

#include <math.h>
#include <string.h>

/* y = u + sigma e: log p(y | u) = -1/2 ((y - u) / sigma)^2 - log sigma - 1/2 log 2 pi. */
static double gaussian_mean(const Likelihood *likelihood, double u) {
  (void)likelihood;
  return u;
}
static double gaussian_log_likelihood(const Likelihood *likelihood, double y, double u) {
  double residual = (y - u) / likelihood->noise;
  return -0.5 * residual * residual - log(likelihood->noise) - 0.5 * log(2 * M_PI);
}
static double gaussian_slope(const Likelihood *likelihood, double y, double u) {
  return (y - u) / (likelihood->noise * likelihood->noise);
}
static double gaussian_curvature(const Likelihood *likelihood, double y, double u) {
  (void)y, (void)u;
  return -1 / (likelihood->noise * likelihood->noise);
}
static double gaussian_sample(const Likelihood *likelihood, double u, double uniform, double normal) {
  (void)uniform;
  return u + likelihood->noise * normal;
}

static const LikelihoodOps gaussian = {.name = "gaussian",
                                       .summary = "reward phi' theta plus Gaussian noise",
                                       .reference = "DiffTS, equation 1",
                                       .conjugate = true,
                                       .mean = gaussian_mean,
                                       .log_likelihood = gaussian_log_likelihood,
                                       .slope = gaussian_slope,
                                       .curvature = gaussian_curvature,
                                       .sample = gaussian_sample};

static const LikelihoodOps *const families[] = {&gaussian};

const LikelihoodOps *likelihood_family(int index) {
  return index >= 0 && index < (int)(sizeof families / sizeof *families) ? families[index] : NULL;
}

const LikelihoodOps *likelihood_find(const char *name) {
  const LikelihoodOps *family;
  for (int i = 0; (family = likelihood_family(i)); i++)
    if (strcmp(family->name, name) == 0) return family;
  return NULL;
}

const char *likelihood_name(int index) {
  const LikelihoodOps *family = likelihood_family(index);
  return family ? family->name : NULL;
}

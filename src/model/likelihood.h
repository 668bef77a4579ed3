/* Likelihoods: how a reward depends on u = phi' theta. One constant descriptor for each family; an instance
 * adds the noise. */
#ifndef MODEL_LIKELIHOOD_H
#define MODEL_LIKELIHOOD_H

#include "core/rng.h"
#include "core/status.h"

#include <stdbool.h>

typedef struct Likelihood Likelihood;

typedef struct {
  const char *name, *summary, *reference;
  bool conjugate; /* quadratic in u: the evidence is a precision and a vector (history.h) */
  /* Mean reward g(u). */
  double (*mean)(const Likelihood *likelihood, double u);
  /* log p(y | u), its first and second derivative with respect to u. */
  double (*log_likelihood)(const Likelihood *likelihood, double y, double u);
  double (*slope)(const Likelihood *likelihood, double y, double u);
  double (*curvature)(const Likelihood *likelihood, double y, double u);
  /* A reward, from one uniform and one normal number of the round's reward stream (so that every arm would
   * meet the same noise). */
  double (*sample)(const Likelihood *likelihood, double u, double uniform, double normal);
} LikelihoodOps;

struct Likelihood {
  const LikelihoodOps *ops;
  double noise; /* sigma, standard deviation of Gaussian rewards */
};

const LikelihoodOps *likelihood_family(int index); /* registry; NULL ends */
const LikelihoodOps *likelihood_find(const char *name);
const char *likelihood_name(int index);

#endif

/* N(0, I) on the weights of a network (VITS paper, Section 2), which are many, so no matrix is formed.
 * Nothing is fitted or stored. */
#include "model/prior/prior.h"

static void prior_weights_sample(const Prior *prior, RngLanes *rng, double *theta) {
  rng_lanes_normal(rng, prior->d, theta);
}

/* Computes the score alone: the potential of a network knows this prior and asks for no Hessian. */
static void weights_score(const Prior *prior, int lanes, const double *theta, double *score,
                          double *hessian) {
  ASSERT(!hessian);
  for (int i = 0; i < prior->d * lanes; i++) score[i] = -theta[i];
}

static const PriorOps weights_ops = {
    .name = "standard", .sample = prior_weights_sample, .score = weights_score};

Status prior_weights(int d, Prior *out) {
  *out = (Prior){.ops = &weights_ops, .d = d};
  return STATUS_OK;
}

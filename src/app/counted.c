#include "app/counted.h"

#include <stddef.h>
#include <stdint.h>

static Counted *counted_of(const Chain *chain) {
  return (Counted *)((char *)(uintptr_t)chain - offsetof(Counted, chain));
}

static Counted *count(const Chain *chain, int lanes, double flops) {
  Counted *self = counted_of(chain);
  self->flops += flops * lanes;
  self->bytes += self->weights;
  return self;
}

static void noise(const Chain *chain, int t, int lanes, const double *s, double *eps) {
  const Counted *self = count(chain, lanes, counted_of(chain)->forward);
  self->inner->noise(self->inner, t, lanes, s, eps);
}

static void noise_vjp(const Chain *chain, int t, int lanes, const double *s, const double *v, double *out) {
  const Counted *self = count(chain, lanes, 2 * counted_of(chain)->forward);
  self->inner->noise_vjp(self->inner, t, lanes, s, v, out);
}

static void noise_jacobian(const Chain *chain, int t, int lanes, const double *s, double *eps,
                           double *jacobian) {
  const Counted *self = count(chain, lanes, counted_of(chain)->forward + counted_of(chain)->jacobian);
  self->inner->noise_jacobian(self->inner, t, lanes, s, eps, jacobian);
}

void counted_begin(const Prior *prior, const NetworkShape *shape, Counted *out) {
  *out = (Counted){.prior = *prior, .inner = prior->chain};
  if (!shape || !prior->chain) return;
  const double last = 2.0 * shape->width[shape->layers - 1] * shape->width[shape->layers];
  for (int l = 0; l < shape->layers; l++) out->forward += 2.0 * shape->width[l] * shape->width[l + 1];
  out->jacobian =
      shape->width[shape->layers] * (out->forward - last); /* the last layer gives a row as it is */
  out->weights = (double)network_parameters(shape) * sizeof(float);
  out->chain = *prior->chain;
  out->chain.noise = noise;
  out->chain.noise_vjp = noise_vjp;
  if (prior->chain->noise_jacobian) out->chain.noise_jacobian = noise_jacobian;
  out->prior.chain = &out->chain;
}

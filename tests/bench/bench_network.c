/* Measures the speed of the stage networks relative to the FMA peak at the same moment: forward,
 * vector-Jacobian product and loss gradient, counting matrix products only. Usage: bench_network */
#include "core/clock.h"
#include "core/quantile.h"
#include "core/simd_peak.h"
#include "model/network/network_kernel.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_LANES = 256, TRIES = 101 };

typedef enum { FORWARD, VJP, GRADIENT } Pass;

typedef struct {
  NetworkShape shape;
  float *parameters, *x, *y, *out, *workspace;
} Case;

static float *filled(size_t n) {
  float *block = aligned_alloc(64, (n * sizeof(float) + 127) / 64 * 64);
  if (!block) abort();
  for (size_t i = 0; i < n; i++) block[i] = 0.2f * ((float)rand() / (float)RAND_MAX - 0.5f);
  return block;
}

static void run(const Case *c, Pass pass, int lanes) {
  switch (pass) {
  case FORWARD: network_forward(&c->shape, c->parameters, lanes, c->x, c->y, c->workspace); break;
  case VJP: network_vjp(&c->shape, c->parameters, lanes, c->x, c->y, c->out, c->workspace); break;
  case GRADIENT:
    network_loss_gradient(&c->shape, c->parameters, lanes, c->x, c->y, c->out, c->workspace);
    break;
  }
}

/* Returns the multiply-adds of the weights for each lane, times two: one pass forward, one pass back through
 * the inputs and one through the weights. */
static double flops(const NetworkShape *shape, Pass pass) {
  double products = 0, first = (double)shape->width[0] * shape->width[1];
  for (int l = 0; l < shape->layers; l++) products += (double)shape->width[l] * shape->width[l + 1];
  return 2 * (pass == FORWARD ? products : pass == VJP ? 2 * products : 3 * products - first);
}

typedef struct {
  double rate, of_peak; /* best of the tries, flop/s; median over the tries of the share of the peak */
} Speed;

/* Times each try between two tries at the peak, so that all three run at the same clock and with the same
 * neighbours on a shared machine. */
static Speed measure(const Case *c, Pass pass, int lanes) {
  double work = flops(&c->shape, pass) * lanes, share[TRIES], roof = simd_peak_float();
  int calls = (int)(5e7 / work) + 1;
  Speed speed = {0, 0};
  for (int i = 0; i < TRIES; i++) {
    double start = clock_cpu();
    for (int j = 0; j < calls; j++) run(c, pass, lanes);
    double found = work * calls / (clock_cpu() - start), next = simd_peak_float();
    share[i] = 2 * found / (roof + next);
    roof = next;
    if (found > speed.rate) speed.rate = found;
  }
  speed.of_peak = quantile_median(TRIES, share);
  return speed;
}

static Case new_case(int d, int width) {
  Case c = {.shape = network_shape(d, 2, (int[]){width, width}, d)};
  size_t parameters = network_parameters(&c.shape), block = (size_t)d * MOST_LANES;
  c.parameters = filled(parameters);
  c.x = filled(block);
  c.y = filled(block);
  c.out = filled(parameters + block);
  c.workspace = filled(network_workspace(&c.shape));
  return c;
}

static void free_case(Case *c) {
  free(c->parameters), free(c->x), free(c->y), free(c->out), free(c->workspace);
}

int main(void) {
  static const int width[] = {20, 32, 64, 100, 500}, dimension[] = {2, 2, 2, 2, 50};
  static const char *pass_name[] = {"forward", "vjp", "gradient"};
  printf("peak of one core: float %.1f Gflop/s, double %.1f Gflop/s\n",
         simd_peak_best(simd_peak_float) * 1e-9, simd_peak_best(simd_peak_double) * 1e-9);
  printf("d, hidden  pass      lanes        us  Gflop/s  of peak (median)\n");
  for (size_t i = 0; i < sizeof width / sizeof *width; i++) {
    Case c = new_case(dimension[i], width[i]);
    for (Pass pass = FORWARD; pass <= GRADIENT; pass++)
      for (int lanes = 64; lanes <= MOST_LANES; lanes *= 4) {
        Speed speed = measure(&c, pass, lanes);
        printf("%2d,%4d    %-8s  %5d  %8.2f  %7.1f  %4.0f%%\n", dimension[i], width[i], pass_name[pass],
               lanes, 1e6 * flops(&c.shape, pass) * lanes / speed.rate, speed.rate * 1e-9,
               100 * speed.of_peak);
      }
    free_case(&c);
  }
  return 0;
}

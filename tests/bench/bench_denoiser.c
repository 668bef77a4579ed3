/* Measures how much of a core's peak the training of a denoiser reaches: the gradient of its network alone,
 * and whole steps with everything that a step needs (cases, the mixture that is corrected, Adam, averages).
 * Only operations of matrix products count: two for each weight and lane forward and twice that backward,
 * without a gradient with respect to the inputs. Costs that do not grow with the number of steps cancel.
 * Usage: bench_denoiser, which writes JSON for peers.py */
#include "core/clock.h"
#include "core/quantile.h"
#include "core/rng.h"
#include "core/simd_peak.h"
#include "model/denoiser/denoiser_network.h"
#include "model/network/network_kernel.h"
#include "model/prior/families.h"
#include "model/prior/prior.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1000, TRIES = 7 };

static const PriorFit FIT = {.standardise = true, .starts = 1, .seed = 1};

static double operations(const NetworkShape *shape, int batch) {
  double products = 0, first = (double)shape->width[0] * shape->width[1];
  for (int l = 0; l < shape->layers; l++) products += (double)shape->width[l] * shape->width[l + 1];
  return 2 * (3 * products - first) * batch;
}

static float *filled(size_t n) {
  float *block = aligned_alloc(64, (n * sizeof(float) + 127) / 64 * 64);
  if (!block) abort();
  for (size_t i = 0; i < n; i++) block[i] = 0.2f * ((float)rand() / (float)RAND_MAX - 0.5f);
  return block;
}

static double seconds_of_gradients(const NetworkShape *shape, int batch, int calls) {
  float *parameters = filled(network_parameters(shape)), *gradient = filled(network_parameters(shape));
  float *x = filled((size_t)shape->width[0] * (size_t)batch);
  float *target = filled((size_t)shape->width[shape->layers] * (size_t)batch);
  float *workspace = filled(network_workspace(shape));
  double start = clock_cpu();
  for (int i = 0; i < calls; i++)
    network_loss_gradient(shape, parameters, batch, x, target, gradient, workspace);
  double seconds = clock_cpu() - start;
  free(parameters), free(gradient), free(x), free(target), free(workspace);
  return seconds;
}

static double seconds_of_fit(PriorFit fit, const Samples *samples, int steps) {
  fit.steps = steps;
  double *part = malloc(prior_denoiser.part_size(&fit, samples->d) * sizeof *part), start = clock_cpu();
  if (!part || prior_denoiser.fit_part(&fit, &(FitSource){.samples = samples}, 0, part)) abort();
  free(part);
  return clock_cpu() - start;
}

/* Times each try between two tries at the peak, because a shared core changes its speed. */
static void measure(int d, const char *separator) {
  PriorFit fit = FIT;
  double theta[SAMPLES * 16], gradient[TRIES], step[TRIES], seconds[TRIES];
  Rng rng = {.key = rng_key(1, RNG_THETA)};
  Samples samples = {d, SAMPLES, theta};
  rng_normal(&rng, SAMPLES * d, theta);
  prior_settle(&prior_denoiser, &fit, d);
  const NetworkShape shape = network_shape(denoiser_input_count(d), fit.hidden_count, fit.hidden, d);
  const double work = operations(&shape, fit.batch);
  const int steps = (int)(2e10 / work) + 1;
  for (int i = 0; i < TRIES; i++) {
    const double before = simd_peak_float(), kernels = seconds_of_gradients(&shape, fit.batch, steps),
                 between = simd_peak_float(),
                 whole = seconds_of_fit(fit, &samples, 2 * steps) - seconds_of_fit(fit, &samples, steps),
                 after = simd_peak_float();
    gradient[i] = work * steps / kernels * 2 / (before + between);
    step[i] = work * steps / whole * 2 / (between + after);
    seconds[i] = whole / steps;
  }
  printf("%s{\"d\": %d, \"hidden\": [%d, %d], \"batch\": %d, \"operations\": %.6g, \"seconds_a_step\": %.6g, "
         "\"gradient_of_peak\": %.6g, \"step_of_peak\": %.6g}",
         separator, d, fit.hidden[0], fit.hidden[1], fit.batch, work, quantile_median(TRIES, seconds),
         quantile_median(TRIES, gradient), quantile_median(TRIES, step));
}

int main(void) {
  const int d[] = {2, 5, 8, 16};
  for (size_t i = 0; i < sizeof d / sizeof *d; i++) measure(d[i], i ? ",\n " : "[");
  printf("]\n");
  return 0;
}

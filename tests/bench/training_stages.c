/* Trains stages for training_vs_sklearn.py. Usage: training_stages SAMPLES D WIDTH STEPS BATCH RATE PATIENCE
 * STAGE... SAMPLES: raw float64 theta[d, n]. A setting of 0 is the default. Prints one line per stage: stage,
 * CPU seconds (the mean over its group), flop/s at the peak just before and after, reported loss, width,
 * steps and batch, then the parameters (weights and biases of each layer, as network.h stores them). Trains
 * as `thompson train` does, but without standardising the samples, like scikit-learn. */
#include "core/clock.h"
#include "core/simd_peak.h"
#include "model/prior/families.h"
#include "model/prior/prior.h"
#include "model/prior/training.h"

#include <stdio.h>
#include <stdlib.h>

static Samples read_samples(const char *path, int d) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) exit(1);
  size_t values = (size_t)ftell(file) / sizeof(double);
  double *theta = malloc(values * sizeof *theta);
  rewind(file);
  if (!theta || fread(theta, sizeof *theta, values, file) != values) exit(1);
  fclose(file);
  return (Samples){d, (int)values / d, theta};
}

int main(int argc, char **argv) {
  if (argc < 9) return 2;
  Samples samples = read_samples(argv[1], atoi(argv[2]));
  PriorFit fit = {.schedule.stages = 100,
                  .schedule.alpha = 0.97,
                  .hidden_count = atoi(argv[3]) ? 2 : 0,
                  .hidden = {atoi(argv[3]), atoi(argv[3])},
                  .steps = atoi(argv[4]),
                  .batch = atoi(argv[5]),
                  .learning_rate = atof(argv[6]),
                  .patience = atoi(argv[7]),
                  .seed = 1};
  prior_settle(&prior_diffusion, &fit, samples.d);
  size_t size = prior_diffusion.part_size(&fit, samples.d), count = training_stage_values(&fit, samples.d);
  double *part = malloc(size * sizeof *part);
  if (!part) return 1;
  for (int i = 8; i < argc; i++) {
    double before = simd_peak_float(), start = clock_cpu();
    const int stage = atoi(argv[i]) - 1;
    if (prior_diffusion.fit_part(&fit, &(FitSource){.samples = &samples}, stage / TRAINING_GROUP, part))
      return 1;
    double seconds = (clock_cpu() - start) / TRAINING_GROUP;
    const double *values = part + (size_t)(stage % TRAINING_GROUP) * count;
    printf("%s %.6g %.6g %.9g %d %d %d", argv[i], seconds, (before + simd_peak_float()) / 2,
           values[count - 1], fit.hidden[0], fit.steps, fit.batch);
    for (size_t j = 0; j + 1 < count; j++) printf(" %.9g", values[j]);
    printf("\n");
  }
  free(part);
  free(samples.theta);
  return 0;
}

/* Trains stages for training_vs_sklearn.py. Usage: training_stages SAMPLES D WIDTH STEPS BATCH RATE STAGE...
 * SAMPLES: raw float64 theta[d, n]. For each stage one line on standard output: stage, CPU seconds, reported
 * loss, then the parameters (weights and biases of each layer, as network.h stores them). Samples are not
 * standardised, as scikit-learn's are not. */
#include "fma_peak.h"
#include "model/training.h"

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
  if (argc < 8) return 2;
  Samples samples = read_samples(argv[1], atoi(argv[2]));
  PriorFit fit = {.stages = 100,
                  .alpha = 0.97,
                  .hidden_count = 2,
                  .hidden = {atoi(argv[3]), atoi(argv[3])},
                  .steps = atoi(argv[4]),
                  .batch = atoi(argv[5]),
                  .learning_rate = atof(argv[6]),
                  .patience = 20,
                  .seed = 1};
  TrainingSetup setup;
  if (training_create(&fit, &samples, &setup)) return 1;
  size_t count = network_parameters(&setup.shape);
  float *parameters = malloc(count * sizeof *parameters);
  if (!parameters) return 1;
  for (int i = 7; i < argc; i++) {
    double loss, start = bench_seconds();
    training_stage(&setup, atoi(argv[i]), parameters, &loss);
    printf("%s %.6g %.9g", argv[i], bench_seconds() - start, loss);
    for (size_t j = 0; j < count; j++) printf(" %.9g", (double)parameters[j]);
    printf("\n");
  }
  training_destroy(&setup);
  free(parameters);
  free(samples.theta);
  return 0;
}

/* Computes earth mover's distances of pairs of clouds in a file, for emd_vs_pot.py. Usage: bench_emd FILE D N
 * M REPEATS; FILE holds x[D, N] and y[D, M] of each pair as raw doubles. Prints for each pair the distance
 * and the lowest CPU seconds of REPEATS tries. */
#include "core/clock.h"
#include "metric/emd.h"

#include <stdio.h>
#include <stdlib.h>

static double best_of(int repeats, Emd *emd, int d, int n, const double *x, int m, const double *y,
                      double *distance) {
  double best = -1;
  for (int i = 0; i < repeats; i++) {
    double start = clock_cpu();
    if (emd_distance(emd, &(Clouds){d, n, m, x, y}, distance) != STATUS_OK) abort();
    double seconds = clock_cpu() - start;
    if (best < 0 || seconds < best) best = seconds;
  }
  return best;
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "usage: bench_emd FILE D N M REPEATS\n"), 2;
  int d = atoi(argv[2]), n = atoi(argv[3]), m = atoi(argv[4]), repeats = atoi(argv[5]);
  FILE *file = fopen(argv[1], "rb");
  size_t values = (size_t)d * (size_t)(n + m);
  double *clouds = malloc(values * sizeof *clouds), distance;
  Emd *emd;
  SCRATCH_ARENA(memory);
  if (!file || !clouds || emd_create(&memory, n > m ? n : m, &emd) != STATUS_OK) return 1;
  while (fread(clouds, sizeof *clouds, values, file) == values) {
    double seconds = best_of(repeats, emd, d, n, clouds, m, clouds + (size_t)d * (size_t)n, &distance);
    printf("%.17g %.6g\n", distance, seconds);
  }
  free(clouds);
  fclose(file);
  return 0;
}

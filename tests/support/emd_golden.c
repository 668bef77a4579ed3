#include "emd_golden.h"

#include "harness.h"
#include "io/store.h"

#include <stdlib.h>

EmdGolden emd_golden_open(void) {
  const char *root = getenv("THOMPSON_SOURCE");
  char path[4096];
  StoreFile *file;
  size_t cases, values_x, values_y;
  EmdGolden golden = {0};
  snprintf(path, sizeof path, "%s/tests/golden/emd.nc", root ? root : "..");
  if (store_open(path, &file) != STATUS_OK) {
    fprintf(stderr, "%s; set THOMPSON_SOURCE to the project's folder\n", status_message());
    abort();
  }
  CHECK_OK(store_dimension_length(file, "case", &cases));
  CHECK_OK(store_dimension_length(file, "x_value", &values_x));
  CHECK_OK(store_dimension_length(file, "y_value", &values_y));
  golden.cases = (int)cases;
  golden.x = (double *)malloc(values_x * sizeof(double));
  golden.y = (double *)malloc(values_y * sizeof(double));
  if (cases > EMD_GOLDEN_MOST_CASES || !golden.x || !golden.y) abort();
  CHECK_OK(store_get_doubles(file, "dimension", golden.dimension));
  CHECK_OK(store_get_doubles(file, "n", golden.n));
  CHECK_OK(store_get_doubles(file, "m", golden.m));
  CHECK_OK(store_get_doubles(file, "emd", golden.emd));
  CHECK_OK(store_get_doubles(file, "x", golden.x));
  CHECK_OK(store_get_doubles(file, "y", golden.y));
  store_abandon(file);
  return golden;
}

void emd_golden_close(EmdGolden *golden) { free(golden->x), free(golden->y); }

EmdCase emd_golden_case(const EmdGolden *golden, int index) {
  EmdCase pair = {.x = golden->x, .y = golden->y};
  for (int c = 0; c <= index; c++) {
    pair.x += (size_t)pair.d * (size_t)pair.n;
    pair.y += (size_t)pair.d * (size_t)pair.m;
    pair.d = (int)golden->dimension[c];
    pair.n = (int)golden->n[c];
    pair.m = (int)golden->m[c];
  }
  pair.emd = golden->emd[index];
  return pair;
}

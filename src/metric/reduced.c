/* Plain loops over the lanes of a vector become one instruction for each register at every level, and running
 * minima stay in registers. */
#include "metric/reduced.h"

#include "core/simd.h"

#include <math.h>
#include <stdbool.h>

int reduced_stride(int n) { return (n + REDUCED_LANES - 1) / REDUCED_LANES * REDUCED_LANES; }

#define LANES for (int l = 0; l < REDUCED_LANES; l++)
typedef double Lanes __attribute__((vector_size(REDUCED_LANES * sizeof(double)), may_alias, aligned(64)));
#define AT(array, j) (*(const Lanes *)((array) + (j)))

SIMD_CLONES
double reduced_largest(int stride, const double *c) {
  Lanes largest = {0};
  double all = 0;
  for (int j = 0; j < stride; j += REDUCED_LANES) {
    const Lanes x = AT(c, j);
    LANES largest[l] = x[l] > largest[l] ? x[l] : largest[l];
  }
  LANES all = largest[l] > all ? largest[l] : all;
  return all;
}

SIMD_CLONES
double reduced_cost_least(int stride, const double *c, const double *v) {
  Lanes least = (Lanes){0} + INFINITY;
  double all = INFINITY;
  for (int j = 0; j < stride; j += REDUCED_LANES) {
    const Lanes x = AT(c, j) - AT(v, j);
    LANES least[l] = x[l] < least[l] ? x[l] : least[l];
  }
  LANES all = least[l] < all ? least[l] : all;
  return all;
}

SIMD_CLONES
ReducedLeast reduced_two_least(int stride, const double *c, const double *v) {
  Lanes best = (Lanes){0} + INFINITY, next = best, where = {0};
  for (int j = 0; j < stride; j += REDUCED_LANES) {
    const Lanes x = AT(c, j) - AT(v, j);
    const double first = j;
    LANES {
      const double loser = x[l] < best[l] ? best[l] : x[l];
      next[l] = loser < next[l] ? loser : next[l];
    }
    LANES where[l] = x[l] < best[l] ? first : where[l];
    LANES best[l] = x[l] < best[l] ? x[l] : best[l];
  }
  ReducedLeast least = {INFINITY, INFINITY, -1};
  LANES {
    const int column = (int)where[l] + l;
    const bool better = best[l] < least.value || (best[l] == least.value && column < least.column);
    const double loser = better ? least.value : best[l];
    least.second = loser < least.second ? loser : least.second;
    least.second = next[l] < least.second ? next[l] : least.second;
    least.value = better ? best[l] : least.value;
    least.column = better ? column : least.column;
  }
  return least;
}

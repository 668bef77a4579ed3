#include "sampler/markov/metropolis.h"

#include "core/real.h"

SIMD_CLONES
void metropolis_propose(int d, int n, double factor, const double *root, const double *restrict x,
                        double *restrict z) {
  for (RealLanes at = real_begin(n); at.count > 0; real_next(&at))
    for (int i = d - 1; i >= 0; i--) {
      Real sum = {0}, from;
      for (int k = 0; k <= i; k++) {
        real_load(at, 1, z + (size_t)k * at.lanes, &from);
        sum += root[i * d + k] * from;
      }
      real_load(at, 1, x + (size_t)i * at.lanes, &from);
      sum = from + factor * sum;
      real_store(at, 1, &sum, z + (size_t)i * at.lanes);
    }
}

SIMD_CLONES
void metropolis_accept(int d, int n, double exponent, const double *restrict proposal,
                       double *restrict uniform, double *restrict x) {
  const double *from = x + (size_t)d * (size_t)n, *to = proposal + (size_t)d * (size_t)n;
  for (int j = 0; j < n; j++) {
    double gain = to[j] - from[j] + exponent * (to[n + j] - from[n + j]);
    uniform[j] = uniform[j] < special_exp(gain) ? 1 : 0;
  }
  for (int i = 0; i < d + 2; i++, x += n, proposal += n)
    for (int j = 0; j < n; j++) x[j] = uniform[j] != 0 ? proposal[j] : x[j];
}

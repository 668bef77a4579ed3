#include "model/mixture/mixture_evidence.h"

#include "core/lanes.h"
#include "core/real.h"

void mixture_evidence_constants(const Mixture *mixture, double *out) {
  const size_t d = (size_t)mixture->d;
  for (size_t c = 0; c < (size_t)mixture->components; c++) {
    double square = 0;
    for (size_t i = 0; i < d; i++) square += mixture->mean[c * d + i] * mixture->information[c * d + i];
    out[c] = mixture->log_norm[c] - 0.5 * square;
  }
}

void mixture_evidence_add(const Mixture *mixture, int c, int lanes, const double *precision, const double *b,
                          double *factor, double *vector) {
  const int d = mixture->d;
  const size_t entries = (size_t)d * (size_t)lanes;
  lanes_repeat(d * d, lanes, mixture->precision + (size_t)c * (size_t)(d * d), factor);
  lanes_add(entries * (size_t)d, 1, precision, factor);
  lanes_repeat(d, lanes, mixture->information + c * d, vector);
  lanes_add(entries, 1, b, vector);
}

/* Weighs `count` <= VECTOR_LANES lanes, from the first one on; with a count that the compiler knows, loads
 * and stores are plain vector moves. */
INLINE void weigh_vector(int d, int lanes, size_t count, double constant, const double *factor,
                         const double *whitened, double *log_weight) {
  Real sum = {0}, one = {0};
  sum += constant, one += 1;
  for (int i = 0; i < d; i++) {
    Real y = {0}, pivot = one;
    memcpy(&y, whitened + i * lanes, count * sizeof *whitened);
    memcpy(&pivot, factor + (i * d + i) * lanes, count * sizeof *factor);
    pivot = real_log(pivot);
    sum += 0.5 * y * y - pivot;
  }
  memcpy(log_weight, &sum, count * sizeof *log_weight);
}

SIMD_CLONES
void mixture_evidence_weigh(int d, int lanes, double constant, const double *factor, const double *whitened,
                            double *restrict log_weight) {
  int n = 0;
  for (; n + VECTOR_LANES <= lanes; n += VECTOR_LANES)
    weigh_vector(d, lanes, VECTOR_LANES, constant, factor + n, whitened + n, log_weight + n);
  if (n < lanes)
    weigh_vector(d, lanes, (size_t)(lanes - n), constant, factor + n, whitened + n, log_weight + n);
}

#include "model/mixture/mixture_evidence.h"

#include "core/lanes.h"
#include "core/real.h"

void mixture_evidence_constants(const Mixture *mixture, double *out) {
  const size_t d = (size_t)mixture->d;
  for (size_t c = 0; c < (size_t)mixture->components; c++) {
    const double *information = mixture_information(mixture, (int)c);
    double square = 0;
    for (size_t i = 0; i < d; i++) square += mixture->mean[c * d + i] * information[i];
    out[c] = mixture->log_norm[c] - 0.5 * square;
  }
}

void mixture_evidence_add(const Mixture *mixture, int c, int lanes, const double *precision, const double *b,
                          double *factor, double *vector) {
  const int d = mixture->d;
  const size_t entries = (size_t)d * (size_t)lanes;
  lanes_repeat(d * d, lanes, mixture_precision(mixture, c), factor);
  lanes_add(entries * (size_t)d, 1, precision, factor);
  lanes_repeat(d, lanes, mixture_information(mixture, c), vector);
  lanes_add(entries, 1, b, vector);
}

SIMD_CLONES
void mixture_evidence_weigh(int d, int lanes, double constant, const double *factor, const double *whitened,
                            double *restrict log_weight) {
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real sum = real_of(constant);
    for (int i = 0; i < d; i++) {
      Real y, pivot;
      real_load(at, 1, whitened + i * lanes, &y);
      real_load(at, 1, factor + (i * d + i) * lanes, &pivot);
      sum += 0.5 * y * y - real_log(pivot);
    }
    real_store(at, 1, &sum, log_weight);
  }
}

SIMD_CLONES
void mixture_evidence_weigh_shared(int d, int lanes, double constant, const double *factor,
                                   const double *whitened, double *restrict log_weight) {
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real sum = real_of(constant);
    for (int i = 0; i < d; i++) {
      Real y;
      real_load(at, 1, whitened + i * lanes, &y);
      sum += 0.5 * y * y - real_log(real_of(factor[i * (d + 1)]));
    }
    real_store(at, 1, &sum, log_weight);
  }
}

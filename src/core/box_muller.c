/* Compiled once for each instruction level (simd.h). SLEEF's "finz" functions give the same bits at every
 * vector width, so a draw does not depend on whether the machine has AVX-512 or AVX2. */
#include "core/box_muller.h"

#include "core/simd.h"

#include <math.h>
#include <sleef.h>

#if defined(__AVX512F__)

void SIMD_NAME(box_muller)(int pairs, double *u, double *v) {
  for (int i = 0; i < pairs; i += 8) {
    __m512d minus_two = _mm512_set1_pd(-2.0), two = _mm512_set1_pd(2.0);
    __m512d square = _mm512_mul_pd(minus_two, Sleef_finz_logd8_u10avx512f(_mm512_loadu_pd(u + i)));
    __m512d radius = _mm512_sqrt_pd(square);
    Sleef___m512d_2 angle = Sleef_finz_sincospid8_u05avx512f(_mm512_mul_pd(two, _mm512_loadu_pd(v + i)));
    _mm512_storeu_pd(u + i, _mm512_mul_pd(radius, angle.y));
    _mm512_storeu_pd(v + i, _mm512_mul_pd(radius, angle.x));
  }
}

#elif defined(__AVX2__) && defined(__FMA__)

void SIMD_NAME(box_muller)(int pairs, double *u, double *v) {
  for (int i = 0; i < pairs; i += 4) {
    __m256d minus_two = _mm256_set1_pd(-2.0), two = _mm256_set1_pd(2.0);
    __m256d square = _mm256_mul_pd(minus_two, Sleef_finz_logd4_u10avx2(_mm256_loadu_pd(u + i)));
    __m256d radius = _mm256_sqrt_pd(square);
    Sleef___m256d_2 angle = Sleef_finz_sincospid4_u05avx2(_mm256_mul_pd(two, _mm256_loadu_pd(v + i)));
    _mm256_storeu_pd(u + i, _mm256_mul_pd(radius, angle.y));
    _mm256_storeu_pd(v + i, _mm256_mul_pd(radius, angle.x));
  }
}

#else

void SIMD_NAME(box_muller)(int pairs, double *u, double *v) {
  for (int i = 0; i < pairs; i++) {
    double radius = sqrt(-2.0 * Sleef_log_u10(u[i]));
    Sleef_double2 angle = Sleef_sincospi_u05(2.0 * v[i]);
    u[i] = radius * angle.y;
    v[i] = radius * angle.x;
  }
}

#endif

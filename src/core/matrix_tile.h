/* Tiles of products of small square matrices, lane last: HEIGHT x COLUMNS entries for SIMD_DOUBLES lanes,
 * whose sums stay in registers, so that each vector that is loaded meets several others. For files that are
 * compiled once for each instruction level (core/simd.h). */
#ifndef CORE_MATRIX_TILE_H
#define CORE_MATRIX_TILE_H

#include "core/matrix_kernel.h"
#include "core/simd.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { TILE_HEIGHT = SIMD_DOUBLES == 8 ? 4 : SIMD_DOUBLES == 4 ? 3 : 2, TILE_COLUMNS = 4 };

typedef double Real __attribute__((vector_size(8 * SIMD_DOUBLES)));
#define TILE_INLINE static inline __attribute__((always_inline))

#if defined(__AVX2__) && !defined(__AVX512F__)
TILE_INLINE __m256i tile_mask(int count) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_set_epi64x(3, 2, 1, 0));
}
#endif

/* The factors at the first of `count` <= SIMD_DOUBLES lanes; entry (i, k) of a factor in the order `of` is at
 * (i of.row + k of.column) stride. */
typedef struct {
  size_t d, stride;
  const double *a, *b;
  MatrixOrder of_a, of_b;
} MatrixFactors;

/* The first `count` lanes; the others of x stay. Of whole vectors, which the compiler knows, a plain
 * instruction, else one with a mask: a copy of a length that is not known would be a call. */
TILE_INLINE void tile_load(int count, const double *from, Real *x) {
  if (count == SIMD_DOUBLES) {
    __builtin_memcpy(x, from, sizeof *x);
    return;
  }
#if defined(__AVX512F__)
  *x = (Real)_mm512_mask_loadu_pd((__m512d)*x, (__mmask8)((1U << count) - 1), from);
#elif defined(__AVX2__)
  const __m256i mask = tile_mask(count);
  *x = (Real)_mm256_blendv_pd((__m256d)*x, _mm256_maskload_pd(from, mask), _mm256_castsi256_pd(mask));
#else
  for (int n = 0; n < count; n++) (*x)[n] = from[n];
#endif
}

TILE_INLINE void tile_store(int count, const Real *x, double *to) {
  if (count == SIMD_DOUBLES) {
    __builtin_memcpy(to, x, sizeof *x);
    return;
  }
#if defined(__AVX512F__)
  _mm512_mask_storeu_pd(to, (__mmask8)((1U << count) - 1), (__m512d)*x);
#elif defined(__AVX2__)
  _mm256_maskstore_pd(to, tile_mask(count), (__m256d)*x);
#else
  for (int n = 0; n < count; n++) to[n] = (*x)[n];
#endif
}

/* sum <- rows i .. i + height - 1 and columns j .. j + columns - 1 of the product. */
TILE_INLINE void tile_product(int count, const int height, const int columns, const MatrixFactors *p,
                              size_t i, size_t j, Real sum[TILE_HEIGHT][TILE_COLUMNS]) {
  Real x = {0}, y[TILE_COLUMNS] = {{0}};
  for (int r = 0; r < height; r++)
    for (int m = 0; m < columns; m++) sum[r][m] = (Real){0};
  for (size_t k = 0; k < p->d; k++) {
    for (int m = 0; m < columns; m++)
      tile_load(count, p->b + (k * p->of_b.row + (j + (size_t)m) * p->of_b.column) * p->stride, &y[m]);
    for (int r = 0; r < height; r++) {
      tile_load(count, p->a + ((i + (size_t)r) * p->of_a.row + k * p->of_a.column) * p->stride, &x);
      for (int m = 0; m < columns; m++) sum[r][m] += x * y[m];
    }
  }
}

#endif

/* Tiles of products of small matrices, lane last: a few rows and columns for SIMD_DOUBLES lanes, whose sums
 * stay in registers, so that each vector that is loaded is multiplied by several others. For files that are
 * compiled once for each instruction level (core/simd.h). An entry is the same sum in the same order whatever
 * the size of its tile. */
#pragma once

#define REAL_WIDTH SIMD_DOUBLES
#include "core/linalg/linalg_kernel.h"
#include "core/real.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* The most rows and columns in a tile of a product, whose sums fill the registers, and the most pivots in a
 * sweep. With sanitizers, which check each entry, clang would take minutes and gigabytes for all sizes of
 * larger tiles. */
#ifdef SIMD_ONE_VERSION
enum { PRODUCT_ROWS = 2, PRODUCT_COLUMNS = 2, SWEEP_PIVOTS = 2 };
#else
enum {
  PRODUCT_ROWS = SIMD_DOUBLES == 8   ? 5
                 : SIMD_DOUBLES == 4 ? 4
                                     : 2,
  PRODUCT_COLUMNS = SIMD_DOUBLES == 8   ? 5
                    : SIMD_DOUBLES == 4 ? 3
                                        : 4,
  SWEEP_PIVOTS = 4
};
#endif

#if defined(__AVX2__) && !defined(__AVX512F__)
INLINE __m256i linalg_tile_mask(int count) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_set_epi64x(3, 2, 1, 0));
}
#endif

/* Loads the first `count` lanes and leaves the other lanes of x alone. A whole vector, known at compile time,
 * takes a plain instruction and any other a masked one: a copy of unknown length would be a function call. */
INLINE void linalg_tile_load(int count, const double *from, Real *x) {
  if (count == SIMD_DOUBLES) {
    memcpy(x, from, sizeof *x);
    return;
  }
#if defined(__AVX512F__)
  *x = (Real)_mm512_mask_loadu_pd((__m512d)*x, (__mmask8)((1U << count) - 1), from);
#elif defined(__AVX2__)
  const __m256i mask = linalg_tile_mask(count);
  *x = (Real)_mm256_blendv_pd((__m256d)*x, _mm256_maskload_pd(from, mask), _mm256_castsi256_pd(mask));
#else
  for (int n = 0; n < count; n++) (*x)[n] = from[n];
#endif
}

/* Returns the first `count` lanes, and `rest` in the others. */
INLINE Real linalg_tile_read(int count, double rest, const double *from) {
  Real x = real_of(rest);
  linalg_tile_load(count, from, &x);
  return x;
}

INLINE void linalg_tile_store(int count, const Real *x, double *to) {
  if (count == SIMD_DOUBLES) {
    memcpy(to, x, sizeof *x);
    return;
  }
#if defined(__AVX512F__)
  _mm512_mask_storeu_pd(to, (__mmask8)((1U << count) - 1), (__m512d)*x);
#elif defined(__AVX2__)
  _mm256_maskstore_pd(to, linalg_tile_mask(count), (__m256d)*x);
#else
  for (int n = 0; n < count; n++) to[n] = (*x)[n];
#endif
}

/* Calls f(count, ..) for each vector of `lanes` lanes, with n in the other arguments as its first lane; the
 * count is a constant when the vector is whole. */
#define TILE_VECTORS(n, lanes, f, ...)                                                                       \
  for (int n = 0; n < (lanes); n += SIMD_DOUBLES) {                                                          \
    if ((lanes)-n >= SIMD_DOUBLES)                                                                           \
      f(SIMD_DOUBLES, __VA_ARGS__);                                                                          \
    else                                                                                                     \
      f((lanes)-n, __VA_ARGS__);                                                                             \
  }

/* Returns the extent of the next tile when `left` rows or columns remain: tiles are of about equal size,
 * since in a small one the sums wait for each other. */
static inline size_t tile_extent(size_t left, size_t most) {
  return left <= most ? left : left < 2 * most ? (left + 1) / 2 : most;
}

/* Loops over the rows or columns of a tile, unrolled: only then do its sums stay in registers. */
#define PRODUCT_EACH(r, extent) SIMD_UNROLL(5) for (int r = 0; r < (extent); r++)

/* One build for every x86-64 machine.
 *
 * A file of kernels is compiled once for each instruction level (x86-64-v4: AVX-512, v3: AVX2 and FMA, v1:
 * plain), and the loader binds each function of its header to the version for this processor
 * (cmake/Simd.cmake). SIMD_BYTES is the width of the level's registers. A function marked SIMD_CLONES is
 * plain C of which the compiler itself makes the versions, in builds without sanitizers. */
#pragma once

#if defined(__AVX512F__)
enum { SIMD_BYTES = 64 };
#elif defined(__AVX2__) && defined(__FMA__)
enum { SIMD_BYTES = 32 };
#else
enum { SIMD_BYTES = 16 };
#endif
enum { SIMD_DOUBLES = SIMD_BYTES / 8, SIMD_FLOATS = SIMD_BYTES / 4 };

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SIMD_ONE_VERSION)
#define SIMD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SIMD_CLONES
#endif

/* Unrolls the loop that follows, except with sanitizers, which check every copy: clang would take a minute
 * for a file of such loops. */
#ifdef SIMD_ONE_VERSION
#define SIMD_UNROLL(n)
#else
#define SIMD_PRAGMA(text) _Pragma(#text)
#define SIMD_UNROLL(n) SIMD_PRAGMA(GCC unroll n)
#endif

/* Calls f(n, ..) with the number n <= most <= 6 as a constant: the sums of a tile stay in registers only if
 * the compiler knows how many there are. */
#define SIMD_CASE(n, most, f, ...)                                                                           \
  case n:                                                                                                    \
    if ((n) <= (most)) f(n, __VA_ARGS__);                                                                    \
    break;
#define SIMD_CALL(n, most, f, ...)                                                                           \
  switch (n) {                                                                                               \
    SIMD_CASE(1, most, f, __VA_ARGS__)                                                                       \
    SIMD_CASE(2, most, f, __VA_ARGS__)                                                                       \
    SIMD_CASE(3, most, f, __VA_ARGS__)                                                                       \
    SIMD_CASE(4, most, f, __VA_ARGS__)                                                                       \
    SIMD_CASE(5, most, f, __VA_ARGS__)                                                                       \
    SIMD_CASE(6, most, f, __VA_ARGS__)                                                                       \
  default: break;                                                                                            \
  }

/* Inlines a function into every version of its callers, where constant arguments become constants. */
#define INLINE static inline __attribute__((always_inline))

typedef enum { SIMD_V1 = 1, SIMD_V3 = 3, SIMD_V4 = 4 } SimdLevel;

/* Returns the widest level that this processor runs. */
SimdLevel simd_level(void);

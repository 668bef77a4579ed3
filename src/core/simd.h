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

/* Calls f(n, ..), a statement like any other call, with the number n <= most <= 6 as a constant: the sums of
 * a tile stay in registers only if the compiler knows how many there are. */
#define SIMD_CALL(n, most, f, ...)                                                                           \
  do {                                                                                                       \
    switch (n) {                                                                                             \
    case 1:                                                                                                  \
      if (1 <= (most)) f(1, __VA_ARGS__);                                                                    \
      break;                                                                                                 \
    case 2:                                                                                                  \
      if (2 <= (most)) f(2, __VA_ARGS__);                                                                    \
      break;                                                                                                 \
    case 3:                                                                                                  \
      if (3 <= (most)) f(3, __VA_ARGS__);                                                                    \
      break;                                                                                                 \
    case 4:                                                                                                  \
      if (4 <= (most)) f(4, __VA_ARGS__);                                                                    \
      break;                                                                                                 \
    case 5:                                                                                                  \
      if (5 <= (most)) f(5, __VA_ARGS__);                                                                    \
      break;                                                                                                 \
    case 6:                                                                                                  \
      if (6 <= (most)) f(6, __VA_ARGS__);                                                                    \
      break;                                                                                                 \
    default: break;                                                                                          \
    }                                                                                                        \
  } while (0)

/* Inlines a function into every version of its callers, where constant arguments become constants. */
#define INLINE static inline __attribute__((always_inline))

typedef enum { SIMD_V1 = 1, SIMD_V3 = 3, SIMD_V4 = 4 } SimdLevel;

/* Returns the widest level that this processor runs. */
SimdLevel simd_level(void);

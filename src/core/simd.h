/* One build for every x86-64 machine.
 *
 * A file of kernels is compiled once for each instruction level (x86-64-v4: AVX-512, v3: AVX2 and FMA, v1:
 * plain) with SIMD_VARIANT set to its name; SIMD_NAME(f) is then f_v4, f_v3 or f_v1, and a small dispatcher
 * asks simd_level(). SIMD_BYTES is the width of its registers. A function marked SIMD_CLONES is plain C that
 * the compiler versions by itself. Sanitized and foreign builds get one version. See `thompson_simd_objects`
 * in CMakeLists.txt. */
#ifndef CORE_SIMD_H
#define CORE_SIMD_H

#define SIMD_PASTE_(base, variant) base##_##variant
#define SIMD_PASTE(base, variant) SIMD_PASTE_(base, variant)
#ifdef SIMD_VARIANT
#define SIMD_NAME(base) SIMD_PASTE(base, SIMD_VARIANT)
#endif

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

typedef enum { SIMD_V1 = 1, SIMD_V3 = 3, SIMD_V4 = 4 } SimdLevel;

/* The widest level that this processor runs. */
SimdLevel simd_level(void);

/* Call f_v4, f_v3 or f_v1 with the given arguments. */
#define SIMD_CALL(f, ...)                                                                                    \
  do {                                                                                                       \
    switch (simd_level()) {                                                                                  \
    case SIMD_V4: f##_v4(__VA_ARGS__); break;                                                                \
    case SIMD_V3: f##_v3(__VA_ARGS__); break;                                                                \
    default: f##_v1(__VA_ARGS__); break;                                                                     \
    }                                                                                                        \
  } while (0)

#endif

/* Compiled once for each instruction level. The plain version calls Random123; the others do the same ten
 * rounds on eight or four counters at once, each 32-bit word in a 64-bit lane. SLEEF's "finz" functions
 * (error below 3.5 units in the last place) give the same bits at every vector width, so a draw does not
 * depend on whether the machine has AVX-512 or AVX2. */
#include "core/rng_kernel.h"

#include "core/simd.h"

#include <Random123/philox.h>
#include <math.h>
#include <sleef.h>

#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512i Words;
typedef __m512d Reals;
#define OP(name) _mm512_##name
#define LOAD_WORDS(x) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(x)))
#define XOR(a, b) _mm512_xor_si512(a, b)
#define AND(a, b) _mm512_and_si512(a, b)
#define BROADCAST(x) _mm512_set1_epi64(x)
#define OR(a, b) _mm512_or_si512(a, b)
#define AS_REALS(x) _mm512_castsi512_pd(x)
#define LOG Sleef_finz_logd8_u35avx512f
#define SINCOSPI Sleef_finz_sincospid8_u35avx512f
typedef Sleef___m512d_2 Pair;
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
typedef __m256i Words;
typedef __m256d Reals;
#define OP(name) _mm256_##name
#define LOAD_WORDS(x) _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)(x)))
#define XOR(a, b) _mm256_xor_si256(a, b)
#define AND(a, b) _mm256_and_si256(a, b)
#define BROADCAST(x) _mm256_set1_epi64x(x)
#define OR(a, b) _mm256_or_si256(a, b)
#define AS_REALS(x) _mm256_castsi256_pd(x)
#define LOG Sleef_finz_logd4_u35avx2
#define SINCOSPI Sleef_finz_sincospid4_u35avx2
typedef Sleef___m256d_2 Pair;
#endif

#ifdef OP

#define INLINE static inline __attribute__((always_inline))
INLINE Words broadcast(uint32_t word) { return BROADCAST((long long)word); }
INLINE Reals real(double x) { return OP(set1_pd)(x); }

/* ---- uniforms */

/* Rounds and series are chains of dependent instructions: GROUPS vectors side by side fill their gaps. */
enum { GROUPS = SIMD_DOUBLES == 8 ? 4 : 2 };
#define EACH _Pragma("GCC unroll 4") for (int g = 0; g < GROUPS; g++)

/* Of the rounds, both words. */
typedef struct {
  Words word[philox4x32_rounds][2];
} Keys;

INLINE Keys make_keys(const RngCounters *counters) {
  Keys keys;
  uint32_t first = counters->key[0], second = counters->key[1];
  for (int round = 0; round < philox4x32_rounds; round++, first += PHILOX_W32_0, second += PHILOX_W32_1)
    keys.word[round][0] = broadcast(first), keys.word[round][1] = broadcast(second);
  return keys;
}

/* 64 bits to the middle of one of 2^52 equal cells of (0, 1), by way of [1, 2). */
INLINE Reals unit_interval(Words low, Words high) {
  Words bits = OR(AND(low, broadcast(UINT32_MAX)), OP(slli_epi64)(high, 32));
  Words one_to_two = OR(OP(srli_epi64)(bits, 12), BROADCAST(0x3ff0000000000000LL));
  return OP(add_pd)(OP(sub_pd)(AS_REALS(one_to_two), real(1)), real(0x1p-53));
}

/* u, v of counters i .. at this position. The upper halves of the 64-bit lanes hold rubbish, which a
 * multiplication of 32 bits does not read. */
INLINE void uniforms(const RngCounters *counters, const Keys *keys, Words position, int i, Reals u[GROUPS],
                     Reals v[GROUPS]) {
  const Words m0 = broadcast(PHILOX_M4x32_0), m1 = broadcast(PHILOX_M4x32_1);
  Words c[4][GROUPS], product[2][GROUPS];
  EACH c[0][g] = OP(add_epi64)(LOAD_WORDS(counters->position + i + g * SIMD_DOUBLES), position);
  EACH c[1][g] = LOAD_WORDS(counters->draw + i + g * SIMD_DOUBLES);
  EACH c[2][g] = broadcast(counters->round);
  EACH c[3][g] = LOAD_WORDS(counters->run + i + g * SIMD_DOUBLES);
  _Pragma("GCC unroll 10") for (int round = 0; round < philox4x32_rounds; round++) {
    EACH product[0][g] = OP(mul_epu32)(m0, c[0][g]);
    EACH product[1][g] = OP(mul_epu32)(m1, c[2][g]);
    EACH c[0][g] = XOR(XOR(OP(srli_epi64)(product[1][g], 32), c[1][g]), keys->word[round][0]);
    EACH c[2][g] = XOR(XOR(OP(srli_epi64)(product[0][g], 32), c[3][g]), keys->word[round][1]);
    EACH c[1][g] = product[1][g];
    EACH c[3][g] = product[0][g];
  }
  EACH u[g] = unit_interval(c[0][g], c[1][g]);
  EACH v[g] = unit_interval(c[2][g], c[3][g]);
}

/* ---- normals */

INLINE void box_muller(Reals u[GROUPS], Reals v[GROUPS]) {
  EACH {
    const Reals radius = OP(sqrt_pd)(OP(mul_pd)(real(-2), LOG(u[g])));
    const Pair angle = SINCOSPI(OP(mul_pd)(real(2), v[g]));
    u[g] = OP(mul_pd)(radius, angle.y);
    v[g] = OP(mul_pd)(radius, angle.x);
  }
}

/* ---- rows */

typedef enum { UNIFORM, NORMAL } Law;

INLINE void rows(const RngCounters *counters, int count, uint32_t first, uint32_t positions, size_t stride,
                 const Law law, double *out) {
  const Keys keys = make_keys(counters);
  for (uint32_t p = 0; p < positions; p++, out += 2 * stride)
    for (int i = 0; i < count; i += GROUPS * SIMD_DOUBLES) {
      Reals u[GROUPS], v[GROUPS];
      uniforms(counters, &keys, broadcast(first + p), i, u, v);
      if (law == NORMAL) box_muller(u, v);
      EACH OP(storeu_pd)(out + i + g * SIMD_DOUBLES, u[g]);
      EACH OP(storeu_pd)(out + stride + i + g * SIMD_DOUBLES, v[g]);
    }
}

void SIMD_NAME(rng_kernel_uniform)(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                                   size_t stride, double *out) {
  rows(counters, count, first, positions, stride, UNIFORM, out);
}

void SIMD_NAME(rng_kernel_normal)(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                                  size_t stride, double *out) {
  rows(counters, count, first, positions, stride, NORMAL, out);
}

#else

static double unit_interval(uint32_t low, uint32_t high) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

void SIMD_NAME(rng_kernel_uniform)(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                                   size_t stride, double *out) {
  philox4x32_key_t key = {{counters->key[0], counters->key[1]}};
  for (uint32_t p = 0; p < positions; p++, out += 2 * stride)
    for (int i = 0; i < count; i++) {
      philox4x32_ctr_t counter = {
          {counters->position[i] + first + p, counters->draw[i], counters->round, counters->run[i]}};
      philox4x32_ctr_t bits = philox4x32(counter, key);
      out[i] = unit_interval(bits.v[0], bits.v[1]);
      out[stride + (size_t)i] = unit_interval(bits.v[2], bits.v[3]);
    }
}

void SIMD_NAME(rng_kernel_normal)(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                                  size_t stride, double *out) {
  SIMD_NAME(rng_kernel_uniform)(counters, count, first, positions, stride, out);
  for (uint32_t p = 0; p < positions; p++, out += 2 * stride)
    for (int i = 0; i < count; i++) {
      double *u = out + i, *v = out + stride + i;
      double radius = sqrt(-2 * Sleef_log_u35(*u));
      Sleef_double2 angle = Sleef_sincospi_u35(2 * *v);
      *u = radius * angle.y;
      *v = radius * angle.x;
    }
}

#endif

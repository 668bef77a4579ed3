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

static inline Words broadcast(uint32_t word) { return BROADCAST((long long)word); }

/* 64 bits to the middle of one of 2^52 equal cells of (0, 1), by way of [1, 2). */
static inline Reals unit_interval(Words low, Words high) {
  Words bits = OR(AND(low, broadcast(UINT32_MAX)), OP(slli_epi64)(high, 32));
  Words one_to_two = OR(OP(srli_epi64)(bits, 12), BROADCAST(0x3ff0000000000000LL));
  return OP(add_pd)(OP(sub_pd)(AS_REALS(one_to_two), OP(set1_pd)(1)), OP(set1_pd)(0x1p-53));
}

/* Two groups of counters at once: a round is a chain of dependent instructions, and the second group fills
 * its gaps. The upper halves of the 64-bit lanes hold rubbish, which a multiplication of 32 bits does not
 * read. */
void SIMD_NAME(rng_kernel_uniform)(const RngCounters *counters, double *u, double *v) {
  enum { GROUPS = 2 };
  const Words m0 = broadcast(PHILOX_M4x32_0), m1 = broadcast(PHILOX_M4x32_1);
  Words key[philox4x32_rounds][2];
  uint32_t key0 = counters->key[0], key1 = counters->key[1];
  for (int round = 0; round < philox4x32_rounds; round++, key0 += PHILOX_W32_0, key1 += PHILOX_W32_1)
    key[round][0] = broadcast(key0), key[round][1] = broadcast(key1);
  for (int i = 0; i < RNG_KERNEL_PAIRS; i += GROUPS * SIMD_DOUBLES) {
    Words c[GROUPS][4];
    for (int g = 0; g < GROUPS; g++) {
      int at = i + g * SIMD_DOUBLES;
      c[g][0] = LOAD_WORDS(counters->position + at), c[g][1] = LOAD_WORDS(counters->draw + at);
      c[g][2] = broadcast(counters->round), c[g][3] = LOAD_WORDS(counters->run + at);
    }
    for (int round = 0; round < philox4x32_rounds; round++)
      for (int g = 0; g < GROUPS; g++) {
        Words product0 = OP(mul_epu32)(m0, c[g][0]), product1 = OP(mul_epu32)(m1, c[g][2]);
        c[g][0] = XOR(XOR(OP(srli_epi64)(product1, 32), c[g][1]), key[round][0]);
        c[g][2] = XOR(XOR(OP(srli_epi64)(product0, 32), c[g][3]), key[round][1]);
        c[g][1] = product1;
        c[g][3] = product0;
      }
    for (int g = 0; g < GROUPS; g++) {
      OP(storeu_pd)(u + i + g * SIMD_DOUBLES, unit_interval(c[g][0], c[g][1]));
      OP(storeu_pd)(v + i + g * SIMD_DOUBLES, unit_interval(c[g][2], c[g][3]));
    }
  }
}

void SIMD_NAME(rng_kernel_normal)(double *u, double *v) {
  for (int i = 0; i < RNG_KERNEL_PAIRS; i += SIMD_DOUBLES) {
    Reals radius = OP(sqrt_pd)(OP(mul_pd)(OP(set1_pd)(-2), LOG(OP(loadu_pd)(u + i))));
    Pair angle = SINCOSPI(OP(mul_pd)(OP(set1_pd)(2), OP(loadu_pd)(v + i)));
    OP(storeu_pd)(u + i, OP(mul_pd)(radius, angle.y));
    OP(storeu_pd)(v + i, OP(mul_pd)(radius, angle.x));
  }
}

#else

static double unit_interval(uint32_t low, uint32_t high) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

void SIMD_NAME(rng_kernel_uniform)(const RngCounters *counters, double *u, double *v) {
  philox4x32_key_t key = {{counters->key[0], counters->key[1]}};
  for (int i = 0; i < RNG_KERNEL_PAIRS; i++) {
    philox4x32_ctr_t counter = {
        {counters->position[i], counters->draw[i], counters->round, counters->run[i]}};
    philox4x32_ctr_t bits = philox4x32(counter, key);
    u[i] = unit_interval(bits.v[0], bits.v[1]);
    v[i] = unit_interval(bits.v[2], bits.v[3]);
  }
}

void SIMD_NAME(rng_kernel_normal)(double *u, double *v) {
  for (int i = 0; i < RNG_KERNEL_PAIRS; i++) {
    double radius = sqrt(-2 * Sleef_log_u35(u[i]));
    Sleef_double2 angle = Sleef_sincospi_u35(2 * v[i]);
    u[i] = radius * angle.y;
    v[i] = radius * angle.x;
  }
}

#endif

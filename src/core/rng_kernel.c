/* Compiled once for each instruction level. The plain version calls Random123 and SLEEF; the others do the
 * same ten rounds on four or eight counters at once, each 32-bit word in a 64-bit lane, and the arithmetic of
 * SLEEF's "finz" functions (error below 3.5 units in the last place) operation by operation, so that they
 * have the bits of the library, and the same at every vector width, without a call for each vector. */
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
#define AS_WORDS(x) _mm512_castpd_si512(x)
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
#define AS_WORDS(x) _mm256_castpd_si256(x)
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

/* x <- log(x), 2^-53 <= x < 1: x = 2^k m with m in [3/4, 3/2), and of m twice the area tangent of s = (m - 1)
 * / (m + 1), a series in s^2 summed in pairs. */
INLINE void log_unit(Reals x[GROUPS]) {
  const Words least = BROADCAST(0x3fe8000000000000LL), fraction = BROADCAST(0x000fffffffffffffLL);
  const Words integer = BROADCAST(0x4330000000000000LL); /* 2^52, whose last bits count ones */
  const Words bias = BROADCAST(0x3ff0000000000000LL - 0x3fe8000000000000LL);
  Words shifted[GROUPS];
  Reals k[GROUPS], s[GROUPS], s2[GROUPS], s4[GROUPS], high[GROUPS], low[GROUPS];
  EACH shifted[g] = OP(add_epi64)(AS_WORDS(x[g]), bias);
  EACH s[g] = AS_REALS(OP(add_epi64)(AND(shifted[g], fraction), least));
  EACH s[g] = OP(div_pd)(OP(sub_pd)(s[g], real(1)), OP(add_pd)(s[g], real(1)));
  EACH k[g] = OP(sub_pd)(AS_REALS(OR(OP(srli_epi64)(shifted[g], 52), integer)), real(0x1p52 + 1023));
  EACH k[g] = OP(mul_pd)(k[g], real(0.693147180559945286226764));
  EACH s2[g] = OP(mul_pd)(s[g], s[g]);
  EACH s4[g] = OP(mul_pd)(s2[g], s2[g]);
  EACH high[g] = OP(fmadd_pd)(s2[g], real(0.152519917006351951593857), real(0.181863266251982985677316));
  EACH high[g] = OP(fmadd_pd)(s4[g], real(0.153487338491425068243146), high[g]);
  EACH low[g] = OP(fmadd_pd)(s2[g], real(0.399999999950799600689777), real(0.6666666666667778740063));
  EACH x[g] = OP(fmadd_pd)(s2[g], real(0.222221366518767365905163), real(0.285714294746548025383248));
  EACH low[g] = OP(fmadd_pd)(s4[g], x[g], low[g]);
  EACH s4[g] = OP(mul_pd)(s4[g], s4[g]);
  EACH low[g] = OP(fmadd_pd)(s4[g], high[g], low[g]);
  EACH k[g] = OP(fmadd_pd)(s[g], real(2), k[g]);
  EACH s[g] = OP(mul_pd)(s[g], s2[g]);
  EACH x[g] = OP(fmadd_pd)(s[g], low[g], k[g]);
}

/* sine, v <- sin and cos of 2 pi v, 0 < v < 1: eighths of a turn to the nearest even number q, series of what
 * is left. The low bits of a sum with 3 2^52, whose unit is 2, are those of q / 2. */
INLINE void sine_cosine(Reals v[GROUPS], Reals sine[GROUPS]) {
  const Reals shift = real(0x1.8p53);
  const Words one = BROADCAST(1), sign = BROADCAST((long long)0x8000000000000000ULL);
  Reals t[GROUPS], s[GROUPS];
  Words half[GROUPS], exchange[GROUPS];
#define SERIES(x, c) EACH x[g] = OP(fmadd_pd)(x[g], s[g], real(c))
  EACH v[g] = OP(mul_pd)(v[g], real(8));
  EACH half[g] = AS_WORDS(OP(add_pd)(v[g], shift));
  EACH t[g] = OP(sub_pd)(v[g], OP(sub_pd)(AS_REALS(half[g]), shift));
  EACH s[g] = OP(mul_pd)(t[g], t[g]);
  EACH sine[g] = OP(fmadd_pd)(real(0.6880638894766060136e-11), s[g], real(-0.1757159564542310199e-8));
  SERIES(sine, 0.3133616327257867311e-6);
  SERIES(sine, -0.3657620416388486452e-4);
  SERIES(sine, 0.2490394570189932103e-2);
  SERIES(sine, -0.8074551218828056320e-1);
  SERIES(sine, 0.7853981633974482790);
  EACH sine[g] = OP(mul_pd)(sine[g], t[g]);
  EACH v[g] = OP(fmadd_pd)(real(-0.3860141213683794352e-12), s[g], real(0.1150057888029681415e-9));
  SERIES(v, -0.2461136493006663553e-7);
  SERIES(v, 0.3590860446623516713e-5);
  SERIES(v, -0.3259918869269435942e-3);
  SERIES(v, 0.1585434424381541169e-1);
  SERIES(v, -0.3084251375340424373);
  SERIES(v, 1);
#undef SERIES
  /* An odd quarter turn exchanges the two; of the next two half turns each is negative in one. */
  EACH exchange[g] = OP(sub_epi64)(BROADCAST(0), AND(half[g], one));
  EACH exchange[g] = AND(XOR(AS_WORDS(sine[g]), AS_WORDS(v[g])), exchange[g]);
  EACH sine[g] = AS_REALS(XOR(XOR(AS_WORDS(sine[g]), exchange[g]), AND(OP(slli_epi64)(half[g], 62), sign)));
  EACH half[g] = OP(slli_epi64)(OP(add_epi64)(half[g], one), 62);
  EACH v[g] = AS_REALS(XOR(XOR(AS_WORDS(v[g]), exchange[g]), AND(half[g], sign)));
}

INLINE void box_muller(Reals u[GROUPS], Reals v[GROUPS]) {
  Reals sine[GROUPS];
  log_unit(u);
  sine_cosine(v, sine);
  EACH u[g] = OP(sqrt_pd)(OP(mul_pd)(real(-2), u[g]));
  EACH sine[g] = OP(mul_pd)(u[g], sine[g]);
  EACH u[g] = OP(mul_pd)(u[g], v[g]);
  EACH v[g] = sine[g];
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

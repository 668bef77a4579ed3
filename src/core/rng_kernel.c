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
#define BROADCAST(x) _mm512_set1_epi64(x)
#define XOR_LOW(x, a, b) _mm512_mask_ternarylogic_epi32(x, 0x5555, a, b, 0x96)
#define INTEGERS(x) _mm512_cvtepu64_pd(x)
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
#define BROADCAST(x) _mm256_set1_epi64x(x)
#define XOR_LOW(x, a, b) XOR(x, _mm256_and_si256(XOR(a, b), broadcast(UINT32_MAX)))
#define INTEGERS(x) /* below 2^52 */                                                                         \
  OP(sub_pd)(_mm256_castsi256_pd(_mm256_or_si256(x, BROADCAST(0x4330000000000000LL))), real(0x1p52))
#define LOG Sleef_finz_logd4_u35avx2
#define SINCOSPI Sleef_finz_sincospid4_u35avx2
typedef Sleef___m256d_2 Pair;
#endif

#ifdef OP

INLINE Words broadcast(uint32_t word) { return BROADCAST((long long)word); }
INLINE Reals real(double x) { return OP(set1_pd)(x); }

/* ---- uniforms */

/* Rounds are chains of dependent instructions: GROUPS vectors side by side fill their gaps. */
enum { GROUPS = SIMD_DOUBLES == 8 ? 4 : 2, VECTORS = RNG_KERNEL_COUNTERS / SIMD_DOUBLES, ROUNDS = 10 };
#define EACH SIMD_UNROLL(4) for (int g = 0; g < GROUPS; g++)

/* What all positions share: both words of the key of each round, and the parts of the first two rounds that
 * do not depend on the position. */
typedef struct {
  Words key[ROUNDS][2];
  Words position[VECTORS], run[VECTORS], from_round[VECTORS], high[VECTORS], low[VECTORS];
} Streams;

INLINE Words high_word(Words x) { return OP(srli_epi64)(x, 32); }
INLINE Words times(uint32_t multiplier, Words x) { return OP(mul_epu32)(broadcast(multiplier), x); }

INLINE void make_streams(const RngCounters *counters, int count, Streams *streams) {
  uint32_t first = counters->key[0], second = counters->key[1];
  for (int round = 0; round < ROUNDS; round++, first += PHILOX_W32_0, second += PHILOX_W32_1)
    streams->key[round][0] = broadcast(first), streams->key[round][1] = broadcast(second);
  for (int at = 0; at * SIMD_DOUBLES < count; at++) {
    const int i = at * SIMD_DOUBLES;
    const Words product = times(PHILOX_M4x32_1, LOAD_WORDS(counters->round + i));
    const Words draw = XOR(XOR(high_word(product), LOAD_WORDS(counters->draw + i)), streams->key[0][0]);
    streams->position[at] = LOAD_WORDS(counters->position + i);
    streams->run[at] = LOAD_WORDS(counters->run + i);
    streams->from_round[at] = XOR(product, streams->key[1][0]);
    streams->low[at] = times(PHILOX_M4x32_0, draw);
    streams->high[at] = high_word(streams->low[at]);
  }
}

/* Maps 64 bits, the last round's low word above its high one, to the middle of one of 2^52 equal cells of (0,
 * scale). */
INLINE Reals unit_interval(Words product, Words other, Words key, double scale) {
  const Words bits = XOR_LOW(OP(shuffle_epi32)(product, 0xb1), other, key);
  return OP(fmadd_pd)(INTEGERS(OP(srli_epi64)(bits, 12)), real(scale * 0x1p-52), real(scale * 0x1p-53));
}

/* Draws u and scale * v for GROUPS vectors of counters from vector `at` on. The upper halves of the 64-bit
 * lanes hold garbage, which a 32-bit multiplication does not read. */
INLINE void uniforms(const Streams *streams, Words position, int at, double scale, Reals u[GROUPS],
                     Reals v[GROUPS]) {
  const Words(*key)[2] = streams->key;
  Words c[4][GROUPS], product[2][GROUPS];
  EACH product[0][g] = times(PHILOX_M4x32_0, OP(add_epi64)(streams->position[at + g], position));
  EACH c[2][g] = XOR(XOR(high_word(product[0][g]), streams->run[at + g]), key[0][1]);
  EACH c[1][g] = times(PHILOX_M4x32_1, c[2][g]);
  EACH c[0][g] = XOR(high_word(c[1][g]), streams->from_round[at + g]);
  EACH c[2][g] = XOR(XOR(product[0][g], streams->high[at + g]), key[1][1]);
  EACH c[3][g] = streams->low[at + g];
  SIMD_UNROLL(10) for (int round = 2; round < ROUNDS; round++) {
    EACH product[0][g] = times(PHILOX_M4x32_0, c[0][g]);
    EACH product[1][g] = times(PHILOX_M4x32_1, c[2][g]);
    if (round == ROUNDS - 1) break;
    EACH c[0][g] = XOR(XOR(high_word(product[1][g]), c[1][g]), key[round][0]);
    EACH c[2][g] = XOR(XOR(high_word(product[0][g]), c[3][g]), key[round][1]);
    EACH c[1][g] = product[1][g];
    EACH c[3][g] = product[0][g];
  }
  EACH u[g] = unit_interval(product[1][g], c[1][g], key[ROUNDS - 1][0], 1);
  EACH v[g] = unit_interval(product[0][g], c[3][g], key[ROUNDS - 1][1], scale);
}

INLINE void uniform_rows(const Streams *streams, int count, uint32_t first, uint32_t positions, size_t stride,
                         const double scale, double *out) {
  for (uint32_t p = 0; p < positions; p++, out += 2 * stride)
    for (int i = 0; i < count; i += GROUPS * SIMD_DOUBLES) {
      Reals u[GROUPS], v[GROUPS];
      uniforms(streams, broadcast(first + p), i / SIMD_DOUBLES, scale, u, v);
      EACH OP(storeu_pd)(out + i + g * SIMD_DOUBLES, u[g]);
      EACH OP(storeu_pd)(out + stride + i + g * SIMD_DOUBLES, v[g]);
    }
}

void rng_kernel_uniform(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                        size_t stride, double *out) {
  Streams streams;
  make_streams(counters, count, &streams);
  uniform_rows(&streams, count, first, positions, stride, 1, out);
}

/* ---- normals */

/* Positions whose uniforms stay in the first-level cache until they are turned into normals. */
enum { POSITIONS = 16 };

/* Turns rows of u and 2 v into normals. */
INLINE void box_muller(int count, uint32_t positions, size_t stride, double *out) {
  for (uint32_t p = 0; p < positions; p++, out += 2 * stride)
    for (int i = 0; i < count; i += SIMD_DOUBLES) {
      const Reals radius = OP(sqrt_pd)(OP(mul_pd)(real(-2), LOG(OP(loadu_pd)(out + i))));
      const Pair angle = SINCOSPI(OP(loadu_pd)(out + stride + i));
      OP(storeu_pd)(out + i, OP(mul_pd)(radius, angle.y));
      OP(storeu_pd)(out + stride + i, OP(mul_pd)(radius, angle.x));
    }
}

void rng_kernel_normal(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                       size_t stride, double *out) {
  Streams streams;
  make_streams(counters, count, &streams);
  for (uint32_t p = 0; p < positions; p += POSITIONS, out += 2 * POSITIONS * stride) {
    const uint32_t some = positions - p < POSITIONS ? positions - p : POSITIONS;
    uniform_rows(&streams, count, first + p, some, stride, 2, out);
    box_muller(count, some, stride, out);
  }
}

#else

static double unit_interval(uint32_t low, uint32_t high) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

void rng_kernel_uniform(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                        size_t stride, double *out) {
  philox4x32_key_t key = {{counters->key[0], counters->key[1]}};
  for (uint32_t p = 0; p < positions; p++, out += 2 * stride)
    for (int i = 0; i < count; i++) {
      philox4x32_ctr_t counter = {
          {counters->position[i] + first + p, counters->draw[i], counters->round[i], counters->run[i]}};
      philox4x32_ctr_t bits = philox4x32(counter, key);
      out[i] = unit_interval(bits.v[0], bits.v[1]);
      out[stride + (size_t)i] = unit_interval(bits.v[2], bits.v[3]);
    }
}

void rng_kernel_normal(const RngCounters *counters, int count, uint32_t first, uint32_t positions,
                       size_t stride, double *out) {
  rng_kernel_uniform(counters, count, first, positions, stride, out);
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

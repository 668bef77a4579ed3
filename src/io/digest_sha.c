/* After FIPS 180-4, section 6.2, and "Intel SHA Extensions" (Gulley et al., 2013), which names what the
 * instructions do: two rounds each on a state kept as (a, b, e, f) and (c, d, g, h), and the two parts of the
 * message schedule of four words. */
#include "io/digest_sha.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#define SHA_FUNCTION __attribute__((target("sha,sse4.1")))

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static bool ask(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1U << 29)) != 0;
}

/* Asked once: a virtual machine takes 20 us to answer. */
bool digest_sha_is_there(void) {
  static _Atomic int answer; /* 0: not asked yet */
  if (answer == 0) answer = ask() ? 1 : -1;
  return answer > 0;
}

/* The next four words of the message schedule, in the place of those 16 words before. */
SHA_FUNCTION static inline void extend(__m128i w[4], int i) {
  const __m128i before = w[(i + 3) & 3];
  __m128i sum = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
  sum = _mm_add_epi32(sum, _mm_alignr_epi8(before, w[(i + 2) & 3], 4));
  w[i & 3] = _mm_sha256msg2_epu32(sum, before);
}

SHA_FUNCTION void digest_sha_add(uint32_t state[8], const unsigned char *data, size_t blocks) {
  const __m128i bytes = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL); /* big-endian words */
  const __m128i *in = (const __m128i *)(const void *)data;
  __m128i *out = (__m128i *)(void *)state;
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(out), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(out + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0), w[4];
  for (; blocks > 0; blocks--, in += 4) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    for (int i = 0; i < 4; i++) w[i] = _mm_shuffle_epi8(_mm_loadu_si128(in + i), bytes);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
      if (i >= 4) extend(w, i);
      const __m128i constant = _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * i));
      const __m128i term = _mm_add_epi32(w[i & 3], constant);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, term);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(term, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(out, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(out + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool digest_sha_is_there(void) { return false; }

void digest_sha_add(uint32_t state[8], const unsigned char *data, size_t blocks) {
  (void)state, (void)data, (void)blocks;
}

#endif

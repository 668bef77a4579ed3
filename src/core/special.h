/* Special functions that the compiler can inline into a loop over lanes and vectorise (simd.h). */
#pragma once

#include "core/simd.h"
#include "core/tiling.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Returns a b + c d with c d rounded first, in every copy of a loop. In a sum of two products a compiler
 * may fuse either of them with the addition; for aarch64 gcc fuses one in whole vectors and the other in
 * the lanes left over, so that a lane would depend on how many there are. Adding a zero to c d leaves no
 * choice. */
INLINE double special_two_products(double a, double b, double c, double d) { return a * b + (c * d + 0.0); }

/* Returns whether |x| > limit, or x is NaN. Numbers are compared as integers, of which those of NaN are the
 * largest: a floating-point comparison would raise "invalid" on NaN once it is vectorised. */
static inline bool special_is_beyond(double x, double limit) {
  int64_t bits, limit_bits;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&limit_bits, &limit, sizeof limit_bits);
  return (bits & INT64_MAX) > limit_bits;
}

/* exp(r) by its Taylor series, highest power first: STEP(c) replaces p by p r + c. */
#define SPECIAL_EXP_FIRST (1.0 / 6227020800) /* 1 / 13! */
#define SPECIAL_EXP_SERIES(STEP)                                                                             \
  STEP(1.0 / 479001600)                                                                                      \
  STEP(1.0 / 39916800)                                                                                       \
  STEP(1.0 / 3628800)                                                                                        \
  STEP(1.0 / 362880)                                                                                         \
  STEP(1.0 / 40320)                                                                                          \
  STEP(1.0 / 5040)                                                                                           \
  STEP(1.0 / 720) STEP(1.0 / 120) STEP(1.0 / 24) STEP(1.0 / 6) STEP(0.5) STEP(1) STEP(1)

/* Returns exp(x) within 2 units in the last place for -708 <= x <= 709. The library's exp is one call per
 * lane, and SLEEF's functions are named by register width: neither works in a plain loop. x = k log 2 + r,
 * |r| <= log(2)/2 (remainder of the series below 2^-57). Raises no floating-point exception but inexact. */
static inline double special_exp_inside(double x) {
  union {
    double real;
    int64_t bits;
  } rounded, scale;
  rounded.real = x * 0x1.71547652b82fep0 + 0x1.8p52; /* the low bits of the sum are the nearest integer, k */
  double k = rounded.real - 0x1.8p52;
  double r = (x - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b39p-40;
  double p = SPECIAL_EXP_FIRST;
#define SPECIAL_STEP(c) p = p * r + (c);
  SPECIAL_EXP_SERIES(SPECIAL_STEP)
#undef SPECIAL_STEP
  scale.bits = (int64_t)((uint64_t)(rounded.bits + 1023) << 52);
  return p * scale.real;
}

/* Returns exp(x) for every x: 0 below -708, exp(709) above 709. Selects by masks: without AVX-512 gcc does
 * not vectorise a loop that selects between doubles, which costs four times as much. */
static inline double special_exp(double x) {
  typedef union {
    double real;
    int64_t bits;
  } Word;
  const int64_t under = -(int64_t)(x < -708), over = -(int64_t)(x > 709);
  const Word least = {.real = -708}, most = {.real = 709}, given = {.real = x};
  const Word inside = {.bits = (given.bits & ~(under | over)) | (least.bits & under) | (most.bits & over)};
  Word out = {.real = special_exp_inside(inside.real)};
  out.bits &= ~under;
  return out.real;
}

/* Returns log(e^a + e^b). */
static inline double special_log_sum(double a, double b) { return fmax(a, b) + log1p(exp(-fabs(a - b))); }

/* Returns log(1 + x) for 0 <= x <= 1, within 2 units in the last place: 2 artanh(s) for s = x / (2 + x) <=
 * 1/3, by its series up to s^33 (remainder below 2^-58). */
static inline double special_log1p(double x) {
  double s = x / (2 + x), square = s * s, p = 1.0 / 33;
  SIMD_UNROLL(15) for (int odd = 31; odd >= 3; odd -= 2) p = p * square + 1.0 / odd;
  return special_two_products(2, s, 2 * s * square, p);
}

/* Computes Phi^-1(1 - tail) for 0 < tail <= 1/2, by Newton's method on the logarithm of Phi's tail, which is
 * concave: it starts above the root, at sqrt(-2 log(2 tail)), and goes down to it. */
static inline double special_upper_quantile(double tail) {
  enum { STEPS = 30 };
  double z = sqrt(-2 * log(2 * tail));
  for (int step = 0; step < STEPS; step++) {
    const double beyond = 0.5 * erfc(z * M_SQRT1_2), density = exp(-0.5 * z * z) / sqrt(2 * M_PI);
    const double change = beyond / density * log(beyond / tail);
    z += change;
    if (fabs(change) <= 1e-14 * z) break;
  }
  return z;
}

/* One number for each of eight runs: samplers hold their state in groups of VECTOR_LANES runs, the last group
 * padded, and read as if written for one run. Arrays of other layouts are converted on the way in and out.
 * For kernels and functions marked SIMD_CLONES (core/simd.h): registers of any width give the same bits if
 * products and sums are fused.
 *
 * A file of kernels that keeps no groups defines REAL_WIDTH as SIMD_DOUBLES before it includes this. Its
 * vectors then fit into registers at every level; gcc keeps wider ones in memory. */
#pragma once

#include "core/special.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifndef REAL_WIDTH
#define REAL_WIDTH VECTOR_LANES
#endif

typedef double Real __attribute__((vector_size(8 * REAL_WIDTH)));
typedef int64_t Mask __attribute__((vector_size(8 * REAL_WIDTH))); /* -1 for true, 0 for false */
typedef uint64_t RealWords __attribute__((vector_size(8 * REAL_WIDTH)));

INLINE Real real_of(double x) { return (Real){0} + x; }
INLINE Real real_choose(Mask mask, Real yes, Real no) {
  return (Real)(((Mask)yes & mask) | ((Mask)no & ~mask));
}
/* Returns |x|. */
INLINE Real real_size(Real x) { return (Real)((Mask)x & INT64_MAX); }
/* Returns the mask of x > y. The loop becomes instructions of the machine's width; gcc compares two vectors
 * that are wider than these one number at a time. */
INLINE Mask real_above(Real x, Real y) {
  double left[REAL_WIDTH], right[REAL_WIDTH];
  int64_t above[REAL_WIDTH];
  Mask mask;
  memcpy(left, &x, sizeof x);
  memcpy(right, &y, sizeof y);
  for (int n = 0; n < REAL_WIDTH; n++) above[n] = left[n] > right[n] ? -1 : 0;
  memcpy(&mask, above, sizeof mask);
  return mask;
}
INLINE Real real_max(Real x, Real y) { return real_choose(real_above(x, y), x, y); }
/* Returns x, or the closer end if it is not between -most and most. */
INLINE Real real_within(double most, Real x) {
  return real_max(real_of(-most), -real_max(real_of(-most), -x));
}
/* Computes special_two_products of each lane. */
INLINE Real real_two_products(Real a, Real b, Real c, Real d) { return a * b + (c * d + 0.0); }
INLINE bool real_everywhere(Mask mask) {
  int64_t all = -1;
  for (int n = 0; n < REAL_WIDTH; n++) all &= mask[n];
  return all != 0;
}

/* ---- in and out */

/* Lanes first .. first + count - 1 of arrays whose lane is last. */
typedef struct {
  size_t first, count, lanes;
} RealLanes;

/* Walks over the lanes vector by vector: for (RealLanes at = real_begin(lanes); at.count > 0;
 * real_next(&at)); the last vector has the lanes that are left. */
INLINE RealLanes real_at(size_t first, size_t lanes) {
  const size_t left = lanes - first;
  return (RealLanes){first, left < REAL_WIDTH ? left : REAL_WIDTH, lanes};
}
INLINE RealLanes real_begin(int lanes) { return real_at(0, (size_t)lanes); }
INLINE void real_next(RealLanes *at) { *at = real_at(at->first + at->count, at->lanes); }

/* Loads to[rows] from from[rows, lanes], with zeros in lanes beyond the last, or (below) stores the vectors
 * back. */
INLINE void real_load(RealLanes at, int rows, const double *from, Real *to) {
  for (int k = 0; k < rows; k++, from += at.lanes) {
    Real x = {0};
    if (at.count == REAL_WIDTH)
      memcpy(&x, from + at.first, sizeof x);
    else
      memcpy(&x, from + at.first, at.count * sizeof *from);
    to[k] = x;
  }
}
INLINE void real_store(RealLanes at, int rows, const Real *from, double *to) {
  for (int k = 0; k < rows; k++, to += at.lanes) {
    const Real x = from[k];
    if (at.count == REAL_WIDTH)
      memcpy(to + at.first, &x, sizeof x);
    else
      memcpy(to + at.first, &x, at.count * sizeof *to);
  }
}

/* Fills lanes from `count` on with copies of the first, so that what is computed in them is finite. */
INLINE void real_pad(int count, int rows, Real *x) {
  for (int k = 0; k < rows; k++)
    for (int n = count; n < REAL_WIDTH; n++) x[k][n] = x[k][0];
}

/* Copies lane from_run % REAL_WIDTH of from[rows] to lane to_run % REAL_WIDTH of to[rows]. */
INLINE void real_copy_lane(int rows, const Real *from, int from_run, Real *to, int to_run) {
  for (int k = 0; k < rows; k++) to[k][to_run % REAL_WIDTH] = from[k][from_run % REAL_WIDTH];
}

/* ---- functions */

/* Takes square roots through memory; otherwise the compiler extracts the lanes one by one. */
INLINE Real real_root(Real x) {
  double each[REAL_WIDTH];
  memcpy(each, &x, sizeof x);
  for (int n = 0; n < REAL_WIDTH; n++) each[n] = sqrt(each[n]);
  memcpy(&x, each, sizeof x);
  return x;
}

/* Computes special_exp of each lane. */
INLINE Real real_exp(Real x) {
  const Mask under = real_above(real_of(-708), x);
  const Real inside =
      real_choose(under, real_of(-708), real_choose(real_above(x, real_of(709)), real_of(709), x));
  const Real rounded = inside * 0x1.71547652b82fep0 + 0x1.8p52, k = rounded - 0x1.8p52;
  const Real r = (inside - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b39p-40;
  Real p = real_of(SPECIAL_EXP_FIRST);
#define REAL_STEP(c) p = p * r + (c);
  SPECIAL_EXP_SERIES(REAL_STEP)
#undef REAL_STEP
  return (Real)((Mask)(p * (Real)(((Mask)rounded + 1023) << 52)) & ~under);
}

/* Many exponentials at once: x[REAL_LANES] <- special_exp_inside(x), to rounding. The series is one long
 * chain of dependent operations; here four vectors go through it side by side, in 2/3 of the time per
 * number. */
enum { REAL_VECTORS = 4, REAL_LANES = REAL_VECTORS * REAL_WIDTH };
#define REAL_EACH(k) SIMD_UNROLL(4) for (int k = 0; k < REAL_VECTORS; k++)

INLINE void real_exp_many(double *x) {
  Real r[REAL_VECTORS], p[REAL_VECTORS], rounded[REAL_VECTORS], whole[REAL_VECTORS];
  memcpy(r, x, sizeof r);
  REAL_EACH(k) rounded[k] = r[k] * 0x1.71547652b82fep0 + 0x1.8p52;
  REAL_EACH(k) whole[k] = rounded[k] - 0x1.8p52;
  REAL_EACH(k) r[k] -= whole[k] * 0x1.62e42fefa0000p-1;
  REAL_EACH(k) r[k] -= whole[k] * 0x1.cf79abc9e3b39p-40;
  REAL_EACH(k) p[k] = real_of(SPECIAL_EXP_FIRST);
#define REAL_STEP(c) REAL_EACH(k) p[k] = p[k] * r[k] + (c);
  SPECIAL_EXP_SERIES(REAL_STEP)
#undef REAL_STEP
  REAL_EACH(k) p[k] *= (Real)(((Mask)rounded[k] + 1023) << 52);
  memcpy(x, p, sizeof p);
}

/* Computes x^-1/2 for normal x > 0, within 2 units in the last place; 1 at 1. Takes half the time of a square
 * root and a division: four steps of Newton's method, each of which squares the error, from a start that is
 * off by 3%. */
INLINE Real real_inverse_root(Real x) {
  const Real half = 0.5 * x;
  Real y = (Real)(0x5fe6eb50c7b537a9 - ((RealWords)x >> 1));
  SIMD_UNROLL(4) for (int step = 0; step < 4; step++) y += y * (0.5 - half * y * y);
  return y;
}

/* Computes log(x) for normal x > 0, within 3 units in the last place: x = 2^k m with m between 1/sqrt(2) and
 * sqrt(2), and log(m) = 2 artanh(s) for s = (m - 1) / (m + 1), by its series up to s^21 (remainder below
 * 2^-58). */
INLINE Real real_log(Real x) {
  const uint64_t least = 0x3fe6a09e667f3bcd, fraction = 0x000fffffffffffff; /* 1 / sqrt(2) */
  const uint64_t integer = 0x4330000000000000; /* 2^52, whose last bit counts ones */
  const RealWords shifted = (RealWords)x - least + (uint64_t)0x3ff0000000000000;
  const Real k = (Real)(shifted >> 52 | integer) - (0x1p52 + 1023);
  const Real m = (Real)((shifted & fraction) + least);
  const Real s = (m - 1) / (m + 1), square = s * s;
  Real p = real_of(1.0 / 21);
  SIMD_UNROLL(9) for (int odd = 19; odd >= 3; odd -= 2) p = p * square + 1.0 / odd;
  return k * 0x1.62e42fefa39efp-1 + (2 * s + 2 * s * square * p);
}

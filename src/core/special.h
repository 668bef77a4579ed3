/* Special functions that the compiler can inline into a loop over lanes and vectorise (simd.h). */
#ifndef CORE_SPECIAL_H
#define CORE_SPECIAL_H

#include <stdint.h>

/* exp(x) within 2 units in the last place; 0 below -708, exp(709) above 709. The library's exp is a call for
 * each lane, and SLEEF's are named by register width: neither can stand in a plain loop. x = k log 2 + r, |r|
 * <= log(2)/2, exp(r) by its Taylor series to r^13 (remainder below 2^-57). Raises no floating-point
 * exception but inexact. */
static inline double special_exp(double x) {
  union {
    double real;
    int64_t bits;
  } rounded, scale;
  double y = x < -708 ? -708 : x;
  y = y > 709 ? 709 : y;
  rounded.real = y * 0x1.71547652b82fep0 + 0x1.8p52; /* the low bits of the sum are the nearest integer, k */
  double k = rounded.real - 0x1.8p52;
  double r = (y - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b39p-40;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  scale.bits = (int64_t)((uint64_t)(rounded.bits + 1023) << 52);
  return x < -708 ? 0 : p * scale.real;
}

#endif

#include "core/lanes.h"

void lanes_gather(int rows, int lanes, int count, const int *lane, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int m = 0; m < count; m++) to[(ptrdiff_t)i * count + m] = from[(ptrdiff_t)i * lanes + lane[m]];
}

void lanes_scatter(int rows, int lanes, int count, const int *lane, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int m = 0; m < count; m++) to[(ptrdiff_t)i * lanes + lane[m]] = from[(ptrdiff_t)i * count + m];
}

void lanes_repeat(int rows, int lanes, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) to[(ptrdiff_t)i * lanes + n] = from[i];
}

SIMD_CLONES
void lanes_add(size_t n, double factor, const double *restrict from, double *restrict to) {
  for (size_t k = 0; k < n; k++) to[k] += factor * from[k];
}

SIMD_CLONES
void lanes_sum(size_t n, const double *restrict a, const double *restrict b, double *restrict out) {
  for (size_t k = 0; k < n; k++) out[k] = a[k] + b[k];
}

int lanes_pick(int count, int stride, const double *weight, double uniform) {
  int k = 0;
  for (double left = uniform - *weight; left >= 0 && k < count - 1; left -= weight[k * stride]) k++;
  return k;
}

SIMD_CLONES
void lanes_exponentiate(int rows, int lanes, double *restrict x, double *restrict top,
                        double *restrict total) {
  const size_t stride = (size_t)lanes;
  for (size_t n = 0; n < stride; n++) top[n] = x[n], total[n] = 0;
  for (size_t i = 1; i < (size_t)rows; i++)
    for (size_t n = 0; n < stride; n++) top[n] = x[i * stride + n] > top[n] ? x[i * stride + n] : top[n];
  for (size_t i = 0; i < (size_t)rows; i++)
    for (size_t n = 0; n < stride; n++) {
      x[i * stride + n] = special_exp(x[i * stride + n] - top[n]);
      total[n] += x[i * stride + n];
    }
}

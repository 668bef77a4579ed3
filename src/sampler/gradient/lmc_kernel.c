#include "sampler/gradient/lmc_kernel.h"

#include "core/matrix_tile.h"

#include <float.h>
#include <stdbool.h>

enum { ROWS = 4 };

/* What a few lanes, `count` <= SIMD_DOUBLES, need in all of their steps. */
typedef struct {
  size_t d;
  int count;
  Real *half; /* lower triangle of P, row after row */
  Real *vector, *theta, *image; /* [d]: b, theta, P theta */
} Tile;

static inline size_t row_of(size_t i) { return i * (i + 1) / 2; }

INLINE Real zero(void) { return (Real){0}; }

INLINE void load_rows(int count, size_t rows, size_t stride, const double *from, Real *to) {
  for (size_t i = 0; i < rows; i++) to[i] = zero(), tile_load(count, from + i * stride, &to[i]);
}

INLINE void load_half(int count, size_t d, size_t stride, const double *precision, Real *half) {
  for (size_t i = 0; i < d; i++)
    load_rows(count, i + 1, stride, precision + i * d * stride, half + row_of(i));
}

/* Multiplies rows i .. i + height - 1 of P, which are columns too: every entry is loaded once, and the sum of
 * a row takes its products in the order of the columns. */
INLINE void multiply_rows(const int height, const Tile *tile, size_t i) {
  const Real *x = tile->theta, *row[ROWS];
  Real sum[ROWS];
  for (int r = 0; r < height; r++) row[r] = tile->half + row_of(i + (size_t)r), sum[r] = zero();
  for (size_t j = 0; j < i; j++) {
    Real other = tile->image[j];
    for (int r = 0; r < height; r++) {
      const Real p = row[r][j];
      sum[r] += p * x[j];
      other += p * x[i + (size_t)r];
    }
    tile->image[j] = other;
  }
  for (int r = 0; r < height; r++) {
    for (int m = 0; m < height; m++)
      sum[r] += row[m < r ? r : m][i + (size_t)(m < r ? m : r)] * x[i + (size_t)m];
    tile->image[i + (size_t)r] = sum[r];
  }
}

INLINE void multiply_tile(const Tile *tile) {
  size_t i = 0;
  for (; i + ROWS <= tile->d; i += ROWS) multiply_rows(ROWS, tile, i);
  for (; i < tile->d; i++) multiply_rows(1, tile, i);
}

/* Returns pull / |theta|. Products are rounded first, here and where they are added, as they are in lmc.c. */
INLINE Real feel_good_factor(const Tile *tile, Real pull) {
  Real square = zero();
  for (size_t i = 0; i < tile->d; i++) square += tile->theta[i] * tile->theta[i] + 0.0;
  for (int n = 0; n < SIMD_DOUBLES; n++) square[n] = fmax(square[n], DBL_MIN);
  return pull / tile_root(square);
}

/* Brings states back within the guard, and to the middle where a coordinate is not finite; counted. */
static void bring_back(const LmcTarget *target, const Tile *tile, int *touched) {
  for (size_t i = 0; i < tile->d; i++)
    for (int n = 0; n < tile->count; n++) {
      const double middle = target->middle[i], limit = target->guard * target->deviation[i];
      const double away = tile->theta[i][n] - middle;
      if (isfinite(away) && fabs(away) <= limit) continue;
      tile->theta[i][n] = isfinite(away) ? middle + copysign(limit, away) : middle;
      touched[n]++;
    }
}

/* Returns whether it holds in every lane. */
INLINE bool holds(int count, Mask lanes) {
  bool all = true;
  for (int n = 0; n < count; n++) all = all && lanes[n];
  return all;
}

INLINE void move(const LmcTarget *target, const Tile *tile, Real h, Real noise, const Real *pull,
                 const double *normal, int *touched) {
  const Real factor = pull ? feel_good_factor(tile, *pull) : zero();
  Mask near = ~(Mask){0};
  multiply_tile(tile);
  for (size_t i = 0; i < tile->d; i++) {
    const double limit = target->guard * target->deviation[i];
    Real z = zero(), g = tile->image[i] - tile->vector[i], x = tile->theta[i];
    tile_load(tile->count, normal + i * (size_t)target->lanes, &z);
    if (pull) g -= factor * x + 0.0;
    x += noise * z + (-h * g + 0.0); /* the second product rounded first: special_two_products */
    tile->theta[i] = x;
    x -= target->middle[i];
    near &= (x <= limit) & (x >= -limit);
  }
  if (!holds(tile->count, near)) bring_back(target, tile, touched);
}

INLINE void move_lanes(int count, const LmcTarget *target, int first, int steps, const double *normal,
                       double *theta, int *touched) {
  const size_t d = (size_t)target->d, stride = (size_t)target->lanes;
  Real *scratch = (Real *)target->scratch;
  const Tile tile = {.d = d,
                     .count = count,
                     .theta = scratch,
                     .image = scratch + d,
                     .vector = scratch + 2 * d,
                     .half = scratch + 3 * d};
  Real h = zero(), pull = zero();
  tile_load(count, target->h + first, &h);
  if (target->pull) tile_load(count, target->pull + first, &pull);
  const Real noise = tile_root(2 * h);
  load_half(count, d, stride, target->precision + first, tile.half);
  load_rows(count, d, stride, target->vector + first, tile.vector);
  load_rows(count, d, stride, theta + first, tile.theta);
  for (int k = 0; k < steps; k++)
    move(target, &tile, h, noise, target->pull ? &pull : NULL, normal + (size_t)k * d * stride + first,
         touched + first);
  for (size_t i = 0; i < d; i++) tile_store(count, &tile.theta[i], theta + i * stride + first);
}

void lmc_kernel_move(const LmcTarget *target, int steps, const double *normal, double *theta, int *touched) {
  TILE_VECTORS(n, target->lanes, move_lanes, target, n, steps, normal, theta, touched);
}

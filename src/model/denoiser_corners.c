/* The denoiser of the uniform distribution on the corners of {-1, 1}^d, by enumeration: p(x | b, M) is an
 * Ising model. The corners are walked in Gray code order, one coordinate at a time, x_i -> -x_i, by which the
 * logarithm of the weight exp(b' x - x' M x / 2) changes by -2 x_i (b - M x)_i - 2 M_ii. */
#include "core/arena.h"
#include "core/simd.h"
#include "core/special.h"
#include "model/denoiser.h"

#include <stdlib.h>
#include <string.h>

/* shift[d] = 0 and scale[d] = 1: the coordinates are standard already. */
typedef struct {
  double *shift, *scale;
} Corners;

/* Coordinate i of corner number c = 0 .. 2^d - 1. */
static inline double spin(unsigned c, int i) { return (c ^ c >> 1) >> i & 1 ? 1 : -1; }

/* log_weight[2^d, n] and their largest, top[n]. field[d, n], scratch, holds b - M x. */
SIMD_CLONES
static void weigh(int d, int lanes, const double *restrict precision, const double *restrict vector,
                  double *restrict field, double *restrict log_weight, double *restrict top) {
  for (int n = 0; n < lanes; n++) log_weight[n] = 0;
  for (int i = 0; i < d; i++) {
    double *restrict f = field + i * lanes;
    memcpy(f, vector + i * lanes, (size_t)lanes * sizeof *f);
    for (int j = 0; j < d; j++)
      for (int n = 0; n < lanes; n++) f[n] += precision[(i * d + j) * lanes + n];
    for (int n = 0; n < lanes; n++) log_weight[n] -= 0.5 * (f[n] + vector[i * lanes + n]);
  }
  memcpy(top, log_weight, (size_t)lanes * sizeof *top);
  for (unsigned c = 1; c < 1u << d; c++) {
    const int i = __builtin_ctz(c);
    const double flip = -2 * spin(c - 1, i);
    const double *restrict before = log_weight + (size_t)(c - 1) * (size_t)lanes;
    double *restrict now = log_weight + (size_t)c * (size_t)lanes;
    for (int n = 0; n < lanes; n++) {
      now[n] = before[n] + flip * field[i * lanes + n] - 2 * precision[(i * d + i) * lanes + n];
      top[n] = top[n] > now[n] ? top[n] : now[n];
    }
    for (int j = 0; j < d; j++)
      for (int n = 0; n < lanes; n++) field[j * lanes + n] -= flip * precision[(j * d + i) * lanes + n];
  }
}

/* The sums of the weights, total[n], with x, mean[d, n], and with x x', covariance[d, d, n], lower triangle.
 */
SIMD_CLONES
static void add_corners(int d, int lanes, const double *restrict top, double *restrict log_weight,
                        double *restrict total, double *restrict mean, double *restrict covariance) {
  for (unsigned c = 0; c < 1u << d; c++) {
    double *restrict weight = log_weight + (size_t)c * (size_t)lanes;
    for (int n = 0; n < lanes; n++) {
      weight[n] = special_exp(weight[n] - top[n]);
      total[n] += weight[n];
    }
    for (int i = 0; i < d; i++) {
      for (int n = 0; n < lanes; n++) mean[i * lanes + n] += spin(c, i) * weight[n];
      for (int j = 0; j <= i; j++) {
        const double product = spin(c, i) * spin(c, j);
        for (int n = 0; n < lanes; n++) covariance[(i * d + j) * lanes + n] += product * weight[n];
      }
    }
  }
}

/* From sums to D and C, both triangles. */
SIMD_CLONES
static void finish(int d, int lanes, const double *restrict total, double *restrict mean,
                   double *restrict covariance) {
  for (int i = 0; i < d; i++) {
    for (int n = 0; n < lanes; n++) mean[i * lanes + n] /= total[n];
    for (int j = 0; j <= i; j++) {
      double *restrict low = covariance + (i * d + j) * lanes;
      for (int n = 0; n < lanes; n++) low[n] = low[n] / total[n] - mean[i * lanes + n] * mean[j * lanes + n];
      if (j < i) memcpy(covariance + (j * d + i) * lanes, low, (size_t)lanes * sizeof *low);
    }
  }
}

static void corners_moments(const Denoiser *denoiser, int lanes, const double *basis,
                            const double *eigenvalue, const double *vector, double *mean, double *covariance,
                            int *rescues, double *workspace) {
  const int d = denoiser->d;
  const size_t row = (size_t)lanes, column = (size_t)d * row;
  double *precision = workspace, *field = precision + (size_t)d * column, *top = field + column,
         *total = top + row, *log_weight = total + row;
  (void)rescues;
  denoiser_spectral(d, lanes, basis, eigenvalue, precision);
  memset(total, 0, row * sizeof *total);
  memset(mean, 0, column * sizeof *mean);
  memset(covariance, 0, (size_t)d * column * sizeof *covariance);
  weigh(d, lanes, precision, vector, field, log_weight, top);
  add_corners(d, lanes, top, log_weight, total, mean, covariance);
  finish(d, lanes, total, mean, covariance);
}

Status denoiser_corners_create(Arena *memory, int d, Denoiser *out) {
  const size_t size = (size_t)d;
  Corners *self;
  ASSERT(d <= DENOISER_MOST_CORNERS);
  *out = (Denoiser){.d = d};
  ALLOCATE(memory, self, 1);
  out->state = self;
  ALLOCATE(memory, self->shift, size);
  ALLOCATE(memory, self->scale, size);
  for (size_t i = 0; i < size; i++) self->scale[i] = 1;
  out->shift = self->shift;
  out->scale = self->scale;
  out->workspace = (size * size + size + 2 + ((size_t)1 << d)) * DENOISER_LANES;
  out->moments = corners_moments;
  return STATUS_OK;
}

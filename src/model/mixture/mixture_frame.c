#include "model/mixture/mixture_frame.h"

#include "core/linalg/linalg.h"
#include "core/quantile.h"
#include "model/mixture/em.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A coordinate is replaced by what remains of it if the remainder has less than this share of its variance.
 */
static const double REMAINDER = 1e-3;
/* Standard deviations of a remainder, relative to the coordinate's own, that count as 0. Covariances of
 * doubles cannot express less: their rounding is 1e-16, and the variance 1e-12 keeps four digits. */
static const double NOTHING = 1e-6;
/* Width of a constant, relative to its value. */
static const double CONSTANT_WIDTH = 0x1p-40;
/* Widths stay above this, so that their inverse squares are finite. */
static const double LEAST_WIDTH = 1e-45;

/* ---- which coordinates vary */

/* Computes mean and standard deviation of each coordinate; the deviation is exactly 0 if all samples are
 * equal up to rounding. */
static void mixture_frame_measure(const MixtureFrame *frame, const double *theta) {
  for (size_t i = 0; i < (size_t)frame->d; i++) {
    const double *row = theta + i * (size_t)frame->n;
    bool constant = true;
    double variance;
    for (int k = 1; k < frame->n && constant; k++) constant = row[k] == row[0];
    linalg_moments(1, frame->n, row, &frame->shift[i], &variance);
    if (constant) frame->shift[i] = row[0];
    frame->scale[i] = constant ? 0 : sqrt(variance);
    if (frame->scale[i] <= 16 * DBL_EPSILON * fabs(frame->shift[i])) frame->scale[i] = 0;
  }
}

double mixture_frame_constant_width(double value, double least) {
  const double unit = value != 0 ? fabs(value) : least < INFINITY ? least : 1;
  return fmax(CONSTANT_WIDTH * unit, LEAST_WIDTH);
}

static void mixture_frame_set_constants(MixtureFrame *frame) {
  double least = INFINITY;
  for (int i = 0; i < frame->d; i++)
    if (frame->scale[i] > 0) least = fmin(least, frame->scale[i]);
  for (int i = 0; i < frame->d; i++)
    if (frame->scale[i] == 0) frame->width[i] = mixture_frame_constant_width(frame->shift[i], least);
}

/* Splits coordinate i into its regression on basis[k, n], which is orthogonal and of mean square 1, and the
 * remainder, x[n] on return: coefficient[k]. Returns the remainder's mean square. A second pass removes what
 * rounding left in the first. */
static double mixture_frame_split(const MixtureFrame *frame, int k, const double *basis, double *x,
                                  double *coefficient) {
  enum { PASSES = 2 };
  const size_t n = (size_t)frame->n;
  double square = 0;
  for (int j = 0; j < k; j++) coefficient[j] = 0;
  for (int pass = 0; pass < PASSES; pass++)
    for (int j = 0; j < k; j++) {
      const double *q = basis + (size_t)j * n;
      double sum = 0;
      for (size_t s = 0; s < n; s++) sum += q[s] * x[s];
      sum /= (double)n;
      for (size_t s = 0; s < n; s++) x[s] -= sum * q[s];
      coefficient[j] += sum;
    }
  for (size_t s = 0; s < n; s++) square += x[s] * x[s];
  return square / (double)n;
}

/* Takes a coordinate into z, plainly or as its remainder, and its remainder into the basis. `own`[d, d] has
 * in row j the basis vector j in terms of z. */
static void mixture_frame_take(MixtureFrame *frame, int i, bool plain, double remainder,
                               const double *coefficient, double *own) {
  const size_t d = (size_t)frame->d, k = (size_t)frame->k;
  double *row = frame->map + (size_t)i * d, *next = own + k * d;
  for (size_t l = 0; l <= k; l++) { /* the regression, in terms of z */
    double sum = 0;
    for (size_t j = 0; j < k; j++) sum += coefficient[j] * own[j * d + l];
    row[l] = plain ? 0 : sum;
    next[l] = plain ? -sum / remainder : 0;
  }
  row[k] = plain ? 1 : remainder;
  next[k] = plain ? 1 / remainder : 1;
  for (size_t l = 0; l <= k; l++) row[l] *= frame->scale[i];
  frame->varying[frame->k++] = i;
}

/* Finds the coordinates of z in samples of which some are almost or exactly linear combinations of others.
 * With fewer samples than coefficients every remainder is 0, which says nothing. */
static Status mixture_frame_regress(MixtureFrame *frame, const double *theta) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)frame->d, n = (size_t)frame->n;
  double *basis, *own, *coefficient;
  ALLOCATE(&scratch, basis, (d + 1) * n);
  ALLOCATE(&scratch, own, d * d);
  ALLOCATE(&scratch, coefficient, d);
  memset(frame->map, 0, d * d * sizeof *frame->map);
  frame->k = 0;
  for (size_t i = 0; i < d; i++) {
    const double scale = frame->scale[i];
    const bool telling = frame->n > frame->k + 2;
    double *x = basis + (size_t)frame->k * n;
    if (scale == 0) continue;
    for (size_t s = 0; s < n; s++) x[s] = (theta[i * n + s] - frame->shift[i]) / scale;
    const double square = mixture_frame_split(frame, frame->k, basis, x, coefficient),
                 rounding = 16 * DBL_EPSILON * fabs(frame->shift[i]) / scale, remainder = sqrt(square);
    if (telling && remainder <= fmax(NOTHING, rounding)) { /* a linear combination */
      for (int l = 0; l < frame->k; l++)
        for (int j = 0; j < frame->k; j++)
          frame->map[i * d + (size_t)l] += scale * coefficient[j] * own[(size_t)j * d + (size_t)l];
      frame->width[i] = fmax(fmax(NOTHING, rounding) * scale, LEAST_WIDTH);
      continue;
    }
    for (size_t s = 0; s < n && remainder > 0; s++) x[s] /= remainder;
    mixture_frame_take(frame, (int)i, !telling || square > REMAINDER, remainder > 0 ? remainder : 1,
                       coefficient, own);
  }
  frame->plain = false;
  return STATUS_OK;
}

/* Returns whether every coordinate varies, and keeps more than REMAINDER after regression on those before it.
 */
static Status mixture_frame_is_plain(const MixtureFrame *frame, const double *theta, bool *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)frame->d;
  double *mean, *correlation;
  ALLOCATE(&scratch, mean, d);
  ALLOCATE(&scratch, correlation, d * d);
  *out = true;
  for (size_t i = 0; i < d; i++)
    if (frame->scale[i] == 0) *out = false;
  if (!*out || frame->n <= 2) return STATUS_OK;
  linalg_moments(frame->d, frame->n, theta, mean, correlation);
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++) correlation[i * d + j] /= frame->scale[i] * frame->scale[j];
  *out = linalg_try_cholesky(frame->d, correlation);
  for (size_t i = 0; i < d && *out; i++)
    *out = correlation[i * (d + 1)] * correlation[i * (d + 1)] > REMAINDER;
  return STATUS_OK;
}

/* ---- z */

static void mixture_frame_fill_plain(MixtureFrame *frame, const double *theta, const int *order) {
  const size_t n = (size_t)frame->n, d = (size_t)frame->d;
  frame->k = frame->d;
  for (size_t i = 0; i < d; i++) {
    const double *row = theta + i * n;
    double *z = frame->z + i * n;
    frame->varying[i] = (int)i;
    frame->map[i * (d + 1)] = frame->scale[i];
    for (size_t s = 0; s < n; s++)
      z[s] = (row[order ? (size_t)order[s] : s] - frame->shift[i]) / frame->scale[i];
  }
}

/* Solves theta = shift + map z for the coordinates that vary, from the first to the last. Most of them belong
 * to one z alone, so zeros are skipped. */
static void mixture_frame_fill(MixtureFrame *frame, const double *theta, const int *order) {
  const size_t n = (size_t)frame->n, d = (size_t)frame->d;
  for (size_t j = 0; j < (size_t)frame->k; j++) {
    const size_t i = (size_t)frame->varying[j];
    const double *row = theta + i * n, *map = frame->map + i * d;
    double *z = frame->z + j * n;
    for (size_t s = 0; s < n; s++) z[s] = row[order ? (size_t)order[s] : s] - frame->shift[i];
    for (size_t l = 0; l < j; l++) {
      if (map[l] == 0) continue;
      for (size_t s = 0; s < n; s++) z[s] -= map[l] * frame->z[l * n + s];
    }
    for (size_t s = 0; s < n; s++) z[s] /= map[j];
  }
}

/* Finds the width of narrow clusters in each coordinate of z: at least a tenth of the samples have so many
 * neighbours, a sixty-fourth of all, within less than it. Samples of a density have hundreds of times this
 * width, so that `local` stays 1 for them; clusters far apart, a distant outlier and discrete values do not.
 */
static Status mixture_frame_find_local(Arena *memory, MixtureFrame *frame) {
  enum { SHARE = 64, LEAST = 4 };
  const double quantile = 0.1, wide = 8, narrow = 1.0 / 32;
  SCRATCH_ARENA(scratch);
  const int n = frame->n,
            window = n / SHARE > LEAST ? n / SHARE
                     : n < LEAST       ? n
                                       : LEAST,
            spans = n - window + 1;
  double *sorted, *span;
  ALLOCATE(memory, frame->local, frame->k > 0 ? frame->k : 1);
  ALLOCATE_ARRAYS(&scratch, n, &sorted, &span);
  for (int j = 0; j < frame->k; j++) {
    memcpy(sorted, frame->z + (size_t)j * (size_t)n, (size_t)n * sizeof *sorted);
    quantile_sort(n, sorted);
    for (int s = 0; s < spans; s++) span[s] = sorted[s + window - 1] - sorted[s];
    quantile_sort(spans, span);
    const double width = wide * quantile_of_sorted(spans, span, quantile);
    frame->local[j] = width < narrow ? fmax(width * width, NOTHING * NOTHING) : 1;
  }
  return STATUS_OK;
}

Status mixture_frame_create(Arena *memory, int d, int n, const double *theta, const int *order,
                            MixtureFrame *out) {
  *out = (MixtureFrame){.d = d, .n = n};
  ALLOCATE(memory, out->varying, d);
  ALLOCATE_ARRAYS(memory, d, &out->shift, &out->scale, &out->width);
  ALLOCATE(memory, out->map, (size_t)d * (size_t)d);
  ALLOCATE(memory, out->z, (size_t)d * (size_t)n);
  mixture_frame_measure(out, theta);
  mixture_frame_set_constants(out);
  TRY(mixture_frame_is_plain(out, theta, &out->plain));
  if (out->plain) {
    mixture_frame_fill_plain(out, theta, order);
  } else {
    TRY(mixture_frame_regress(out, theta));
    mixture_frame_fill(out, theta, order);
  }
  return mixture_frame_find_local(memory, out);
}

double mixture_frame_log_factor(const MixtureFrame *frame) {
  double sum = 0;
  for (size_t j = 0; j < (size_t)frame->k; j++)
    sum -= log(frame->map[(size_t)frame->varying[j] * (size_t)frame->d + j]);
  return sum;
}

/* Returns row S other', for two rows of the map and S[k, k], of which zeros are skipped. */
static double mixture_frame_product(size_t k, const double *row, const double *s, const double *other) {
  double sum = 0;
  for (size_t l = 0; l < k; l++) {
    if (row[l] == 0) continue;
    for (size_t r = 0; r < k; r++)
      if (other[r] != 0) sum += row[l] * s[l * k + r] * other[r];
  }
  return sum;
}

/* Computes shift + map m and map S map' plus the squared widths. */
static void mixture_frame_expand(const MixtureFrame *frame, const double *m, const double *s, double *mean,
                                 double *covariance) {
  const size_t d = (size_t)frame->d, k = (size_t)frame->k;
  for (size_t i = 0; i < d; i++) {
    const double *row = frame->map + i * d;
    mean[i] = frame->shift[i];
    for (size_t l = 0; l < k; l++) mean[i] += row[l] * m[l];
    for (size_t j = 0; j <= i; j++) {
      const double own = mixture_frame_product(k, row, s, frame->map + j * d);
      covariance[i * d + j] = covariance[j * d + i] = own;
    }
    covariance[i * (d + 1)] += frame->width[i] * frame->width[i];
  }
}

Status mixture_frame_apply(Arena *memory, const MixtureFrame *frame, Mixture *mixture) {
  const size_t d = (size_t)frame->d, k = (size_t)frame->k;
  Mixture theta;
  if (frame->plain) return mixture_transform(mixture, frame->shift, frame->scale);
  TRY(mixture_create(memory, frame->d, mixture->components, &theta));
  for (size_t c = 0; c < (size_t)mixture->components; c++) {
    theta.weight[c] = mixture->weight[c];
    mixture_frame_expand(frame, mixture->mean + c * k, mixture->covariance + c * k * k, theta.mean + c * d,
                         theta.covariance + c * d * d);
  }
  *mixture = theta;
  return mixture_prepare(mixture);
}

/* ---- words */

/* Appends "; coordinate 3 is 2 times coordinate 1 plus 1" to *text; coordinates count from 1. */
static Status mixture_frame_write(Arena *memory, int i, int k, const int *basis, const double *factor,
                                  double rest, const char **text) {
  const char *join = "is";
  TRY(arena_print(memory, text, "%s%scoordinate %d ", *text ? *text : "", *text ? "; " : "", i + 1));
  for (int j = 0; j < k; j++) {
    if (fabs(factor[j]) < NOTHING) continue;
    TRY(arena_print(memory, text, "%s%s %.6g times coordinate %d", *text, join, factor[j], basis[j] + 1));
    join = " plus";
  }
  if (fabs(rest) > 0 && k > 0) return arena_print(memory, text, "%s plus %.6g", *text, rest);
  return k > 0 ? STATUS_OK : arena_print(memory, text, "%sis constantly %.6g", *text, rest);
}

/* The coordinates basis[k] that the others are regressed on, and the Cholesky factor L of the covariance of
 * all d, whose rows are known for these. */
typedef struct {
  int d, k;
  int *basis;
  double *root; /* [d, d] */
} FrameBasis;

/* Computes row[k] = L^-1 c for the covariances c of coordinate i with the basis; returns the variance that
 * remains of it. */
static double mixture_frame_reduce(const FrameBasis *self, const double *covariance, int i, double *row) {
  const int d = self->d;
  double rest = covariance[i * (d + 1)];
  for (int j = 0; j < self->k; j++) {
    row[j] = covariance[i * d + self->basis[j]];
    for (int l = 0; l < j; l++) row[j] -= self->root[j * d + l] * row[l];
    row[j] /= self->root[j * d + j];
    rest -= row[j] * row[j];
  }
  return rest;
}

/* Replaces row[k] by the coefficients of the regression, L^-T row. */
static void mixture_frame_solve(const FrameBasis *self, double *row) {
  for (int j = self->k - 1; j >= 0; j--) {
    for (int l = j + 1; l < self->k; l++) row[j] -= self->root[l * self->d + j] * row[l];
    row[j] /= self->root[j * self->d + j];
  }
}

/* Adds coordinate i, of which the variance `rest` remains. */
static void mixture_frame_extend(FrameBasis *self, int i, const double *row, double rest) {
  double *to = self->root + self->k * self->d;
  memcpy(to, row, (size_t)self->k * sizeof *row);
  to[self->k] = sqrt(rest);
  self->basis[self->k++] = i;
}

/* Returns whether a standard deviation is the width that constants get; if the constant is 0, that is
 * relative to other coordinates. */
static bool mixture_frame_is_constant(double mean, double deviation, double widest) {
  const double slack = 4;
  return deviation <= slack * CONSTANT_WIDTH * (mean != 0 ? fabs(mean) : widest);
}

/* Returns how much of a standard deviation may be rounding. */
static double mixture_frame_rounding(double mean, double deviation) {
  return fmax(NOTHING * deviation, 16 * DBL_EPSILON * fabs(mean));
}

/* Finds the Cholesky factor of the covariance of the whole mixture, which is prepared, with root[d, d] as
 * scratch. Returns NULL if there is none. */
static const double *mixture_frame_factor(const Mixture *mixture, const double *covariance, double *root) {
  const int d = mixture->d;
  if (mixture->components == 1) return mixture->cholesky;
  memcpy(root, covariance, (size_t)d * (size_t)d * sizeof *root);
  return linalg_try_cholesky(d, root) ? root : NULL;
}

/* Returns whether each coordinate clearly varies, even given those before it: the factor tells. */
static bool mixture_frame_all_vary(int d, const double *mean, const double *covariance, double widest,
                                   const double *root) {
  const double clearly = 4;
  if (!root) return false;
  for (int i = 0; i < d; i++) {
    const double deviation = sqrt(covariance[i * (d + 1)]), left = root[i * (d + 1)];
    if (mixture_frame_is_constant(mean[i], deviation, widest)) return false;
    if (left <= clearly * mixture_frame_rounding(mean[i], deviation)) return false;
  }
  return true;
}

Status mixture_frame_describe(Arena *memory, const Mixture *mixture, const char **out) {
  SCRATCH_ARENA(scratch);
  const int d = mixture->d;
  const double slack = 4;
  FrameBasis others = {.d = d};
  double *mean, *covariance, *factor, widest = 0;
  *out = NULL;
  ALLOCATE_ARRAYS(&scratch, d, &mean, &factor);
  ALLOCATE(&scratch, others.basis, d);
  ALLOCATE_ARRAYS(&scratch, (size_t)d * (size_t)d, &covariance, &others.root);
  mixture_moments(mixture, mean, covariance);
  for (int i = 0; i < d; i++) widest = fmax(widest, sqrt(covariance[i * (d + 1)]));
  const double *known = mixture_frame_factor(mixture, covariance, others.root);
  if (mixture_frame_all_vary(d, mean, covariance, widest, known)) return STATUS_OK;
  for (int i = 0; i < d; i++) {
    const double deviation = sqrt(covariance[i * (d + 1)]),
                 rounding = mixture_frame_rounding(mean[i], deviation);
    if (mixture_frame_is_constant(mean[i], deviation, widest)) {
      TRY(mixture_frame_write(memory, i, 0, others.basis, factor, mean[i], out));
      continue;
    }
    const double left = mixture_frame_reduce(&others, covariance, i, factor);
    double rest = mean[i];
    if (others.k == 0 || left > slack * rounding * rounding) {
      mixture_frame_extend(&others, i, factor, left);
      continue;
    }
    mixture_frame_solve(&others, factor);
    for (int j = 0; j < others.k; j++) rest -= factor[j] * mean[others.basis[j]];
    if (fabs(rest) <= NOTHING * deviation) rest = 0;
    TRY(mixture_frame_write(memory, i, others.k, others.basis, factor, rest, out));
  }
  return STATUS_OK;
}

Status mixture_frame_describe_widened(Arena *memory, const Mixture *mixture, const char **out) {
  SCRATCH_ARENA(scratch);
  const double slack = 2;
  const int d = mixture->d;
  double *mean, *covariance;
  int widened = 0;
  *out = NULL;
  ALLOCATE(&scratch, mean, d);
  ALLOCATE(&scratch, covariance, (size_t)d * (size_t)d);
  mixture_moments(mixture, mean, covariance);
  for (int c = 0; c < mixture->components; c++) {
    const double *own = mixture->covariance + (size_t)c * (size_t)d * (size_t)d;
    bool narrow = false;
    for (int i = 0; i < d * d; i += d + 1) narrow = narrow || own[i] <= slack * EM_LEAST * covariance[i];
    widened += narrow;
  }
  if (widened == 0) return STATUS_OK;
  return arena_print(
      memory, out,
      "%d of %d components have, in some coordinate, a standard deviation of only %g times that "
      "of all samples: no fit is narrower, though the samples may be",
      widened, mixture->components, sqrt(EM_LEAST));
}

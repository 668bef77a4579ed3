#include "sampler/gradient/vts_quadratic.h"

#include "core/arena.h"
#include "core/simd.h"
#include "core/vector_algebra.h"
#include "sampler/gradient/vts_bound.h"

#include <math.h>
#include <stdbool.h>

typedef SpecialReal Real;
typedef SpecialBits Mask;

/* As in vts_bound.h: log N(mu_m; mu_j, diag(v_m + v_j)), log sum_j pi_j times that, the bound. */
typedef struct {
  Real overlap[VTS_COMPONENTS][VTS_COMPONENTS], density[VTS_COMPONENTS], value;
} Entropy;

/* The runs of a vector: U, q, where its components stand, and the way of the one that moves. */
typedef struct {
  int d, components;
  Real *precision, *root, *vector; /* [d, d], [d, d], [d]: P, the inverse of its Cholesky factor, b */
  Real *weight, *energy; /* [M] */
  Real *mean, *variance, *image; /* [M, d], the last P mu */
  Real *step, *growth, *old_mean, *old_variance, *column; /* [d] */
  Entropy entropy;
  Real value; /* F */
} Ascent;

static size_t scratch_vectors(size_t d, size_t components) {
  return 2 * d * d + 6 * d + 2 * components + 3 * components * d;
}

Status vts_quadratic_create(Arena *memory, const Potential *potential, int components, VtsQuadratic *out) {
  *out = (VtsQuadratic){.potential = potential, .components = components};
  ALLOCATE(memory, out->scratch, scratch_vectors((size_t)potential->d, (size_t)components));
  return STATUS_OK;
}

static Real *take(Real **scratch, int count) {
  Real *vectors = *scratch;
  *scratch += count;
  return vectors;
}

static void place_scratch(const VtsQuadratic *self, Ascent *at) {
  const int d = self->potential->d, components = self->components;
  Real *left = self->scratch;
  at->d = d, at->components = components;
  at->precision = take(&left, d * d), at->root = take(&left, d * d), at->vector = take(&left, d);
  at->weight = take(&left, components), at->energy = take(&left, components);
  at->mean = take(&left, components * d), at->variance = take(&left, components * d);
  at->image = take(&left, components * d);
  at->step = take(&left, d), at->growth = take(&left, d), at->column = take(&left, d);
  at->old_mean = take(&left, d), at->old_variance = take(&left, d);
}

/* ---- vectors */

/* x <- other where the mask is. */
VECTOR_INLINE void choose(const Mask *mask, const Real *other, Real *x) {
  *x = (Real)(((Mask)*other & *mask) | ((Mask)*x & ~*mask));
}

VECTOR_INLINE void largest(const Real *other, Real *x) {
  const Mask more = *other > *x;
  choose(&more, other, x);
}

VECTOR_INLINE void exponential(Real *x) {
  double y[VECTOR_LANES];
  memcpy(y, x, sizeof y);
  for (int n = 0; n < VECTOR_LANES; n++) y[n] = special_exp(y[n]);
  memcpy(x, y, sizeof y);
}

VECTOR_INLINE bool everywhere(const Mask *mask) {
  int64_t all = -1;
  for (int n = 0; n < VECTOR_LANES; n++) all &= (*mask)[n];
  return all != 0;
}

/* Lanes that are no run do what the first one does. */
VECTOR_INLINE void load_runs(VectorLanes runs, int rows, const double *from, Real *to) {
  vector_load(runs, rows, from, to);
  for (int k = 0; k < rows; k++)
    for (size_t n = runs.count; n < VECTOR_LANES; n++) to[k][n] = to[k][0];
}

/* The same of from[runs, rows]; and back. */
static void turn_in(VectorLanes runs, int rows, const double *from, Real *to) {
  for (size_t n = 0; n < VECTOR_LANES; n++)
    for (int k = 0; k < rows; k++)
      to[k][n] = from[(runs.first + (n < runs.count ? n : 0)) * (size_t)rows + (size_t)k];
}
static void turn_out(VectorLanes runs, int rows, const Real *from, double *to) {
  for (size_t n = 0; n < runs.count; n++)
    for (int k = 0; k < rows; k++) to[(runs.first + n) * (size_t)rows + (size_t)k] = from[k][n];
}

/* ---- the bound */

/* E[-U] under component m up to a constant, and its P mu. */
VECTOR_INLINE void find_energy(const Ascent *at, int m, Real *energy) {
  const int d = at->d;
  const Real *mean = at->mean + m * d, *variance = at->variance + m * d;
  Real *image = at->image + m * d, sum = {0};
  vector_multiply(d, at->precision, mean, image);
  for (int i = 0; i < d; i++) {
    const Real spread = 0.5 * at->precision[i * d + i] * variance[i];
    sum += mean[i] * (at->vector[i] - 0.5 * image[i]) - (spread + 0.0);
  }
  *energy = sum;
}

/* Of components m and j. The logarithm is that of the product of a few variances, which are far from the ends
 * of the range of numbers. */
VECTOR_INLINE void find_overlap(const Ascent *at, int m, int j, Real *overlap) {
  enum { TOGETHER = 4 };
  const int d = at->d;
  const Real *mean = at->mean + m * d, *other_mean = at->mean + j * d;
  const Real *variance = at->variance + m * d, *other_variance = at->variance + j * d;
  Real sum = {0};
  for (int first = 0; first < d; first += TOGETHER) {
    Real product = (Real){0} + 1;
    for (int i = first; i < d && i < first + TOGETHER; i++) {
      const Real total = variance[i] + other_variance[i], gap = mean[i] - other_mean[i];
      product *= 2 * M_PI * total;
      sum += gap * gap / total;
    }
    special_log(&product);
    sum += product;
  }
  *overlap = -0.5 * sum;
}

VECTOR_INLINE void find_overlaps(Ascent *at, int m) {
  for (int j = 0; j < at->components; j++) {
    find_overlap(at, m, j, &at->entropy.overlap[m][j]);
    at->entropy.overlap[j][m] = at->entropy.overlap[m][j];
  }
}

/* Densities and bound of the overlaps. */
VECTOR_INLINE void find_entropy(Ascent *at) {
  Entropy *entropy = &at->entropy;
  entropy->value = (Real){0};
  for (int m = 0; m < at->components; m++) {
    Real top = entropy->overlap[m][0], sum = {0};
    for (int j = 1; j < at->components; j++) largest(&entropy->overlap[m][j], &top);
    for (int j = 0; j < at->components; j++) {
      Real term = entropy->overlap[m][j] - top;
      exponential(&term);
      sum += at->weight[j] * term;
    }
    special_log(&sum);
    entropy->density[m] = top + sum;
    entropy->value -= at->weight[m] * entropy->density[m];
  }
}

VECTOR_INLINE void find_value(const Ascent *at, Real *value) {
  *value = at->entropy.value;
  for (int m = 0; m < at->components; m++) *value += at->weight[m] * at->energy[m];
}

/* ---- steps */

/* Shares of component j in the derivatives of the entropy with respect to component m. */
VECTOR_INLINE void find_share(const Ascent *at, int m, int j, Real *share) {
  const Entropy *entropy = &at->entropy;
  Real own = entropy->overlap[m][j] - entropy->density[m];
  exponential(&own);
  if (j != m) {
    Real other = entropy->overlap[m][j] - entropy->density[j];
    exponential(&other);
    own += other;
  }
  *share = at->weight[j] * own;
}

/* at->step = H^-1 (s_mu / pi_m - grad), at->growth = log of the ratio of variances. */
VECTOR_INLINE void aim(Ascent *at, int m) {
  const int d = at->d;
  const Real *mean = at->mean + m * d, *variance = at->variance + m * d;
  for (int i = 0; i < d; i++) at->step[i] = at->vector[i] - at->image[m * d + i], at->growth[i] = (Real){0};
  for (int j = 0; j < at->components; j++) {
    Real share;
    find_share(at, m, j, &share);
    for (int i = 0; i < d; i++) {
      const Real gap = mean[i] - at->mean[j * d + i], total = variance[i] + at->variance[j * d + i];
      const Real part = share / total;
      at->step[i] += part * gap;
      at->growth[i] += j == m ? part : 0.5 * part * (1 - gap * gap / total);
    }
  }
  vector_lower(d, at->root, at->step, at->column);
  vector_lower_transposed(d, at->root, at->column, at->step);
  for (int i = 0; i < d; i++) {
    Real ratio = 2 * at->growth[i] / at->precision[i * d + i];
    const Mask positive = ratio > 0, small = (ratio < 1e-4), large = (ratio > 1e4);
    const Real least = (Real){0} + 1e-4, most = (Real){0} + 1e4, lower = (Real){0} + 0.1;
    choose(&small, &least, &ratio);
    choose(&large, &most, &ratio);
    const Mask other = ~positive;
    choose(&other, &lower, &ratio);
    special_log(&ratio);
    at->growth[i] = ratio;
  }
}

/* Component m at a share of its way; where that is 0, where it was. */
VECTOR_INLINE void go(Ascent *at, int m, const Real *length) {
  const Mask still = *length == 0;
  for (int i = 0; i < at->d; i++) {
    Real *mean = &at->mean[m * at->d + i], growth = *length * at->growth[i];
    exponential(&growth);
    *mean = at->old_mean[i] + *length * at->step[i];
    choose(&still, &at->old_mean[i], mean);
    at->variance[m * at->d + i] = at->old_variance[i] * growth;
    choose(&still, &at->old_variance[i], &at->variance[m * at->d + i]);
  }
}

/* Halved where F falls, and 0 after as many times as in vts_bound.c; whether that is nowhere. Where a length
 * stays, the same numbers come out again. */
VECTOR_INLINE bool shorten(const Ascent *at, const Real *after, int tries, Real *length) {
  const Mask kept = (*length == 0) | (~(*after < at->value) & (*after > -INFINITY) & (*after < INFINITY));
  const Real shorter = tries + 1 < VTS_HALVINGS ? 0.5 * *length : (Real){0};
  const Mask falls = ~kept;
  choose(&falls, &shorter, length);
  return everywhere(&kept);
}

VECTOR_INLINE void keep_value(const Real *length, const Real *after, Real *value) {
  const Mask moved = *length != 0;
  choose(&moved, after, value);
}

VECTOR_INLINE void move_component(Ascent *at, int m, const Mask *active) {
  const Real before = at->entropy.value;
  Real length = (Real)((Mask)((Real){0} + 1) & *active), energy, after;
  aim(at, m);
  memcpy(at->old_mean, at->mean + m * at->d, (size_t)at->d * sizeof *at->mean);
  memcpy(at->old_variance, at->variance + m * at->d, (size_t)at->d * sizeof *at->variance);
  for (int tries = 0;; tries++) {
    go(at, m, &length);
    find_energy(at, m, &energy);
    find_overlaps(at, m);
    find_entropy(at);
    after = at->value + at->weight[m] * (energy - at->energy[m]) + at->entropy.value - before;
    if (shorten(at, &after, tries, &length)) break;
  }
  at->energy[m] = energy;
  keep_value(&length, &after, &at->value);
}

/* pi_m <- pi_m exp(length slope_m), normalised; where the length is 0, what it was. */
VECTOR_INLINE void weigh(Ascent *at, const Real *length, const Real *old, const Real *slope) {
  const Mask still = *length == 0;
  const Real least = (Real){0} + VTS_LEAST_WEIGHT;
  Real sum = {0};
  for (int m = 0; m < at->components; m++) {
    Real factor = *length * slope[m];
    exponential(&factor);
    at->weight[m] = old[m] * factor;
    largest(&least, &at->weight[m]);
    sum += at->weight[m];
  }
  for (int m = 0; m < at->components; m++) {
    at->weight[m] /= sum;
    choose(&still, &old[m], &at->weight[m]);
  }
}

VECTOR_INLINE void move_weights(Ascent *at, const Mask *active) {
  const Entropy *entropy = &at->entropy;
  Real old[VTS_COMPONENTS], slope[VTS_COMPONENTS], top = (Real){0} - INFINITY, after;
  Real length = (Real)((Mask)((Real){0} + 1) & *active);
  for (int m = 0; m < at->components; m++) {
    old[m] = at->weight[m];
    slope[m] = at->energy[m] - entropy->density[m];
    for (int k = 0; k < at->components; k++) {
      Real term = entropy->overlap[k][m] - entropy->density[k];
      exponential(&term);
      slope[m] -= at->weight[k] * term;
    }
    largest(&slope[m], &top);
  }
  for (int m = 0; m < at->components; m++) slope[m] -= top;
  for (int tries = 0;; tries++) {
    weigh(at, &length, old, slope);
    find_entropy(at);
    find_value(at, &after);
    if (shorten(at, &after, tries, &length)) break;
  }
  keep_value(&length, &after, &at->value);
}

/* ---- runs */

VECTOR_INLINE void begin(Ascent *at, const Potential *potential, VectorLanes runs, Real *jitters) {
  const int d = at->d;
  load_runs(runs, d * d, potential->precision, at->precision);
  load_runs(runs, d, potential->vector, at->vector);
  memcpy(at->root, at->precision, (size_t)(d * d) * sizeof *at->root);
  vector_cholesky(d, at->root, at->column, jitters);
  vector_invert_triangle(d, at->root, at->column);
  for (int m = 0; m < at->components; m++) {
    find_energy(at, m, &at->energy[m]);
    for (int j = 0; j <= m; j++) {
      find_overlap(at, m, j, &at->entropy.overlap[m][j]);
      at->entropy.overlap[j][m] = at->entropy.overlap[m][j];
    }
  }
  find_entropy(at);
}

SIMD_CLONES
static void ascend(Ascent *at, const Potential *potential, VectorLanes runs, int steps, double enough,
                   Real *jitters) {
  Mask active = ~(Mask){0}, resting;
  Real before = (Real){0} - INFINITY;
  begin(at, potential, runs, jitters);
  for (int k = 0; k < steps; k++) {
    find_value(at, &at->value);
    for (int m = 0; m < at->components; m++) move_component(at, m, &active);
    if (at->components > 1) move_weights(at, &active);
    active &= ~(at->value - before <= enough);
    resting = ~active;
    if (everywhere(&resting)) return;
    before = at->value;
  }
}

void vts_quadratic_fit(VtsQuadratic *self, int steps, double enough, double *weight, double *mean,
                       double *variance, int64_t *fallbacks) {
  const int components = self->components, vector = components * self->potential->d;
  Ascent at;
  place_scratch(self, &at);
  for (VectorLanes runs = vector_begin(self->potential->view.lanes); runs.count > 0; vector_next(&runs)) {
    Real jitters = {0};
    turn_in(runs, components, weight, at.weight);
    turn_in(runs, vector, mean, at.mean);
    turn_in(runs, vector, variance, at.variance);
    ascend(&at, self->potential, runs, steps, enough, &jitters);
    turn_out(runs, components, at.weight, weight);
    turn_out(runs, vector, at.mean, mean);
    turn_out(runs, vector, at.variance, variance);
    for (size_t n = 0; n < runs.count; n++) fallbacks[runs.first + n] += (int64_t)jitters[n];
  }
}

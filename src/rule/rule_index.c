/* Indices and their running maximum, VECTORS vectors of runs at a time: neither is ever stored. Compiled once
 * for each instruction level (core/simd.h). */
#include "rule/rule_index.h"

#include "core/linalg/linalg_tile.h"

enum { VECTORS = 4, LANES = VECTORS * SIMD_DOUBLES };

/* Loads vector v of `count` runs; lanes beyond them are 0. */
INLINE Real load_runs(const double *from, int count, int v) {
  const int left = count - v * SIMD_DOUBLES;
  Real x = {0};
  if (count == LANES || left >= SIMD_DOUBLES)
    linalg_tile_load(SIMD_DOUBLES, from + v * SIMD_DOUBLES, &x);
  else if (left > 0)
    linalg_tile_load(left, from + v * SIMD_DOUBLES, &x);
  return x;
}

/* Computes square[VECTORS] <- phi' S phi, from the lower triangle: the sum over i of phi_i (2 sum over j < i
 * of S_ij phi_j + S_ii phi_i). It can be below 0 only by rounding, and is then set to 0. */
INLINE void index_square(int count, int d, size_t stride, const double *phi, const double *covariance,
                         Real *square) {
  for (int v = 0; v < VECTORS; v++) square[v] = (Real){0};
  for (int i = 0; i < d; i++, covariance += (size_t)d * stride) {
    Real row[VECTORS];
    for (int v = 0; v < VECTORS; v++) row[v] = (Real){0};
    for (int j = 0; j < i; j++)
      for (int v = 0; v < VECTORS; v++)
        row[v] += load_runs(covariance + (size_t)j * stride, count, v) *
                  load_runs(phi + (size_t)j * stride, count, v);
    for (int v = 0; v < VECTORS; v++) {
      const Real x = load_runs(phi + (size_t)i * stride, count, v);
      square[v] += x * (row[v] + row[v] + x * load_runs(covariance + (size_t)i * stride, count, v));
    }
  }
  for (int v = 0; v < VECTORS; v++) square[v] = real_max(square[v], real_of(0));
}

/* Sets the index of arm k to NAN in those of `count` lanes that do not have it; lane 0 is that of run
 * `first`. */
static void index_withhold(ArmSet arms, int first, int count, int k, Real *index) {
  for (int n = 0; n < count; n++)
    if (!arms_has(arms, first + n, k)) index[n / SIMD_DOUBLES][n % SIMD_DOUBLES] = NAN;
}

/* Gives arm k those of `count` lanes in which it ties with the arm taken so far and wins; lane 0 is that of
 * run `first`. */
static void index_break_ties(const RngLanes *ties, int first, int count, int k, const Mask *tied,
                             Mask *taken) {
  for (int n = 0; n < count; n++) {
    const int v = n / SIMD_DOUBLES, lane = n % SIMD_DOUBLES;
    if (tied[v][lane] && ties_arm_wins(ties, (uint32_t)(first + n), k, (int)taken[v][lane]))
      taken[v][lane] = k;
  }
}

/* Where the arms of all runs go, and what they were chosen by; `top` and `index` may be NULL. */
typedef struct {
  int *arm; /* [B] */
  double *top; /* [B], the highest index */
  double *index; /* [B, K] */
} BestArms;

/* Chooses the arms of `count` runs, from run `first` on, of equal arms the first unless `ties`, and of all
 * arms unless `ties`. Returns whether there are equal arms. */
INLINE bool best_of_vectors(const IndexedArms *of, bool wide, bool ties, int count, int first, BestArms out) {
  int *arm = out.arm + first;
  const int d = of->d;
  const size_t stride = (size_t)of->runs;
  const double *features = of->features + first, *mean = of->mean + first;
  Real top[VECTORS];
  Mask taken[VECTORS], any = {0};
  for (int v = 0; v < VECTORS; v++) {
    taken[v] = (Mask){0};
    top[v] = real_of(-INFINITY);
  }
  /* Lanes beyond the runs have an index of 0, which must not tie. */
  for (int n = count; n < LANES; n++) top[n / SIMD_DOUBLES][n % SIMD_DOUBLES] = INFINITY;
  for (int k = 0; k < of->arms.count; k++, features += (size_t)d * stride) {
    Real index[VECTORS], square[VECTORS];
    Mask tied[VECTORS];
    for (int v = 0; v < VECTORS; v++) index[v] = (Real){0};
    for (int i = 0; i < d; i++)
      for (int v = 0; v < VECTORS; v++)
        index[v] += load_runs(features + (size_t)i * stride, count, v) *
                    load_runs(mean + (size_t)i * stride, count, v);
    if (wide) {
      index_square(count, d, stride, features, of->covariance + first, square);
      for (int v = 0; v < VECTORS; v++) index[v] += of->z * real_root(square[v]);
    }
    if (ties && of->arms.available) index_withhold(of->arms, first, count, k, index);
    for (int v = 0; v < VECTORS; v++) {
      const Mask better = index[v] > top[v];
      tied[v] = index[v] == top[v];
      any |= tied[v];
      top[v] = real_choose(better, index[v], top[v]);
      taken[v] = (better & k) | (~better & taken[v]);
    }
    if (ties) index_break_ties(&of->ties, first, count, k, tied, taken);
    if (!out.index) continue;
    for (int n = 0; n < count; n++)
      out.index[(size_t)(first + n) * (size_t)of->arms.count + (size_t)k] =
          index[n / SIMD_DOUBLES][n % SIMD_DOUBLES];
  }
  for (int n = 0; n < count; n++) arm[n] = (int)taken[n / SIMD_DOUBLES][n % SIMD_DOUBLES];
  if (out.top)
    for (int n = 0; n < count; n++) out.top[first + n] = top[n / SIMD_DOUBLES][n % SIMD_DOUBLES];
  return !real_everywhere(~any);
}

/* Does what rule_index does for `count` runs; separate from the loop below, which need not pay for it. */
__attribute__((noinline)) static void best_of_runs(const IndexedArms *of, int count, int first,
                                                   BestArms out) {
  best_of_vectors(of, of->covariance != NULL, true, count, first, out);
}

void rule_index(const IndexedArms *of, int *arm, double *top, double *index) {
  const BestArms all = {.arm = arm, .top = top, .index = index}, best = {.arm = arm, .top = top};
  for (int b = 0; b < of->runs; b += LANES) {
    const int count = of->runs - b < LANES ? of->runs - b : LANES;
    bool tied = index || of->arms.available;
    if (!tied && count < LANES)
      tied = best_of_vectors(of, of->covariance != NULL, false, count, b, best);
    else if (!tied && of->covariance)
      tied = best_of_vectors(of, true, false, LANES, b, best);
    else if (!tied)
      tied = best_of_vectors(of, false, false, LANES, b, best);
    if (tied) best_of_runs(of, count, b, all);
  }
}

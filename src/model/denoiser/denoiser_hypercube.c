/* The denoiser of the uniform distribution on the vertices of {-1, 1}^d, by enumeration: p(x | b, M) is an
 * Ising model.
 *
 * A tree fixes the coordinates one by one, from the last. With k of them free and f = b - M x the field of
 * the fixed ones, setting coordinate i = k - 1 to x_i changes the logarithm of the weight exp(b' x - x' M x /
 * 2) by x_i f_i - M_ii / 2, and the field of each coordinate j that is still free by -M_ji x_i. The sums over
 * a branch follow from those over its two halves, as x_i is constant in each. The two take k and k^2
 * operations at each of 2^(d - k) nodes, a few for each vertex. A first walk finds the largest weight. */
#include "core/linalg/linalg.h"
#include "core/special.h"
#include "model/denoiser/denoiser.h"

#include <string.h>

/* n lanes, lane last. */
typedef struct {
  int d, lanes;
  double *precision; /* [d, d, n]: M */
  double *top; /* [n]: the largest log weight */
  /* For k = 0 .. d free coordinates: log weight and field, [k + 1, n]; sums, [vertex_sums(k), n], for x_k = 1
   * and for x_k = -1. */
  double *at[DENOISER_MOST_VERTICES + 1], *sums[DENOISER_MOST_VERTICES + 1][2];
} Tree;

/* Returns the number of sums over a branch with k free coordinates: those of the weights, of the weights
 * times x_i, and times x_i x_j for j < i. */
static inline int vertex_sums(int k) { return 1 + k + k * (k - 1) / 2; }
static inline int pair_index(int k, int i, int j) { return 1 + k + i * (i - 1) / 2 + j; }

/* Computes in `to` the log weight and field once x_i = spin, from those before it. */
SIMD_CLONES
static void fix_spin(int d, int lanes, int i, double spin, const double *restrict precision,
                     const double *restrict from, double *restrict to) {
  const double *restrict field = from + (1 + i) * lanes;
  const double *restrict own = precision + (i * d + i) * lanes;
  for (int n = 0; n < lanes; n++) to[n] = from[n] + spin * field[n] - 0.5 * own[n];
  for (int j = 0; j < i; j++) {
    const double *restrict m = precision + (j * d + i) * lanes;
    for (int n = 0; n < lanes; n++) to[(1 + j) * lanes + n] = from[(1 + j) * lanes + n] - spin * m[n];
  }
}

SIMD_CLONES
static void denoiser_raise_top_weight(int lanes, const double *restrict log_weight, double *restrict top) {
  for (int n = 0; n < lanes; n++) top[n] = top[n] > log_weight[n] ? top[n] : log_weight[n];
}

SIMD_CLONES
static void denoiser_weigh_vertices(int lanes, const double *restrict log_weight, const double *restrict top,
                                    double *restrict weight) {
  for (int n = 0; n < lanes; n++) weight[n] = special_exp(log_weight[n] - top[n]);
}

/* Computes the sums over k free coordinates from those of the two halves, x_{k - 1} = 1 and -1. */
SIMD_CLONES
static void denoiser_join_halves(int k, int lanes, const double *restrict plus, const double *restrict minus,
                                 double *restrict sums) {
  const int i = k - 1;
  for (int n = 0; n < lanes; n++) {
    sums[n] = plus[n] + minus[n];
    sums[(1 + i) * lanes + n] = plus[n] - minus[n];
  }
  for (int j = 0; j < i; j++) {
    const int from = (1 + j) * lanes, to = pair_index(k, i, j) * lanes;
    for (int n = 0; n < lanes; n++) {
      sums[from + n] = plus[from + n] + minus[from + n];
      sums[to + n] = plus[from + n] - minus[from + n];
    }
    for (int l = 0; l < j; l++) {
      const int before = pair_index(i, j, l) * lanes, after = pair_index(k, j, l) * lanes;
      for (int n = 0; n < lanes; n++) sums[after + n] = plus[before + n] + minus[before + n];
    }
  }
}

/* Walks over the vertices with k free coordinates: computes their sums or, if `sums` is NULL, the largest
 * weight. */
static void denoiser_walk_vertices(const Tree *tree, int k, double *sums) {
  if (k == 0) {
    if (sums)
      denoiser_weigh_vertices(tree->lanes, tree->at[0], tree->top, sums);
    else
      denoiser_raise_top_weight(tree->lanes, tree->at[0], tree->top);
    return;
  }
  for (int half = 0; half < 2; half++) {
    fix_spin(tree->d, tree->lanes, k - 1, half ? -1 : 1, tree->precision, tree->at[k], tree->at[k - 1]);
    denoiser_walk_vertices(tree, k - 1, sums ? tree->sums[k - 1][half] : NULL);
  }
  if (sums) denoiser_join_halves(k, tree->lanes, tree->sums[k - 1][0], tree->sums[k - 1][1], sums);
}

/* Turns sums into D and C, both triangles. */
SIMD_CLONES
static void finish_vertices(int d, int lanes, const double *restrict sums, double *restrict mean,
                            double *restrict covariance) {
  for (int i = 0; i < d; i++) {
    for (int n = 0; n < lanes; n++) mean[i * lanes + n] = sums[(1 + i) * lanes + n] / sums[n];
    for (int j = 0; j <= i; j++) {
      const double *restrict product = sums + (j < i ? pair_index(d, i, j) : 0) * lanes; /* x_i^2 = 1 */
      double *restrict low = covariance + (i * d + j) * lanes;
      for (int n = 0; n < lanes; n++)
        low[n] = product[n] / sums[n] - mean[i * lanes + n] * mean[j * lanes + n];
      if (j < i) memcpy(covariance + (j * d + i) * lanes, low, (size_t)lanes * sizeof *low);
    }
  }
}

static Status hypercube_scratch(const Denoiser *denoiser, Arena *memory, void **out) {
  const size_t d = (size_t)denoiser->d;
  Tree *tree;
  ALLOCATE(memory, tree, 1);
  ALLOCATE(memory, tree->precision, d * d * DENOISER_LANES);
  ALLOCATE(memory, tree->top, DENOISER_LANES);
  for (int k = 0; k <= denoiser->d; k++) {
    ALLOCATE(memory, tree->at[k], (k + 1) * DENOISER_LANES);
    ALLOCATE_ARRAYS(memory, vertex_sums(k) * DENOISER_LANES, &tree->sums[k][0], &tree->sums[k][1]);
  }
  *out = tree;
  return STATUS_OK;
}

static void hypercube_moments(const Denoiser *denoiser, const LaneEvidence *at, double *mean,
                              double *covariance, int *lane_fallbacks, void *scratch) {
  Tree *tree = scratch;
  const int d = tree->d = denoiser->d, lanes = tree->lanes = at->lanes;
  const size_t row = (size_t)lanes;
  (void)lane_fallbacks;
  linalg_factor_spectral(d, lanes, at->basis, at->eigenvalue, tree->precision);
  memset(tree->at[d], 0, row * sizeof *mean);
  memcpy(tree->at[d] + row, at->vector, (size_t)d * row * sizeof *mean);
  for (int n = 0; n < lanes; n++) tree->top[n] = -INFINITY;
  denoiser_walk_vertices(tree, d, NULL);
  denoiser_walk_vertices(tree, d, tree->sums[d][0]);
  finish_vertices(d, lanes, tree->sums[d][0], mean, covariance);
}

Status denoiser_standard(Arena *memory, int d, Denoiser *out) {
  *out = (Denoiser){.d = d};
  ALLOCATE_ARRAYS(memory, d, &out->shift, &out->scale);
  for (int i = 0; i < d; i++) out->scale[i] = 1;
  return STATUS_OK;
}

Status denoiser_hypercube_create(Arena *memory, int d, Denoiser *out) {
  ASSERT(d <= DENOISER_MOST_VERTICES);
  TRY(denoiser_standard(memory, d, out));
  out->scratch = hypercube_scratch;
  out->moments = hypercube_moments;
  return STATUS_OK;
}

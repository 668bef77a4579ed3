/* Density of a Gaussian mixture, its gradient and its Hessian.
 *
 * With precision P_c, mean m_c and l_c = log_norm_c - 1/2 (x - m_c)' P_c (x - m_c): the log density is log
 * sum_c exp l_c, and r_c = exp(l_c) / sum exp l is the responsibility of component c. The largest l so far
 * ("top") is factored out of the running sum, so that a point far from all components is as safe as any. */
#define REAL_WIDTH SIMD_DOUBLES
#include "model/mixture/mixture_density.h"

#include "core/real.h"

#include <math.h>

/* Densities are computed a vector of lanes at a time: `at` are its lanes in arrays [.., N], OWN those of
 * scratch. */
static const RealLanes OWN = {0, REAL_WIDTH, REAL_WIDTH};

/* The sum over components so far relative to exp(top), and the shares of the old sum and of the component. */
typedef struct {
  Real top, total, old_share, share;
} Sums;

/* Adds a component to the sums, as lanes_join does. */
INLINE void join_component(bool first, Real log_density, Sums *sums) {
  const Real one = real_of(1), rise = first ? one : log_density - sums->top;
  const Mask higher = real_above(rise, real_of(0));
  const Real ratio = first ? real_of(0) : real_exp(real_choose(higher, -rise, rise));
  sums->old_share = real_choose(higher, ratio, one);
  sums->share = real_choose(higher, one, ratio);
  sums->top = real_choose(higher, log_density, sums->top);
  sums->total = first ? one : sums->old_share * sums->total + sums->share;
}

/* Computes out[rows] = rows i, i + 1, .. of P_c (x - m_c): each vector of x that is loaded serves several
 * rows, whose sums stay in registers. */
enum { PULL_ROWS = 4 };
INLINE void pull_rows(const Mixture *mixture, int c, size_t i, const int rows, RealLanes at, const double *x,
                      Real *out) {
  const size_t d = (size_t)mixture->d;
  const double *mean = mixture->mean + (size_t)c * d,
               *row = mixture->inverse.precision + ((size_t)c * d + i) * d;
  for (int r = 0; r < rows; r++) out[r] = (Real){0};
  for (size_t j = 0; j < d; j++) {
    Real gap;
    bool zero = true; /* components with independent coordinates cost d, not d^2 */
    for (int r = 0; r < rows; r++) zero &= row[(size_t)r * d + j] == 0;
    if (zero) continue;
    real_load(at, 1, x + j * at.lanes, &gap);
    gap -= mean[j];
    for (int r = 0; r < rows; r++) out[r] += row[(size_t)r * d + j] * gap;
  }
}

/* Subtracts (x - m_c)_i (P_c (x - m_c))_i / 2 from log_density for rows i, i + 1, ..; unless gradient[d,
 * REAL_WIDTH] is NULL, writes these rows of g_c to it. */
INLINE void add_rows(const Mixture *mixture, int c, size_t i, const int rows, RealLanes at, const double *x,
                     Real *log_density, double *gradient) {
  Real pulled[PULL_ROWS];
  pull_rows(mixture, c, i, rows, at, x, pulled);
  for (int r = 0; r < rows; r++) {
    Real gap;
    real_load(at, 1, x + (i + (size_t)r) * at.lanes, &gap);
    gap -= mixture->mean[(size_t)c * (size_t)mixture->d + i + (size_t)r];
    *log_density -= 0.5 * pulled[r] * gap;
    pulled[r] = -pulled[r];
  }
  if (gradient) real_store(OWN, rows, pulled, gradient + i * REAL_WIDTH);
}

/* Adds component c to the sums; unless gradient[d, REAL_WIDTH] is NULL, computes it as g_c. */
INLINE void add_component(const Mixture *mixture, int c, RealLanes at, const double *x, double *gradient,
                          Sums *sums) {
  const size_t d = (size_t)mixture->d;
  Real log_density = real_of(mixture->log_norm[c]);
  size_t i = 0;
  for (; i + PULL_ROWS <= d; i += PULL_ROWS)
    add_rows(mixture, c, i, PULL_ROWS, at, x, &log_density, gradient);
  for (; i < d; i++) add_rows(mixture, c, i, 1, at, x, &log_density, gradient);
  join_component(c == 0, log_density, sums);
}

/* Stores the log density. */
INLINE void store_log_density(const Mixture *mixture, RealLanes at, const Sums *sums, double *out) {
  const Real log_density = mixture->components > 1 ? sums->top + real_log(sums->total) : sums->top;
  real_store(at, 1, &log_density, out);
}

void mixture_log_density(const Mixture *mixture, int lanes, const double *theta, double *out) {
  mixture_invert(mixture);
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Sums sums = {.top = {0}};
    for (int c = 0; c < mixture->components; c++) add_component(mixture, c, at, theta, NULL, &sums);
    store_log_density(mixture, at, &sums, out);
  }
}

void mixture_density(const Mixture *mixture, int lanes, const double *theta, double *gradient,
                     double *log_density, double *score) {
  const size_t d = (size_t)mixture->d;
  mixture_invert(mixture);
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Sums sums = {.top = {0}};
    for (int c = 0; c < mixture->components; c++) {
      add_component(mixture, c, at, theta, gradient, &sums);
      for (size_t i = 0; i < d; i++) {
        Real own, sum;
        real_load(OWN, 1, gradient + i * REAL_WIDTH, &own);
        if (c > 0) {
          real_load(at, 1, score + i * at.lanes, &sum);
          own = real_two_products(sums.old_share, sum, sums.share, own);
        }
        real_store(at, 1, &own, score + i * at.lanes);
      }
    }
    if (log_density) store_log_density(mixture, at, &sums, log_density);
    const Real inverse = 1 / sums.total;
    for (size_t i = 0; i < d && mixture->components > 1; i++) {
      Real sum;
      real_load(at, 1, score + i * at.lanes, &sum);
      sum *= inverse;
      real_store(at, 1, &sum, score + i * at.lanes);
    }
  }
}

/* Computes, in the lanes `to`, the score and H = sum_c r_c ((g_c - g) (g_c - g)' - P_c), both triangles, by
 * updates of weighted moments (West 1979), so that nothing cancels where scores are large. Scratch:
 * gradient[d, REAL_WIDTH]. */
INLINE void score_hessian_vector(const Mixture *mixture, RealLanes at, const double *x, double *gradient,
                                 RealLanes to, double *score, double *hessian) {
  const size_t d = (size_t)mixture->d;
  Sums sums = {.top = {0}};
  for (int c = 0; c < mixture->components; c++) {
    const double *precision = mixture->inverse.precision + (size_t)c * d * d;
    add_component(mixture, c, at, x, gradient, &sums);
    const Real step = sums.share / sums.total, spread = (sums.total - sums.share) * step;
    for (size_t i = 0; i < d; i++) {
      Real own, other, mean = {0}, h = {0};
      real_load(OWN, 1, gradient + i * REAL_WIDTH, &own);
      if (c > 0) real_load(to, 1, score + i * to.lanes, &mean);
      own -= mean;
      mean += step * own;
      real_store(OWN, 1, &own, gradient + i * REAL_WIDTH);
      real_store(to, 1, &mean, score + i * to.lanes);
      for (size_t j = 0; j <= i; j++) {
        double *low = hessian + (i * d + j) * to.lanes;
        real_load(OWN, 1, gradient + j * REAL_WIDTH, &other);
        if (c > 0) real_load(to, 1, low, &h);
        h = real_two_products(sums.old_share, h, spread * own, other) - sums.share * precision[i * d + j];
        real_store(to, 1, &h, low);
      }
    }
  }
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j <= i; j++) {
      Real h;
      real_load(to, 1, hessian + (i * d + j) * to.lanes, &h);
      h /= sums.total;
      real_store(to, 1, &h, hessian + (i * d + j) * to.lanes);
      real_store(to, 1, &h, hessian + (j * d + i) * to.lanes);
    }
}

/* Allocates scratch[size]. If memory is short, returns NULL and fills out[count] with NaN, so that the draws
 * that need it are not finite and count as fallbacks. */
static double *mixture_scratch(Arena *memory, size_t size, size_t count, double *out) {
  void *scratch;
  if (arena_new(memory, &scratch, size, sizeof *out) == STATUS_OK) return scratch;
  for (size_t k = 0; k < count; k++) out[k] = NAN;
  return NULL;
}

void mixture_score(const Mixture *mixture, int lanes, const double *theta, double *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  double *gradient = mixture_scratch(&scratch, d * REAL_WIDTH, d * (size_t)lanes, out);
  if (gradient) mixture_density(mixture, lanes, theta, gradient, NULL, out);
}

void mixture_score_hessian(const Mixture *mixture, int lanes, const double *theta, double *score,
                           double *hessian) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d;
  double *gradient = mixture_scratch(&scratch, d * REAL_WIDTH, d * d * (size_t)lanes, hessian);
  mixture_invert(mixture);
  if (!gradient) memcpy(score, hessian, d * (size_t)lanes * sizeof *score); /* NaN too */
  for (RealLanes at = real_begin(lanes); at.count > 0 && gradient; real_next(&at))
    score_hessian_vector(mixture, at, theta, gradient, at, score, hessian);
}

void mixture_hessian_product(const Mixture *mixture, int lanes, const double *theta, const double *v,
                             double *out) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)mixture->d, part = d * REAL_WIDTH;
  double *gradient = mixture_scratch(&scratch, (d + 2) * part, d * (size_t)lanes, out);
  mixture_invert(mixture);
  for (RealLanes at = real_begin(lanes); at.count > 0 && gradient; real_next(&at)) {
    double *score = gradient + part, *hessian = score + part;
    score_hessian_vector(mixture, at, theta, gradient, OWN, score, hessian);
    for (size_t i = 0; i < d; i++) {
      Real h, along, sum = {0};
      for (size_t j = 0; j < d; j++) {
        real_load(OWN, 1, hessian + (i * d + j) * REAL_WIDTH, &h);
        real_load(at, 1, v + j * at.lanes, &along);
        sum += h * along;
      }
      real_store(at, 1, &sum, out + i * at.lanes);
    }
  }
}

#include "model/history/ep.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "core/real.h"
#include "model/history/likelihood.h"
#include "model/mixture/mixture_evidence.h"

/* Sites overshoot by about a tenth when all of them move at once; after QUICK sweeps they may be
 * oscillating. */
enum { QUICK = 12 };

/* Variances of u below this are 0 up to rounding: in rows without features, and in lanes without the row. */
static const double LEAST = 1e-12;

Status ep_create(Arena *memory, int d, int capacity, double tolerance, Ep *out) {
  const size_t vector = (size_t)d * (size_t)capacity, matrix = (size_t)d * vector;
  *out = (Ep){.d = d, .capacity = capacity, .tolerance = tolerance};
  history_tilted_nodes(&out->nodes);
  ALLOCATE_ARRAYS(memory, matrix, out->factor, out->covariance, out->next_precision);
  ALLOCATE_ARRAYS(memory, vector, out->mean, out->next_vector);
  ALLOCATE_ARRAYS(memory, capacity, out->volume, out->miss, out->log_scale, out->settled_scale, out->jitters,
                  out->moving);
  return STATUS_OK;
}

/* ---- a sweep over rows */

typedef struct {
  Ep *ep;
  const History *history;
  bool first;
  double step; /* fraction of the full update by which sites move */
} Sweep;

/* Returns m^2 / w - (m / w + nu)^2 / (1 / w + lambda), over a common denominator. */
INLINE Real history_site_square(const TiltedCells *cavity, Real lambda, Real nu, Real spread) {
  const Real m = cavity->mean, w = cavity->variance;
  return (m * (m * lambda - 2 * nu) - nu * nu * w) / spread;
}

/* Sums log s_i of the current sites, and finds by how much they miss the fixed point at most. */
INLINE void history_judge_sites(Ep *ep, RealLanes at, const TiltedCells *cavity, const TiltedMoments *tilted,
                                Real mean, Real variance, Real lambda, Real nu) {
  const Real spread = 1 + lambda * cavity->variance, zero = {0};
  const Real off = (cavity->mean + tilted->move - mean) / real_root(variance),
             wide = tilted->shrink * cavity->variance / variance - 1,
             worst = real_max(real_max(off, -off), real_max(wide, -wide)),
             own = tilted->log_mass +
                   0.5 * (real_log(spread) + history_site_square(cavity, lambda, nu, spread));
  const Mask here = real_above(cavity->counts, real_of(0));
  Real miss, log_scale;
  real_load(at, 1, ep->miss, &miss);
  real_load(at, 1, ep->log_scale, &log_scale);
  miss = real_max(real_choose(here, worst, zero), miss);
  log_scale += real_choose(here, own, zero);
  real_store(at, 1, &miss, ep->miss);
  real_store(at, 1, &log_scale, ep->log_scale);
}

INLINE Real history_cells_load(const double *from) {
  Real x;
  memcpy(&x, from, sizeof x);
  return x;
}

/* Judges eight sites from k on, and moves those of lanes that have not settled by sweep->step of the way to
 * the matched moments. */
SIMD_CLONES
static void history_visit_vector(const Sweep *sweep, const HistoryMarginals *cells, int k) {
  Ep *ep = sweep->ep;
  const History *history = sweep->history;
  const int first = cells->lane + k % TILE_LANES;
  const RealLanes at = real_at((size_t)(first < cells->lanes ? first : cells->lanes), (size_t)cells->lanes);
  const Real mean = history_cells_load(cells->mean + k),
             variance = real_max(history_cells_load(cells->variance + k), real_of(LEAST));
  Real lambda = history_cells_load(cells->lambda + k), nu = history_cells_load(cells->nu + k), moving;
  const Real inverse = 1 / real_max(1 - lambda * variance, real_of(LEAST));
  const TiltedCells cavity = {history_cells_load(cells->y + k),
                              history->temper * history_cells_load(cells->counts + k),
                              (mean - variance * nu) * inverse, variance * inverse};
  TiltedMoments tilted;
  if (history->likelihood->ops == &likelihood_logistic && history_rows_are_single(history))
    history_tilted_moments_of_clicks(&ep->nodes, &cavity, &tilted);
  else
    history_tilted_moments(&ep->nodes, history->likelihood, &cavity, &mean, &variance, &tilted);
  history_judge_sites(ep, at, &cavity, &tilted, mean, variance, lambda, nu);
  const Real shrink = real_max(tilted.shrink, real_of(LEAST)), back = 1 / (shrink * cavity.variance);
  const Real rest = real_max(1 - shrink, real_of(0));
  real_load(at, 1, ep->moving, &moving);
  const Real share = real_choose(real_above(cavity.counts, real_of(0)), sweep->step * moving, real_of(0));
  lambda += share * (rest * back - lambda);
  nu += share * ((cavity.mean * rest + tilted.move) * back - nu);
  memcpy(cells->lambda + k, &lambda, sizeof lambda);
  memcpy(cells->nu + k, &nu, sizeof nu);
}

/* Visits the sites of a tile, which start as the expansion of the likelihood about the mean. */
static void history_visit_sites(void *context, const HistoryMarginals *cells) {
  const Sweep *sweep = context;
  const Likelihood *likelihood = sweep->history->likelihood;
  if (sweep->first)
    likelihood->ops->derivatives(likelihood, cells->n, cells->y, cells->mean, cells->slope, cells->lambda);
  for (int k = 0; k < cells->n && sweep->first; k++) {
    const double count = sweep->history->temper * cells->counts[k];
    cells->lambda[k] *= -count;
    cells->nu[k] = cells->lambda[k] * cells->mean[k] + count * cells->slope[k];
  }
  for (int k = 0; k < cells->n; k += VECTOR_LANES) history_visit_vector(sweep, cells, k);
  for (int k = 0; k < cells->n; k++) {
    cells->curvature[k] = cells->lambda[k];
    cells->slope[k] = cells->nu[k] - cells->lambda[k] * cells->mean[k];
  }
}

/* ---- the posterior of the sites */

/* Computes S, m and the volume. */
static void history_site_posterior(Ep *ep, int lanes, const double *prior_precision,
                                   const double *prior_vector, const double *precision,
                                   const double *vector) {
  const int d = ep->d;
  const size_t entries = (size_t)d * (size_t)lanes;
  lanes_sum(entries * (size_t)d, prior_precision, precision, ep->factor);
  lanes_sum(entries, prior_vector, vector, ep->mean);
  memset(ep->jitters, 0, (size_t)lanes * sizeof *ep->jitters);
  linalg_cholesky_lanes(d, lanes, ep->factor, ep->jitters);
  linalg_forward_lanes(d, lanes, ep->factor, ep->mean);
  mixture_evidence_weigh(d, lanes, 0, ep->factor, ep->mean, ep->volume);
  linalg_backward_lanes(d, lanes, ep->factor, ep->mean);
  linalg_inverse_lanes(d, lanes, ep->factor, ep->covariance);
}

/* Returns the logarithm of the factor by which the sites of a lane grow in z, where u = phi' (shift + scale
 * z): b_z' r + r' Lambda_z r / 2 with r = shift / scale. */
static double history_site_log_shift(const HistoryView *view, const double *precision, const double *vector,
                                     int n) {
  const int d = view->history->d, lanes = view->lanes;
  double sum = 0;
  for (int i = 0; i < d && view->shift; i++) {
    double pull = vector[i * lanes + n];
    for (int j = 0; j < d; j++)
      pull += 0.5 * precision[(i * d + j) * lanes + n] * view->shift[j] / (view->scale ? view->scale[j] : 1);
    sum += pull * view->shift[i] / (view->scale ? view->scale[i] : 1);
  }
  return sum;
}

void ep_solve(Ep *ep, const HistoryView *view, const double *prior_precision, const double *prior_vector,
              double *precision, double *vector, double *log_evidence, int64_t *fallbacks) {
  const int lanes = view->lanes;
  Sweep sweep = {.ep = ep, .history = view->history, .first = true};
  ASSERT(lanes <= ep->capacity && view->history->d == ep->d);
  for (int n = 0; n < lanes; n++) ep->moving[n] = 1;
  for (int pass = 0, moving = lanes; pass < EP_SWEEPS && moving > 0; pass++, sweep.first = false) {
    history_site_posterior(ep, lanes, prior_precision, prior_vector, precision, vector);
    sweep.step = sweep.first ? 1 : pass < QUICK ? 0.9 : 0.5;
    memset(ep->miss, 0, (size_t)lanes * sizeof *ep->miss);
    memset(ep->log_scale, 0, (size_t)lanes * sizeof *ep->log_scale);
    history_visit_marginals(view, ep->mean, ep->covariance, history_visit_sites, &sweep, ep->next_precision,
                            ep->next_vector);
    moving = 0;
    for (int n = 0; n < lanes; n++) { /* lanes that have settled keep what they have */
      if (ep->moving[n] == 0) continue;
      log_evidence[n] = ep->volume[n] + ep->log_scale[n] + history_site_log_shift(view, precision, vector, n);
      for (int k = n; k < ep->d * lanes; k += lanes) vector[k] = ep->next_vector[k];
      for (int k = n; k < ep->d * ep->d * lanes; k += lanes) precision[k] = ep->next_precision[k];
      ep->settled_scale[n] = ep->log_scale[n];
      ep->moving[n] = sweep.first || !(ep->miss[n] <= ep->tolerance);
      moving += ep->moving[n] > 0;
    }
  }
  for (int n = 0; n < lanes; n++) {
    log_evidence[n] -= history_excess(view, n);
    fallbacks[view->first + n] += ep->jitters[n] + (ep->moving[n] > 0);
  }
}

/* Sweeps over the rows from `row` on without moving a site, for their evidence and log s_i. */
static void history_inspect_sites(Ep *ep, const HistoryView *view, int row) {
  const History rest = history_since(view->history, row);
  HistoryView rows = *view;
  Sweep sweep = {.ep = ep, .history = &rest};
  rows.history = &rest;
  memset(ep->log_scale, 0, (size_t)view->lanes * sizeof *ep->log_scale);
  history_visit_marginals(&rows, ep->mean, ep->covariance, history_visit_sites, &sweep, ep->next_precision,
                          ep->next_vector);
}

void ep_split(Ep *ep, const HistoryView *view, const double *prior_precision, const double *prior_vector,
              int row, double *precision, double *vector, double *log_scale) {
  const size_t lanes = (size_t)view->lanes, entries = (size_t)ep->d * lanes;
  history_site_posterior(ep, view->lanes, prior_precision, prior_vector, precision, vector);
  history_inspect_sites(ep, view, 0);
  memcpy(log_scale, ep->log_scale, lanes * sizeof *log_scale);
  history_inspect_sites(ep, view, row);
  lanes_add(lanes, -1, ep->log_scale, log_scale);
  lanes_add(entries, -1, ep->next_vector, vector);
  lanes_add(entries * (size_t)ep->d, -1, ep->next_precision, precision);
}

void ep_click(const TiltedNodes *nodes, int n, const double *y, const double *mean, const double *variance,
              double *lambda, double *nu, double *log_scale) {
  for (RealLanes at = real_begin(n); at.count > 0; real_next(&at)) {
    TiltedCells cells = {.counts = {0}};
    TiltedMoments tilted;
    real_load(at, 1, y, &cells.y);
    real_load(at, 1, mean, &cells.mean);
    real_load(at, 1, variance, &cells.variance);
    cells.variance = real_max(cells.variance, real_of(LEAST));
    history_tilted_moments_of_clicks(nodes, &cells, &tilted);
    const Real shrink = real_max(tilted.shrink, real_of(LEAST)), back = 1 / (shrink * cells.variance);
    const Real rest = real_max(1 - shrink, real_of(0)), spread = 1 + rest / shrink;
    const Real own_lambda = rest * back, own_nu = (cells.mean * rest + tilted.move) * back;
    tilted.log_mass += 0.5 * (real_log(spread) + history_site_square(&cells, own_lambda, own_nu, spread));
    real_store(at, 1, &own_lambda, lambda);
    real_store(at, 1, &own_nu, nu);
    real_store(at, 1, &tilted.log_mass, log_scale);
  }
}

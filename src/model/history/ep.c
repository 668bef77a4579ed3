#include "model/history/ep.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "core/real.h"
#include "model/history/likelihoods.h"
#include "model/mixture/mixture_evidence.h"

enum { CELLS = TILE_ROWS * TILE_LANES };

/* Sites overshoot by about a tenth when all of them move at once; after QUICK sweeps they may be
 * oscillating. */
enum { QUICK = 12 };

/* Variances of u below this are 0 up to rounding: in rows without features, and in lanes without the row. */
static const double LEAST = 1e-12;

Status ep_create(Arena *memory, int d, int capacity, double tolerance, Ep *out) {
  const size_t vector = (size_t)d * (size_t)capacity, matrix = (size_t)d * vector;
  *out = (Ep){.d = d, .capacity = capacity, .tolerance = tolerance};
  tilted_moments_nodes(&out->nodes);
  ALLOCATE_ARRAYS(memory, matrix, out->factor, out->covariance, out->next_precision);
  ALLOCATE_ARRAYS(memory, vector, out->mean, out->next_vector);
  ALLOCATE_ARRAYS(memory, capacity, out->volume, out->miss, out->log_scale, out->settled_scale, out->jitters,
                  out->settled);
  return STATUS_OK;
}

/* ---- a sweep over rows */

typedef struct {
  Ep *ep;
  const History *history;
  bool first;
  double step; /* fraction of the full update by which sites move */
} Sweep;

/* The rows of a tile, [TILE_ROWS, TILE_LANES] each. */
typedef struct {
  double counts[CELLS], variance[CELLS]; /* c times temper, v */
  double cavity_mean[CELLS], cavity_variance[CELLS];
  double log_mass[CELLS], move[CELLS], shrink[CELLS]; /* log Z, m_1 - m_c, v_1 / v_c */
  double log_spread[CELLS]; /* log(1 + lambda v_c) */
} Tile;

/* Sets the sites to the expansion of the likelihood about the mean. */
static void history_expand_likelihood(const Likelihood *likelihood, const HistoryMarginals *cells,
                                      Tile *tile) {
  likelihood->ops->derivatives(likelihood, cells->n, cells->y, cells->mean, tile->move, cells->lambda);
  for (int k = 0; k < cells->n; k++) {
    cells->lambda[k] *= -tile->counts[k];
    cells->nu[k] = cells->lambda[k] * cells->mean[k] + tile->counts[k] * tile->move[k];
  }
}

SIMD_CLONES
static void history_site_cavities(const HistoryMarginals *cells, Tile *restrict tile) {
  const double *restrict mean = cells->mean, *restrict lambda = cells->lambda, *restrict nu = cells->nu;
  for (int k = 0; k < cells->n; k++) {
    const double rest = 1 - lambda[k] * tile->variance[k], inverse = 1 / (rest > LEAST ? rest : LEAST);
    tile->cavity_variance[k] = tile->variance[k] * inverse;
    tile->cavity_mean[k] = (mean[k] - tile->variance[k] * nu[k]) * inverse;
  }
}

static void history_tilt_rows(const Sweep *sweep, const HistoryMarginals *cells, Tile *tile) {
  const Likelihood *likelihood = sweep->history->likelihood;
  const TiltedCells tilted = {cells->n, cells->y, tile->counts, tile->cavity_mean, tile->cavity_variance};
  if (likelihood->ops == &likelihood_logistic && history_rows_are_single(sweep->history))
    tilted_moments_of_clicks(&sweep->ep->nodes, &tilted, tile->log_mass, tile->move, tile->shrink);
  else
    tilted_moments(&sweep->ep->nodes, likelihood, &tilted, cells->mean, tile->variance, tile->log_mass,
                   tile->move, tile->shrink);
}

SIMD_CLONES
static void history_site_log_spread(const HistoryMarginals *cells, Tile *tile) {
  for (int k = 0; k < cells->n; k += VECTOR_LANES) {
    Real lambda, variance;
    memcpy(&lambda, cells->lambda + k, sizeof lambda);
    memcpy(&variance, tile->cavity_variance + k, sizeof variance);
    const Real logarithm = real_log(1 + lambda * variance);
    memcpy(tile->log_spread + k, &logarithm, sizeof logarithm);
  }
}

/* Sums log s_i of the current sites, and finds by how much they miss the fixed point at most. */
SIMD_CLONES
static void history_judge_sites(const HistoryMarginals *cells, const Tile *tile, double *restrict miss,
                                double *restrict log_scale) {
  const int lanes = cells->lanes - cells->lane;
  for (int k = 0; k < cells->n; k += TILE_LANES)
    for (int n = 0; n < lanes; n++) {
      const double mu = cells->mean[k + n], v = tile->variance[k + n], m = tile->cavity_mean[k + n],
                   w = tile->cavity_variance[k + n], lambda = cells->lambda[k + n], nu = cells->nu[k + n];
      const double off = fabs(m + tile->move[k + n] - mu) / sqrt(v),
                   wide = fabs(tile->shrink[k + n] * w / v - 1), worst = off > wide ? off : wide;
      const double spread = 1 + lambda * w;
      /* m^2 / w - (m / w + nu)^2 / (1 / w + lambda), over a common denominator. */
      const double square = (m * (m * lambda - 2 * nu) - nu * nu * w) / spread;
      const double here = tile->counts[k + n] > 0 ? 1 : 0;
      miss[n] = here * worst > miss[n] ? here * worst : miss[n];
      log_scale[n] += here * (tile->log_mass[k + n] + 0.5 * (tile->log_spread[k + n] + square));
    }
}

/* Moves the sites of lanes that have not settled by `step` of the way to the matched moments. */
SIMD_CLONES
static void history_match_sites(const HistoryMarginals *cells, double step, const bool *settled,
                                const Tile *tile) {
  const int lanes = cells->lanes - cells->lane;
  double *restrict lambda = cells->lambda, *restrict nu = cells->nu;
  for (int k = 0; k < cells->n; k += TILE_LANES)
    for (int n = 0; n < lanes; n++) {
      const double m = tile->cavity_mean[k + n], w = tile->cavity_variance[k + n],
                   shrink = tile->shrink[k + n] > LEAST ? tile->shrink[k + n] : LEAST;
      const double rest = shrink < 1 ? 1 - shrink : 0, inverse = 1 / (shrink * w);
      const double share = tile->counts[k + n] > 0 && !settled[n] ? step : 0;
      lambda[k + n] += share * (rest * inverse - lambda[k + n]);
      nu[k + n] += share * ((m * rest + tile->move[k + n]) * inverse - nu[k + n]);
    }
}

static void history_visit_sites(void *context, const HistoryMarginals *cells) {
  const Sweep *sweep = context;
  Ep *ep = sweep->ep;
  Tile tile;
  for (int k = 0; k < cells->n; k++) {
    tile.counts[k] = sweep->history->temper * cells->counts[k];
    tile.variance[k] = cells->variance[k] > LEAST ? cells->variance[k] : LEAST;
  }
  if (sweep->first) history_expand_likelihood(sweep->history->likelihood, cells, &tile);
  history_site_cavities(cells, &tile);
  history_tilt_rows(sweep, cells, &tile);
  history_site_log_spread(cells, &tile);
  history_judge_sites(cells, &tile, ep->miss + cells->lane, ep->log_scale + cells->lane);
  history_match_sites(cells, sweep->step, ep->settled + cells->lane, &tile);
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

/* Accepts the result of a sweep for the lanes that have not settled; returns how many are still moving. */
static int history_accept_sites(Ep *ep, const HistoryView *view, bool first, double *precision,
                                double *vector, double *log_evidence) {
  const int lanes = view->lanes;
  int moving = 0;
  for (int n = 0; n < lanes; n++) {
    if (ep->settled[n]) continue;
    log_evidence[n] = ep->volume[n] + ep->log_scale[n] + history_site_log_shift(view, precision, vector, n);
    for (int k = n; k < ep->d * lanes; k += lanes) vector[k] = ep->next_vector[k];
    for (int k = n; k < ep->d * ep->d * lanes; k += lanes) precision[k] = ep->next_precision[k];
    ep->settled_scale[n] = ep->log_scale[n];
    ep->settled[n] = !first && ep->miss[n] <= ep->tolerance;
    moving += ep->settled[n] ? 0 : 1;
  }
  return moving;
}

void ep_solve(Ep *ep, const HistoryView *view, const double *prior_precision, const double *prior_vector,
              double *precision, double *vector, double *log_evidence, int64_t *fallbacks) {
  const int lanes = view->lanes;
  Sweep sweep = {.ep = ep, .history = view->history, .first = true};
  ASSERT(lanes <= ep->capacity && view->history->d == ep->d);
  memset(ep->settled, 0, (size_t)lanes * sizeof *ep->settled);
  for (int pass = 0, moving = lanes; pass < EP_SWEEPS && moving > 0; pass++, sweep.first = false) {
    history_site_posterior(ep, lanes, prior_precision, prior_vector, precision, vector);
    sweep.step = sweep.first ? 1 : pass < QUICK ? 0.9 : 0.5;
    memset(ep->miss, 0, (size_t)lanes * sizeof *ep->miss);
    memset(ep->log_scale, 0, (size_t)lanes * sizeof *ep->log_scale);
    history_visit_marginals(view, ep->mean, ep->covariance, history_visit_sites, &sweep, ep->next_precision,
                            ep->next_vector);
    moving = history_accept_sites(ep, view, sweep.first, precision, vector, log_evidence);
  }
  for (int n = 0; n < lanes; n++) {
    log_evidence[n] -= history_excess(view, n);
    fallbacks[view->first + n] += ep->jitters[n] + (ep->settled[n] ? 0 : 1);
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

void ep_click(const TiltedNodes *nodes, int n, const double *y, const double *mean, double *variance,
              double *lambda, double *nu, double *log_scale) {
  for (int k = 0; k < n; k++) variance[k] = variance[k] > LEAST ? variance[k] : LEAST;
  const TiltedCells cells = {n, y, NULL, mean, variance};
  tilted_moments_of_clicks(nodes, &cells, log_scale, nu, lambda);
  for (int k = 0; k < n; k++) {
    const double v = variance[k], m = mean[k], shrink = lambda[k] > LEAST ? lambda[k] : LEAST;
    const double rest = shrink < 1 ? 1 - shrink : 0, inverse = 1 / (shrink * v), spread = 1 + rest / shrink;
    lambda[k] = rest * inverse, nu[k] = (m * rest + nu[k]) * inverse;
    log_scale[k] += 0.5 * (log(spread) + (m * (m * lambda[k] - 2 * nu[k]) - nu[k] * nu[k] * v) / spread);
  }
}

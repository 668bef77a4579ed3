#include "model/history/ep.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_passes.h"
#include "model/mixture/mixture_evidence.h"

#include <stdlib.h>

/* ---- moments */

enum { NODES = 2 * TILTED_PAIRS + 1 };
static const double STEP = 0.45, WIDE_STEP = 0.9;

/* Standard deviations of u up to which WIDE_STEP leaves an error of 3e-8: with clicks, and with counts, whose
 * likelihood bends faster. */
static const double FEW_ENOUGH = 1.25, COUNTED_FEW_ENOUGH = 0.6;

/* Computes weight[pairs + 1] of nodes that are `distance` apart; returns h, which gives them variance 1. */
static double likelihood_node_weights(int pairs, double distance, double *weight) {
  double mass = 0, square = 0;
  for (int k = 0; k <= pairs; k++) {
    const double z = distance * k, both = k > 0 ? 2 : 1;
    weight[k] = exp(-0.5 * z * z);
    mass += both * weight[k];
    square += both * weight[k] * z * z;
  }
  for (int k = 0; k <= pairs; k++) weight[k] /= mass;
  return distance / sqrt(square / mass);
}

void history_tilted_nodes(TiltedNodes *out) {
  *out = (TiltedNodes){0};
  out->step = likelihood_node_weights(TILTED_PAIRS, STEP, out->weight);
  out->wide_step = likelihood_node_weights(TILTED_FEW, WIDE_STEP, out->few_weight);
}

/* Sums over 2 pairs + 1 nodes for VECTOR_LANES cells, in units of the standard deviation, from odds =
 * exp(-w), where w is the mean in the direction of the reward, and ratio = exp(-h s): sigma(w +- k h s) = 1 /
 * (1 + odds ratio^+-k). */
INLINE void click_sums(const int pairs, double step, const double *weights, Real odds, Real ratio,
                       Real sums[3]) {
  const Real zero = {0}, one = real_of(1);
  Real power = ratio;
  Real sum = weights[0] / (one + odds), moment = zero, square = zero;
  for (int k = 1; k <= pairs; k++) {
    const double z = k * step, weight = weights[k];
    const Real above = one + odds * power, below = power + odds, inverse = weight / (above * below);
    const Real up = below * inverse, down = power * above * inverse;
    sum += up + down;
    moment += z * (up - down);
    square += z * z * (up + down);
    power *= ratio;
  }
  sums[0] = sum;
  sums[1] = moment / sum;
  sums[2] = square / sum;
}

/* Sums over the few nodes for cells that are `narrow`, and over all nodes for the others. */
INLINE void click_moments(const TiltedNodes *nodes, Mask narrow, Real odds, Real ratio, Real sums[3]) {
  Real few[3] = {{0}}, all[3] = {{0}};
  const bool none = real_everywhere(~narrow), every = real_everywhere(narrow);
  if (!none) click_sums(TILTED_FEW, nodes->wide_step, nodes->few_weight, odds, ratio, few);
  if (!every) click_sums(TILTED_PAIRS, nodes->step, nodes->weight, odds, ratio, all);
  for (int k = 0; k < 3; k++) sums[k] = every ? few[k] : none ? all[k] : real_choose(narrow, few[k], all[k]);
}

/* Standard deviation of u above which the logistic distribution is replaced by the normal one of the same
 * variance, pi^2 / 3: its fourth cumulant is 0.8% of the squared variance of both together, and nodes would
 * be too far apart. */
static const double WIDE = 6;

/* Tilts one cell in closed form: sigma(w) ~ Phi(w sqrt(3) / pi). */
static void likelihood_tilt_widely(double sign, double mean, double variance, double *log_mass, double *move,
                                   double *shrink) {
  const double total = variance + M_PI * M_PI / 3, t = sign * mean / sqrt(total), far = 30;
  /* phi(t) / Phi(t), for t below and above -far. */
  const double mills = t < -far ? -t / (1 - 1 / (t * t) + 3 / pow(t, 4))
                                : exp(-0.5 * t * t) / sqrt(2 * M_PI) / (0.5 * erfc(-t / M_SQRT2));
  *log_mass = t < -far ? -0.5 * t * t - log(sqrt(2 * M_PI) * mills) : log(0.5 * erfc(-t / M_SQRT2));
  *move = sign * variance * mills / sqrt(total);
  *shrink = 1 - variance * mills * (t + mills) / total;
}

/* Largest |m| in use: beyond it, a reward that m speaks against gets the probability that it has here. */
static const double FAR = 300;

SIMD_CLONES
void history_tilted_moments_of_clicks(const TiltedNodes *nodes, const TiltedCells *cells,
                                      TiltedMoments *out) {
  const Real sign = 2 * cells->y - 1, deviation = real_root(cells->variance);
  const Mask narrow = ~real_above(deviation, real_of(FEW_ENOUGH));
  const Real h = real_choose(narrow, real_of(nodes->wide_step), real_of(nodes->step)),
             odds = real_exp(real_within(FAR, -sign * cells->mean)),
             ratio = real_exp(real_max(real_of(-FAR), -h * deviation));
  Real sums[3];
  click_moments(nodes, narrow, odds, ratio, sums);
  *out = (TiltedMoments){real_log(sums[0]), sign * deviation * sums[1], sums[2] - sums[1] * sums[1]};
  for (int n = 0; n < VECTOR_LANES; n++) {
    double wide[3];
    if (!(deviation[n] > WIDE)) continue;
    likelihood_tilt_widely(sign[n], cells->mean[n], cells->variance[n], &wide[0], &wide[1], &wide[2]);
    out->log_mass[n] = wide[0];
    out->move[n] = wide[1];
    out->shrink[n] = wide[2];
  }
}

/* Nodes k h for k = -pairs .. pairs. */
typedef struct {
  int pairs;
  double step; /* h */
  const double *weight; /* [pairs + 1]: of nodes k h and -k h */
} NodeSet;

/* Computes the exponents of the weights from u[k, n] and the deviances in exponent[k, n]; `top`, the largest;
 * and the sums over nodes of weight, weight z and weight z^2, divided by exp(top). Loops over lanes: AVX2
 * takes half the time for them, since gcc splits vectors of eight badly. */
SIMD_CLONES
static void likelihood_sum_nodes(const NodeSet *nodes, const double *restrict u, const TiltedCells *cells,
                                 double *restrict exponent, Real *out_top, Real out_sums[3]) {
  const int pairs = nodes->pairs;
  const double step = nodes->step, *weights = nodes->weight;
  double mean[VECTOR_LANES], counts[VECTOR_LANES], variance[VECTOR_LANES], top[VECTOR_LANES];
  double sums[3][VECTOR_LANES] = {{0}};
  memcpy(mean, &cells->mean, sizeof mean);
  memcpy(counts, &cells->counts, sizeof counts);
  memcpy(variance, &cells->variance, sizeof variance);
  for (int n = 0; n < VECTOR_LANES; n++) top[n] = -INFINITY;
  for (int k = 0; k <= 2 * pairs; k++)
    for (int n = 0; n < VECTOR_LANES; n++) {
      const double z = (k - pairs) * step, off = u[k * VECTOR_LANES + n] - mean[n];
      double *x = &exponent[k * VECTOR_LANES + n];
      *x = 0.5 * (z * z - counts[n] * *x - off * off / variance[n]);
      top[n] = *x > top[n] ? *x : top[n];
    }
  for (int k = 0; k <= 2 * pairs; k++) {
    const double z = (k - pairs) * step, own = weights[abs(k - pairs)];
    for (int n = 0; n < VECTOR_LANES; n++) {
      const double weight = own * special_exp(exponent[k * VECTOR_LANES + n] - top[n]);
      sums[0][n] += weight;
      sums[1][n] += weight * z;
      sums[2][n] += weight * z * z;
    }
  }
  memcpy(out_top, top, sizeof top);
  memcpy(out_sums, sums, sizeof sums);
}

/* Finds the moments with the few nodes, or with all. */
SIMD_CLONES
static void likelihood_tilt_cells(const TiltedNodes *nodes, bool few, const Likelihood *likelihood,
                                  const TiltedCells *cells, const Real *centre, const Real *spread,
                                  TiltedMoments *out) {
  const NodeSet all_nodes = {.pairs = TILTED_PAIRS, .step = nodes->step, .weight = nodes->weight},
                few_nodes = {.pairs = TILTED_FEW, .step = nodes->wide_step, .weight = nodes->few_weight},
                set = few ? few_nodes : all_nodes;
  const int pairs = set.pairs;
  const Real deviation = real_root(*spread), ratio = *spread / cells->variance;
  Real u[NODES], y[NODES], deviance[NODES], top, sums[3];
  for (int k = 0; k <= 2 * pairs; k++) {
    u[k] = *centre + (k - pairs) * set.step * deviation;
    y[k] = cells->y;
  }
  likelihood->ops->deviance(likelihood, (2 * pairs + 1) * VECTOR_LANES, (double *)y, (double *)u,
                            (double *)deviance);
  likelihood_sum_nodes(&set, (double *)u, cells, (double *)deviance, &top, sums);
  const Real first = sums[1] / sums[0], second = sums[2] / sums[0];
  for (int n = 0; n < VECTOR_LANES; n++) out->log_mass[n] = top[n] + (log(sums[0][n]) + 0.5 * log(ratio[n]));
  out->move = *centre - cells->mean + deviation * first;
  out->shrink = ratio * (second - first * first);
}

SIMD_CLONES
void history_tilted_moments(const TiltedNodes *nodes, const Likelihood *likelihood, const TiltedCells *cells,
                            const Real *centre, const Real *spread, TiltedMoments *out) {
  TiltedMoments all = {.log_mass = {0}}, few = all;
  const Mask narrow = ~real_above(real_root(*spread), real_of(COUNTED_FEW_ENOUGH));
  if (!real_everywhere(narrow)) likelihood_tilt_cells(nodes, false, likelihood, cells, centre, spread, &all);
  if (!real_everywhere(~narrow)) likelihood_tilt_cells(nodes, true, likelihood, cells, centre, spread, &few);
  out->log_mass = real_choose(narrow, few.log_mass, all.log_mass);
  out->move = real_choose(narrow, few.move, all.move);
  out->shrink = real_choose(narrow, few.shrink, all.shrink);
}

/* ---- propagation */

/* Sites overshoot by about a tenth when all of them move at once; after QUICK sweeps they may be
 * oscillating. */
enum { QUICK = 12 };

/* Variances of u below this are 0 up to rounding: in rows without features, and in lanes without the row. */
static const double LEAST = 1e-12;

Status ep_create(Arena *memory, int d, int capacity, double tolerance, Ep *out) {
  const size_t vector = (size_t)d * (size_t)capacity, matrix = (size_t)d * vector;
  *out = (Ep){.d = d, .capacity = capacity, .tolerance = tolerance};
  history_tilted_nodes(&out->nodes);
  ALLOCATE_ARRAYS(memory, matrix, &out->factor, &out->covariance, &out->next_precision);
  ALLOCATE_ARRAYS(memory, vector, &out->mean, &out->settled_mean, &out->next_vector);
  ALLOCATE_ARRAYS(memory, capacity, &out->volume, &out->miss, &out->wide, &out->widest, &out->log_scale,
                  &out->settled_scale, &out->moving);
  ALLOCATE(memory, out->jitters, capacity);
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

/* Eight sites as they are, and mean and variance of their u under the posterior. */
typedef struct {
  Real mean, variance, lambda, nu;
} CurrentSites;

/* Sums log s_i of the current sites, and finds by how much they miss the fixed point at most. */
INLINE void history_judge_sites(Ep *ep, RealLanes at, const TiltedCells *cavity, const TiltedMoments *tilted,
                                const CurrentSites *now) {
  const Real mean = now->mean, variance = now->variance, lambda = now->lambda, nu = now->nu;
  const Real spread = 1 + lambda * cavity->variance, zero = {0};
  const Real off = (cavity->mean + tilted->move - mean) / real_root(variance),
             excess = tilted->shrink * cavity->variance / variance - 1,
             worst = real_max(real_max(off, -off), real_max(excess, -excess)),
             own = tilted->log_mass +
                   0.5 * (real_log(spread) + history_site_square(cavity, lambda, nu, spread));
  const Mask here = real_above(cavity->counts, real_of(0));
  Real miss, wide, log_scale;
  real_load(at, 1, ep->miss, &miss);
  real_load(at, 1, ep->wide, &wide);
  real_load(at, 1, ep->log_scale, &log_scale);
  miss = real_max(real_choose(here, worst, zero), miss);
  wide = real_max(real_choose(here, variance, zero), wide);
  log_scale += real_choose(here, own, zero);
  real_store(at, 1, &miss, ep->miss);
  real_store(at, 1, &wide, ep->wide);
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
  const CurrentSites now = {.mean = mean, .variance = variance, .lambda = lambda, .nu = nu};
  history_judge_sites(ep, at, &cavity, &tilted, &now);
  const Real shrink = real_max(tilted.shrink, real_of(LEAST)), back = 1 / (shrink * cavity.variance);
  const Real rest = real_max(1 - shrink, real_of(0));
  real_load(at, 1, ep->moving, &moving);
  const Real share = real_choose(real_above(cavity.counts, real_of(0)), sweep->step * moving, real_of(0));
  lambda += share * (rest * back - lambda);
  nu += share * ((cavity.mean * rest + tilted.move) * back - nu);
  memcpy(cells->lambda + k, &lambda, sizeof lambda);
  memcpy(cells->nu + k, &nu, sizeof nu);
}

/* Sets the sites of a tile to the expansion of the likelihood about the mean. */
static void history_start_sites(const History *history, const HistoryMarginals *cells) {
  const Likelihood *likelihood = history->likelihood;
  likelihood->ops->derivatives(likelihood, cells->n, cells->y, cells->mean, cells->slope, cells->lambda);
  for (int k = 0; k < cells->n; k++) {
    const double count = history->temper * cells->counts[k];
    cells->lambda[k] *= -count;
    cells->nu[k] = cells->lambda[k] * cells->mean[k] + count * cells->slope[k];
  }
}

/* Visits the sites of a tile. */
static void history_visit_sites(void *context, const HistoryMarginals *cells) {
  const Sweep *sweep = context;
  if (sweep->first) history_start_sites(sweep->history, cells);
  for (int k = 0; k < cells->n; k += VECTOR_LANES) history_visit_vector(sweep, cells, k);
  for (int k = 0; k < cells->n; k++) {
    cells->curvature[k] = cells->lambda[k];
    cells->slope[k] = cells->nu[k] - cells->lambda[k] * cells->mean[k];
  }
}

/* ---- the posterior of the sites */

/* Computes S, m and the volume. */
static void history_site_posterior(Ep *ep, int lanes, PriorLanes prior, EvidenceLanes evidence) {
  const int d = ep->d;
  const size_t entries = (size_t)d * (size_t)lanes;
  lanes_sum(entries * (size_t)d, prior.precision, evidence.precision, ep->factor);
  lanes_sum(entries, prior.vector, evidence.vector, ep->mean);
  memset(ep->jitters, 0, (size_t)lanes * sizeof *ep->jitters);
  linalg_factor_cholesky(d, lanes, ep->factor, ep->jitters);
  linalg_factor_forward(d, lanes, ep->factor, ep->mean);
  mixture_evidence_weigh(d, lanes, 0, ep->factor, ep->mean, ep->volume);
  linalg_factor_backward(d, lanes, ep->factor, ep->mean);
  linalg_factor_inverse(d, lanes, ep->factor, ep->covariance);
}

/* Returns the logarithm of the factor by which the sites of a lane grow in z, where u = phi' (shift + scale
 * z): b_z' r + r' Lambda_z r / 2 with r = shift / scale. */
static double history_site_log_shift(const HistoryView *view, EvidenceLanes sites, int n) {
  const int d = view->history->d, lanes = view->lanes;
  double sum = 0;
  if (!view->shift) return 0;
  for (int i = 0; i < d; i++) {
    double pull = sites.vector[i * lanes + n];
    for (int j = 0; j < d; j++)
      pull += 0.5 * sites.precision[(i * d + j) * lanes + n] * view->shift[j] /
              (view->scale ? view->scale[j] : 1);
    sum += pull * view->shift[i] / (view->scale ? view->scale[i] : 1);
  }
  return sum;
}

/* Takes over what a sweep found for the lanes that it moved; the others keep what they have. Returns how many
 * still move. */
static int ep_take_sweep(Ep *ep, const HistoryView *view, bool first, EvidenceLanes evidence,
                         double *log_evidence) {
  const int vector = ep->d * view->lanes, matrix = ep->d * vector, lanes = view->lanes;
  int moving = 0;
  for (int n = 0; n < lanes; n++) {
    if (ep->moving[n] == 0) continue;
    log_evidence[n] = ep->volume[n] + ep->log_scale[n] + history_site_log_shift(view, evidence, n);
    for (int k = n; k < vector; k += lanes) evidence.vector[k] = ep->next_vector[k];
    for (int k = n; k < matrix; k += lanes) evidence.precision[k] = ep->next_precision[k];
    for (int k = n; k < vector; k += lanes) ep->settled_mean[k] = ep->mean[k];
    ep->settled_scale[n] = ep->log_scale[n];
    ep->widest[n] = fmax(ep->widest[n], ep->wide[n]);
    ep->moving[n] = first || !(ep->miss[n] <= ep->tolerance);
    moving += ep->moving[n] > 0;
  }
  return moving;
}

void ep_solve(Ep *ep, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence, double *log_evidence,
              int64_t *fallbacks) {
  const int lanes = view->lanes;
  int moving = lanes;
  Sweep sweep = {.ep = ep, .history = view->history};
  ASSERT(lanes <= ep->capacity && view->history->d == ep->d);
  for (int n = 0; n < lanes; n++) {
    ep->moving[n] = 1;
    ep->widest[n] = 0;
  }
  for (int pass = 0; pass < EP_SWEEPS && moving > 0; pass++) {
    history_site_posterior(ep, lanes, prior, evidence);
    sweep.first = pass == 0;
    sweep.step = sweep.first ? 1 : pass < QUICK ? 0.9 : 0.5;
    memset(ep->miss, 0, (size_t)lanes * sizeof *ep->miss);
    memset(ep->wide, 0, (size_t)lanes * sizeof *ep->wide);
    memset(ep->log_scale, 0, (size_t)lanes * sizeof *ep->log_scale);
    history_visit_marginals(view, ep->mean, ep->covariance, history_visit_sites, &sweep, ep->next_precision,
                            ep->next_vector);
    moving = ep_take_sweep(ep, view, sweep.first, evidence, log_evidence);
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

void ep_split(Ep *ep, const HistoryView *view, PriorLanes prior, int row, EvidenceLanes evidence,
              double *log_scale) {
  const size_t lanes = (size_t)view->lanes, entries = (size_t)ep->d * lanes;
  history_site_posterior(ep, view->lanes, prior, evidence);
  history_inspect_sites(ep, view, 0);
  memcpy(log_scale, ep->log_scale, lanes * sizeof *log_scale);
  history_inspect_sites(ep, view, row);
  lanes_add(lanes, -1, ep->log_scale, log_scale);
  lanes_add(entries, -1, ep->next_vector, evidence.vector);
  lanes_add(entries * (size_t)ep->d, -1, ep->next_precision, evidence.precision);
}

void ep_click(const TiltedNodes *nodes, int n, const double *y, const double *mean, const double *variance,
              SiteLanes out) {
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
    real_store(at, 1, &own_lambda, out.lambda);
    real_store(at, 1, &own_nu, out.nu);
    real_store(at, 1, &tilted.log_mass, out.log_scale);
  }
}

/* The posterior of a mixture with a likelihood that is not conjugate: each component has its own Gaussian in
 * place of the likelihood (mixture_approximation.h). Draws from these are weighed against each other, or
 * moved, so that their error does not depend on how good the Gaussians are (mixture_posterior.h). */
#include "core/lanes.h"
#include "core/linalg/linalg_factor.h"
#include "core/linalg/linalg_lanes.h"
#include "core/reservoir.h"
#include "model/history/history_passes.h"
#include "model/mixture/mixture_evidence.h"
#include "sampler/mixture/mixture_approximation.h"
#include "sampler/mixture/mixture_posterior_internal.h"
#include "sampler/mixture/slice.h"

#include <string.h>

/* Slice steps of a draw from a component whose Gaussian is not to be trusted. The standard deviation after
 * 1 000 clicks of 0 under a prior N(0, 10^2), which that of eight candidates is 0.6 times of, is right to
 * within 3% after 20. */
enum { SLICE_STEPS = 40 };

/* For candidates, whose weights are right whatever the sites are: it makes these weights 2% more spread
 * out. */
static const double WEIGHED_TOLERANCE = 0.02;

/* C components, n <= most runs, m <= CHUNK_LANES draws; lane last. */
typedef struct {
  MixturePosterior common;
  MixtureOptions options;
  MixtureApproximation approximation;
  bool warm; /* this call starts from the results of the last one */
  bool follows; /* it keeps its own results for the next one */
  /* Per run: */
  double *evidence; /* [C, d + d d, n]: b and Lambda of each component */
  double *offset; /* [C, n]: mixture_approximation_weigh */
  int *doubt; /* [C, n]: about the Gaussian (ep_widen) */
  /* Per draw, if there are several candidates: */
  Reservoir reservoir;
  double *candidate, *kept; /* [d + 1, m]: theta, and its component; the one that is kept */
  double *own_evidence, *own_offset; /* [d + d d, m], [m]: of the component of each candidate */
  double *log_ratio, *log_excess; /* [m] */
  double *image; /* [d, m]: Lambda theta */
  bool *moves; /* [m]: the draw is moved by slice steps */
  bool moved; /* one of the last mixture_posterior_sample is */
  int steps;
  Slice slice;
} MixtureApproximate;

/* ---- runs */

static void begin_call(MixturePosterior *common, const History *history, MixtureUse use) {
  MixtureApproximate *self = (MixtureApproximate *)common;
  const bool draws = use == MIXTURE_NEXT_DRAW || use == MIXTURE_DRAWS,
             weighed = draws && self->options.candidates > 1;
  self->follows = use == MIXTURE_NEXT_DRAW || use == MIXTURE_MOMENTS;
  self->warm =
      self->follows && !self->options.alone && mixture_approximation_is_warm(&self->approximation, history);
  self->approximation.ep.tolerance = weighed ? WEIGHED_TOLERANCE : EP_TOLERANCE;
  if (draws) self->moved = false;
}

/* Finds the Gaussian of component c, and its weight. */
static void find_component(MixtureApproximate *self, int c, const HistoryView *runs, int64_t *fallbacks) {
  const MixturePosterior *common = &self->common;
  MixtureApproximation *own = &self->approximation;
  const int d = common->prior->d, lanes = runs->lanes;
  const size_t vector = (size_t)d * (size_t)lanes;
  double *evidence = mixture_component(self->evidence, c, d + d * d, lanes),
         *factor = mixture_component(common->factor, c, d * d, lanes),
         *whitened = mixture_component(common->whitened, c, d, lanes),
         *log_weight = common->log_weight + c * lanes;
  mixture_approximation_find(own, c, runs, self->warm, evidence, self->doubt + c * lanes, fallbacks);
  lanes_sum(vector * (size_t)d, own->prior_precision, evidence + vector, factor);
  lanes_sum(vector, own->prior_vector, evidence, whitened);
  linalg_factor_cholesky(d, lanes, factor, common->jitters);
  linalg_factor_forward(d, lanes, factor, whitened);
  mixture_evidence_weigh(d, lanes, common->constant[c], factor, whitened, log_weight);
  mixture_approximation_weigh(own, lanes, common->constant[c], log_weight, self->offset + c * lanes);
}

static void find_approximate(MixturePosterior *common, const HistoryView *runs, int64_t *fallbacks) {
  MixtureApproximate *self = (MixtureApproximate *)common;
  const int d = common->prior->d, components = common->prior->components;
  for (int c = 0; c < components; c++) find_component(self, c, runs, fallbacks);
  for (int c = 0; c < components && self->follows; c++)
    mixture_approximation_keep(&self->approximation, c, runs,
                               mixture_component(self->evidence, c, d + d * d, runs->lanes));
}

/* Counts a fallback for each run whose moments are those of a component whose Gaussian is not to be trusted,
 * unless its weight is small next to the largest. */
static void count_doubtful(const MixturePosterior *common, const HistoryView *runs, int first, int end,
                           int64_t *fallbacks) {
  static const double SMALL = -5; /* logarithm */
  const MixtureApproximate *self = (const MixtureApproximate *)common;
  const int least = self->options.strict ? EP_DOUBTFUL : EP_NARROW, lanes = runs->lanes;
  for (int n = 0; n < lanes; n++) {
    double largest = -INFINITY;
    bool any = false;
    for (int c = first; c < end; c++) largest = fmax(largest, common->log_weight[c * lanes + n]);
    for (int c = first; c < end; c++)
      any =
          any || (self->doubt[c * lanes + n] >= least && common->log_weight[c * lanes + n] > largest + SMALL);
    fallbacks[runs->first + n] += any;
  }
}

/* ---- draws */

/* Scales z[d, lanes] by sqrt(1 + 1 / (4 d)), and computes log_excess[lanes], the log ratio of the density of
 * N(0, I) to that of the scaled z, up to a constant. With wide priors the posterior of clicks has a longer
 * tail on one side than its approximation, and this way more candidates reach it: in the plane, with a prior
 * standard deviation of 10, sixteen candidates come to 1.05 times the floor instead of 1.12. If the
 * approximation is exact, a choice among eight is 1% wider in variance; with twice the margin it would be
 * 2%. */
SIMD_CLONES
static void widen_normals(int d, int lanes, double *restrict z, double *restrict log_excess) {
  const double more = 0.25 / d, factor = sqrt(1 + more);
  memset(log_excess, 0, (size_t)lanes * sizeof *log_excess);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      log_excess[n] -= 0.5 * more * z[i * lanes + n] * z[i * lanes + n];
      z[i * lanes + n] *= factor;
    }
}

/* The rows of a call, whose history is the first of the two. */
typedef struct {
  MixtureApproximate *self;
  HistoryView view;
} DrawnRows;

/* Computes the log ratio of the likelihood to its approximation under the component of each lane. */
static void find_ratio(void *context, int lanes, const double *theta, double *log_ratio) {
  const DrawnRows *rows = context;
  const MixtureApproximate *self = rows->self;
  const int d = self->common.prior->d;
  history_log_likelihood(&rows->view, theta, log_ratio, NULL);
  const LanesQuadratic evidence = {.matrix = self->own_evidence + d * lanes, .vector = self->own_evidence};
  linalg_lanes_add_quadratic(d, lanes, -1, evidence, theta, self->image, log_ratio);
}

/* Gathers the Gaussian of the component of each lane, with what it takes the place of. */
static void gather_with_evidence(MixtureApproximate *self, const HistoryView *runs, const HistoryView *view) {
  MixturePosterior *common = &self->common;
  const int entries = common->prior->d * (common->prior->d + 1), lanes = view->lanes, parts = runs->lanes;
  mixture_posterior_gather(common, runs, view);
  mixture_posterior_gather_rows(common, parts, lanes, entries, entries, self->evidence, self->own_evidence);
  mixture_posterior_gather_rows(common, parts, lanes, 1, 1, self->offset, self->own_offset);
}

/* Draws the next candidate of each lane from a Gaussian that is a little wider, and computes its log weight.
 * The Gaussian of a single component is gathered for the first candidate only. */
static void draw_candidate(DrawnRows *rows, const HistoryView *runs, bool first, RngLanes *rng) {
  MixtureApproximate *self = rows->self;
  MixturePosterior *common = &self->common;
  const int d = common->prior->d, lanes = rows->view.lanes;
  rng_lanes_uniform(rng, 1, common->uniform);
  rng_lanes_normal(rng, d, common->draw);
  widen_normals(d, lanes, common->draw, self->log_excess);
  if (first || common->prior->components > 1) {
    mixture_posterior_pick(common, runs, &rows->view);
    gather_with_evidence(self, runs, &rows->view);
  }
  mixture_posterior_solve(common, runs, &rows->view);
  find_ratio(rows, lanes, common->draw, self->log_ratio);
  lanes_add((size_t)lanes, -1, self->own_offset, self->log_ratio);
  lanes_add((size_t)lanes, 1, self->log_excess, self->log_ratio);
  memcpy(self->candidate, common->draw, (size_t)(d * lanes) * sizeof *self->candidate);
  for (int n = 0; n < lanes; n++) self->candidate[d * lanes + n] = common->component[n];
}

/* Moves the draws from components whose Gaussian is not to be trusted, unless they are shrunk. */
static void move_draws(DrawnRows *rows, const HistoryView *runs, RngLanes rng) {
  MixtureApproximate *self = rows->self;
  MixturePosterior *common = &self->common;
  const HistoryView *view = &rows->view;
  bool any = false;
  for (int n = 0; n < view->lanes; n++) {
    const int c = common->component[n];
    self->moves[n] = self->doubt[c * runs->lanes + common->run[n]] == EP_NARROW && common->shrink[c] == 1;
    any = any || self->moves[n];
  }
  if (!any) return;
  self->moved = true;
  if (common->prior->components > 1) gather_with_evidence(self, runs, view);
  mixture_posterior_gather_factors(common, runs, view);
  slice_move(&self->slice, view->lanes, common->own_factor, common->own_whitened, self->moves, self->steps,
             rng, find_ratio, rows, common->draw);
}

/* Draws one of the candidates of each lane. */
static void draw_weighed(MixtureApproximate *self, const HistoryView *runs, const HistoryView *view,
                         RngLanes *rng) {
  MixturePosterior *common = &self->common;
  const int d = common->prior->d, lanes = view->lanes;
  const History kept_rows = mixture_approximation_rows(view->history);
  DrawnRows rows = {self, *view};
  rows.view.history = &kept_rows;
  reservoir_clear(&self->reservoir, lanes);
  for (int j = 0; j < self->options.candidates; j++) {
    draw_candidate(&rows, runs, j == 0, rng);
    rng_lanes_uniform(rng, 1, common->uniform);
    reservoir_offer(&self->reservoir, d + 1, lanes, self->log_ratio, common->uniform, self->candidate,
                    self->kept);
  }
  memcpy(common->draw, self->kept, (size_t)(d * lanes) * sizeof *self->kept);
  for (int n = 0; n < lanes; n++) common->component[n] = (int)self->kept[d * lanes + n];
  move_draws(&rows, runs, *rng);
}

/* Draws one of several candidates if something was observed, and otherwise from the Gaussian itself. */
static void draw_approximate(MixturePosterior *common, const HistoryView *runs, const HistoryView *view,
                             RngLanes *rng) {
  MixtureApproximate *self = (MixtureApproximate *)common;
  const bool observed = runs->history->rounds > 0 || history_is_filtered(runs->history);
  if (observed && self->options.candidates > 1)
    draw_weighed(self, runs, view, rng);
  else
    mixture_posterior_draw(common, runs, view, rng);
}

/* ---- create */

static const MixturePosteriorOps APPROXIMATE = {
    .begin = begin_call, .find = find_approximate, .draw = draw_approximate, .doubt = count_doubtful};

/* Returns how many draws are made at a time, each with matrices of its own: fewer if these are large. */
static int gathered_draws(int d) {
  enum { MOST_NUMBERS = 1 << 22 };
  const int fit = MOST_NUMBERS / d / d / VECTOR_LANES * VECTOR_LANES;
  if (fit < VECTOR_LANES) return VECTOR_LANES;
  return fit < CHUNK_LANES ? fit : CHUNK_LANES;
}

Status mixture_approximate_create(Arena *memory, const Mixture *prior, int runs, MixtureOptions options,
                                  MixturePosterior **out) {
  const size_t d = (size_t)prior->d, components = (size_t)prior->components;
  const int gathered = gathered_draws(prior->d);
  const size_t m = (size_t)gathered;
  MixtureApproximate *self;
  ALLOCATE(memory, self, 1);
  *out = &self->common;
  TRY(mixture_posterior_begin(memory, &APPROXIMATE, prior, runs, gathered, &self->common));
  self->common.width = gathered;
  self->options = options;
  self->steps = SLICE_STEPS;
  const size_t n = (size_t)self->common.most;
  ALLOCATE(memory, self->evidence, components * (d + d * d) * n);
  ALLOCATE(memory, self->offset, components * n);
  ALLOCATE(memory, self->doubt, components * n);
  TRY(mixture_approximation_create(memory, prior, runs, self->common.most, options.laplace,
                                   &self->approximation));
  if (options.candidates == 1) return STATUS_OK;
  ALLOCATE_ARRAYS(memory, (d + 1) * m, &self->candidate, &self->kept);
  ALLOCATE(memory, self->own_evidence, (d + d * d) * m);
  ALLOCATE_ARRAYS(memory, m, &self->own_offset, &self->log_ratio, &self->log_excess);
  ALLOCATE(memory, self->moves, m);
  ALLOCATE(memory, self->image, d * m);
  TRY(slice_create(memory, prior->d, &self->slice));
  return reservoir_create(memory, CHUNK_LANES, &self->reservoir);
}

void mixture_posterior_set_steps(MixturePosterior *self, int steps) {
  ASSERT(self->ops == &APPROXIMATE);
  ((MixtureApproximate *)self)->steps = steps;
}

bool mixture_posterior_moved(const MixturePosterior *self) {
  ASSERT(self->ops == &APPROXIMATE);
  return ((const MixtureApproximate *)self)->moved;
}

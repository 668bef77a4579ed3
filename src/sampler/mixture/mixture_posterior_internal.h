/* What the two kinds of posterior of a mixture share: the Gaussians under each component, from which both
 * draw and take moments. They differ in how these are found, and in what is done about their error:
 *
 *     mixture_exact.c        the likelihood is conjugate: in closed form
 *     mixture_approximate.c  any other: expectation propagation or Laplace, candidates, slice steps
 *
 * A call finds the Gaussians of up to `most` runs at a time, once, and then makes any number of draws from
 * them, CHUNK_LANES at a time. */
#pragma once

#include "sampler/mixture/mixture_posterior.h"

/* What the Gaussians are for: the next draw of runs that are followed from round to round; many draws of
 * each run; moments, also of runs that are followed; or the evidence. */
typedef enum { MIXTURE_NEXT_DRAW, MIXTURE_DRAWS, MIXTURE_MOMENTS, MIXTURE_EVIDENCE } MixtureUse;

typedef struct {
  /* OPTIONAL. Prepares for a call, before its runs are taken. */
  void (*begin)(MixturePosterior *self, const History *history, MixtureUse use);
  /* REQUIRED. Finds the Gaussians and log weights of the runs of a view, draws = 1. */
  void (*find)(MixturePosterior *self, const HistoryView *runs, int64_t *fallbacks);
  /* REQUIRED. Sets draw[d, m] and component[m] of the lanes of `view`, which are draws of the runs. */
  void (*draw)(MixturePosterior *self, const HistoryView *runs, const HistoryView *view, RngLanes *rng);
  /* OPTIONAL. Adds the runs of whose moments, of components first .. end - 1, it has doubts. */
  void (*doubt)(const MixturePosterior *self, const HistoryView *runs, int first, int end,
                int64_t *fallbacks);
} MixturePosteriorOps;

/* C components, n <= most runs, m <= CHUNK_LANES draws; lane last. The first member of both kinds. */
struct MixturePosterior {
  const MixturePosteriorOps *ops;
  const Mixture *prior; /* not owned */
  int most, width; /* n; draws that are made at a time, m */
  double *shrink; /* [C]: multiplies the standard deviations of draws */
  double *constant; /* [C]: mixture_evidence_constants */
  /* Per run: */
  double *factor, *whitened; /* [C, d, d, n], [C, d, n]: L with P = L L', L^-1 h */
  double *log_weight; /* [C, n], less `common` */
  double *common; /* [n]: the same for all components */
  double *cumulative; /* [C, n]: sums of the weights, up to a factor of the run */
  double *largest, *total; /* [n]: of the weights */
  int *jitters; /* [n] */
  double *marginal; /* [B]: of the last draws of a history, several of each run */
  /* Per draw: */
  double *uniform, *draw; /* [m], [d, m] */
  int *run, *component; /* [m]; the run is one of the n */
  double *own_whitened; /* [d, m]: of the component of each draw */
  double *own_factor; /* [d, d, m], the same if it is gathered */
  double *shared_factor, *together; /* [d, d], otherwise, of one run; [d, m], its draws from a component */
  /* Per run, for moments: */
  double *share; /* [n]: of a component in the weights so far */
  double *mean, *covariance; /* [d, n], [d, d, n]: of a component */
};

Status mixture_exact_create(Arena *memory, const Mixture *prior, int runs, MixturePosterior **out);
Status mixture_approximate_create(Arena *memory, const Mixture *prior, int runs, MixtureOptions options,
                                  MixturePosterior **out);

/* Creates what both share; factors of at most `gathered` draws are gathered. */
Status mixture_posterior_begin(Arena *memory, const MixturePosteriorOps *ops, const Mixture *prior, int runs,
                               int gathered, MixturePosterior *out);
/* Returns where component c of an array[C, rows, n] begins. */
static inline double *mixture_component(double *array, int c, int rows, int lanes) {
  return array + (ptrdiff_t)c * rows * lanes;
}
/* Draws component[m], each by its weight in the run, with uniform[m]. */
void mixture_posterior_pick(MixturePosterior *self, const HistoryView *runs, const HistoryView *view);
/* Copies to[rows, m] from what the component of each draw has in its run: `rows` rows of an array[C, every,
 * n], in which `from` is the first of them for component 0. */
void mixture_posterior_gather_rows(const MixturePosterior *self, int parts, int lanes, int every, int rows,
                                   const double *from, double *to);
/* Gathers own_whitened and, where mixture_posterior_solve needs it, own_factor. */
void mixture_posterior_gather(MixturePosterior *self, const HistoryView *runs, const HistoryView *view);
void mixture_posterior_gather_factors(MixturePosterior *self, const HistoryView *runs,
                                      const HistoryView *view);
/* Computes draw = L^-T (L^-1 h + shrink z) from draw = z, standard normal: N(P^-1 h, P^-1). */
void mixture_posterior_solve(MixturePosterior *self, const HistoryView *runs, const HistoryView *view);
/* Does all of this: draws from the Gaussians themselves. */
void mixture_posterior_draw(MixturePosterior *self, const HistoryView *runs, const HistoryView *view,
                            RngLanes *rng);

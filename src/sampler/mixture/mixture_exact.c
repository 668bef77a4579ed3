/* The posterior of a mixture with a conjugate likelihood: the evidence of the history is shared by all
 * components, and the posterior under each is a Gaussian. */
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/linalg/linalg_factor.h"
#include "core/tiling.h"
#include "model/mixture/mixture_evidence.h"
#include "sampler/mixture/mixture_posterior_internal.h"

typedef struct {
  MixturePosterior common;
  EvidenceLanes evidence; /* of n runs */
} MixtureExact;

static void find_exact(MixturePosterior *common, const HistoryView *runs, int64_t *fallbacks) {
  const MixtureExact *self = (const MixtureExact *)common;
  const int d = common->prior->d, lanes = runs->lanes;
  (void)fallbacks; /* jitters are all that can happen */
  history_evidence(runs, self->evidence.precision, self->evidence.vector);
  for (int c = 0; c < common->prior->components; c++) {
    const Conditioned under = {.factor = mixture_component(common->factor, c, d * d, lanes),
                               .whitened = mixture_component(common->whitened, c, d, lanes),
                               .log_weight = mixture_component(common->log_weight, c, 1, lanes),
                               .common = common->common,
                               .jitters = common->jitters};
    history_condition(runs, self->evidence, common->prior, c, common->constant[c], &under);
  }
}

static const MixturePosteriorOps EXACT = {.find = find_exact, .draw = mixture_posterior_draw};

Status mixture_exact_create(Arena *memory, const Mixture *prior, int runs, MixturePosterior **out) {
  MixtureExact *self;
  ALLOCATE(memory, self, 1);
  *out = &self->common;
  const int gathered = prior->d > LINALG_BATCH_DIMENSION && runs < CHUNK_LANES ? runs : CHUNK_LANES;
  TRY(mixture_posterior_begin(memory, &EXACT, prior, runs, gathered, &self->common));
  const size_t d = (size_t)prior->d, n = (size_t)self->common.most;
  ALLOCATE(memory, self->evidence.precision, d * d * n);
  ALLOCATE(memory, self->evidence.vector, d * n);
  return STATUS_OK;
}

void mixture_posterior_evidence_shared(MixturePosterior *self, const History *history, int run, int lanes,
                                       const double *b, double *whitened, double *log_evidence) {
  const Mixture *prior = self->prior;
  const int d = prior->d;
  const double unit = 0.5 * d * log(2 * M_PI); /* which the normalisers of the prior contain */
  const HistoryView view = history_view(history, 1, run, 1);
  ASSERT(self->ops == &EXACT);
  find_exact(self, &view, NULL);
  for (int c = 0; c < prior->components; c++) {
    const double *factor = mixture_component(self->factor, c, d * d, 1);
    double *own = log_evidence + (ptrdiff_t)c * lanes;
    lanes_repeat(d, lanes, mixture_information(prior, c), whitened);
    lanes_add((size_t)d * (size_t)lanes, 1, b, whitened);
    linalg_factor_forward_shared(d, lanes, factor, whitened);
    mixture_evidence_weigh_shared(d, lanes, self->constant[c], factor, whitened, own);
    for (int n = 0; n < lanes; n++) own[n] += unit;
  }
}

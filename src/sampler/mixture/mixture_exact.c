/* The posterior of a mixture with a conjugate likelihood: the evidence of the history is shared by all
 * components, and the posterior under each is a Gaussian. */
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
  TRY(mixture_posterior_begin(memory, &EXACT, prior, runs, &self->common));
  const size_t d = (size_t)prior->d, n = (size_t)self->common.most;
  ALLOCATE(memory, self->evidence.precision, d * d * n);
  ALLOCATE(memory, self->evidence.vector, d * n);
  return STATUS_OK;
}

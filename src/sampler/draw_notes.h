/* What a sampler knows about the draws of a run, besides the draws. */
#pragma once

#include <math.h>

/* NAN: not known. */
typedef struct {
  double ess; /* effective sample size behind the draws */
  double distinct; /* share of the draws that are no copies of one another */
  double calls; /* evaluations of the prior's denoiser per draw; a product with its Jacobian counts as one */
  double log_evidence; /* log marginal likelihood, as in sampler_marginal */
  double log_evidence_error; /* its standard error */
} DrawNotes;

static const DrawNotes DRAW_NOTES_NONE = {
    .ess = NAN, .distinct = NAN, .calls = NAN, .log_evidence = NAN, .log_evidence_error = NAN};

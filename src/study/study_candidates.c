#include "study/study_candidates.h"

#include "problem/problem.h"
#include "study/study_problem.h"

#include <string.h>

const struct Candidate candidates[CANDIDATES] = {
    {"gaussian", "mixts"}, {"mixture", "mixts"}, {"denoiser", "localised"}, {"diffusion", "twisted"}};

/* Returns how a candidate is fitted. If no steps are given, the networks of a chain are trained for eight
 * times the default of their family: draws by twisted then come closer if theta is on a thin surface, and the
 * denoiser still takes longer. */
static PriorFit belief_candidate_fit(const PriorFit *fit, int candidate) {
  enum { CHAIN_STEPS = 12000 };
  PriorFit own = *fit;
  own.components = 0;
  if (fit->steps == 0 && candidate == CANDIDATE_CHAIN) own.steps = CHAIN_STEPS;
  return own;
}

static void belief_candidates_describe(const PriorFit *fit, FILE *out) {
  for (int c = 0; c < CANDIDATES; c++) {
    const PriorFit own = belief_candidate_fit(fit, c);
    fprintf(out, "%s with %s ", candidates[c].family, candidates[c].sampler);
    prior_find(candidates[c].family)->describe_fit(&own, out);
  }
}

static size_t belief_candidates_network(const PriorFit *fit, int d) {
  const PriorFit own = study_candidates_fit(fit, CANDIDATES - 1, d);
  return prior_find(candidates[CANDIDATES - 1].family)->network_size(&own, d);
}

const PriorOps prior_auto = {.name = "auto",
                             .summary = "the family whose posterior draws are best on held-out tasks",
                             .reference = "Gneiting and Raftery 2007 (energy score)",
                             .able = PRIOR_CHAIN | PRIOR_DENOISER, /* what at least one of them can do */
                             .describe_fit = belief_candidates_describe,
                             .network_size = belief_candidates_network};

const PriorOps *study_candidates_family(const char *name) {
  return strcmp(name, prior_auto.name) == 0 ? &prior_auto : prior_find(name);
}

PriorFit study_candidates_fit(const PriorFit *fit, int candidate, int d) {
  PriorFit settled = belief_candidate_fit(fit, candidate);
  prior_settle(prior_find(candidates[candidate].family), &settled, d);
  return settled;
}

int study_candidates_steps(const PriorOps *family, const PriorFit *fit, int d) {
  int most = fit->steps;
  if (family != &prior_auto) return most;
  for (int c = 0; c < CANDIDATES; c++) {
    const PriorFit own = study_candidates_fit(fit, c, d);
    if (own.steps > most) most = own.steps;
  }
  return most;
}

int study_candidates_sizes(const Config *setting, const Problem *problem, int size[CANDIDATE_SIZES]) {
  const int64_t *sizes;
  const int count = config_ints(setting, "problem.sample_sizes", &sizes);
  const int rounds = (int)config_int(setting, "problem.rounds");
  if (!config_is(setting, "study", "posterior")) {
    size[0] = rounds < 10 ? 1 : rounds / 10;
    size[1] = rounds < 2 ? 1 : rounds / 2;
    return size[1] > size[0] ? 2 : 1;
  }
  if (count == 0) {
    size[0] = problem->arms;
    return 1;
  }
  const int used = count < CANDIDATE_SIZES ? count : CANDIDATE_SIZES;
  for (int i = 0; i < used; i++) size[i] = (int)sizes[used == 1 ? 0 : i * (count - 1) / (used - 1)];
  return used;
}

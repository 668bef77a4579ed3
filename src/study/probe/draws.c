/* Whether the draws behind the choices are where the posterior is (sampler/check/draws_check.h): the columns
 * draws_offset and draws_spread of a run. */
#include "sampler/check/draws_check.h"
#include "study/probes.h"

static Status probe_draws_create(Arena *memory, const Simulation *simulation, void **state) {
  const Policy *policy = &simulation->policy;
  DrawsCheck *check;
  if (!policy->theta || simulation->probability) return STATUS_OK; /* the choice is not that of one draw */
  TRY(draws_check_create(memory, policy->sampler, &simulation->history, &check));
  *state = check;
  return STATUS_OK;
}

/* Adds the draws of round k, the first of which are from the prior. */
static Status probe_draws_measure(const Probe *probe, int k) {
  const Simulation *simulation = probe->simulation;
  const Columns *columns = &simulation->run->result->columns;
  if (k == 1) return STATUS_OK;
  draws_check_add(probe->state, &simulation->history, 1, simulation->policy.theta);
  draws_check_means(probe->state, simulation->world.runs, columns->draws_offset, columns->draws_spread);
  return STATUS_OK;
}

const ProbeOps probe_draws = {
    .create = probe_draws_create, .measure = {[AFTER_CHOICE] = probe_draws_measure}, .sparse = true};

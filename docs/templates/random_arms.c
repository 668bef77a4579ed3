/* The random_arms study: how well a policy chooses if it learns from arms that were played at random (pure
 * exploration; Bubeck, Munos and Stoltz 2011). Before each observation the policy says which arm it would
 * take; the curve is the expected regret of that arm. */
#include "problem/world.h"
#include "study/simulation.h"
#include "study/studies.h"

static Status study_random_arms_run(const TaskRun *run) {
  SCRATCH_ARENA(memory);
  SCOPED(Simulation, simulation, simulation_destroy);
  const RngKey key = rng_key(run->study->seed, RNG_HISTORY);
  const int rounds = run->problem->rounds;
  World *world = &simulation.world;
  TRY(simulation_create(&memory, run, false, &simulation));
  timer_start(&simulation.timer);
  for (int k = 1; k <= rounds; k++) {
    simulation_advance(&simulation, k);
    TRY(simulation_choose(&simulation));
    world_play(world, simulation.arm, simulation.phi, simulation.reward, simulation.regret);
    for (int b = 0; b < world->runs; b++) {
      Rng rng = {.key = key, .run = world->first_run + (uint32_t)b, .round = world->round};
      study_result_values(run->result, 0, b)[k - 1] = simulation.regret[b];
      simulation.arm[b] = (int)rng_index(&rng, (uint64_t)run->problem->arms);
    }
    world_play(world, simulation.arm, simulation.phi, simulation.reward, simulation.regret);
    simulation_learn(&simulation, simulation.arm, simulation.phi, simulation.reward);
    if (!core_tick_goes_on(run->tick, (double)k / rounds))
      return status_set(STATUS_STOPPED, "stopped after %d of %d observations", k, rounds);
  }
  timer_stop(&simulation.timer);
  study_result_set_seconds(simulation_seconds(&simulation), run->result);
  return STATUS_OK;
}

static int study_random_arms_points(const Config *setting) {
  return (int)config_int(setting, "problem.rounds");
}

/* Returns the number of observations before a choice. */
static double study_random_arms_axis_value(const Config *setting, const Problem *problem, int point) {
  (void)problem;
  (void)setting;
  return point;
}

static const StudyCurve curves[] = {
    {.name = "simple_regret", .long_name = "expected regret of the arm that the policy would take"},
    {.name = NULL}};

const StudyOps study_random_arms = {.name = "random_arms",
                                    .summary = "policies that learn from arms played at random",
                                    .reference = "Bubeck et al. (2011)",
                                    .figure = "ablation.py",
                                    .keys = "problem.rounds",
                                    .axis = "observations",
                                    .axis_long_name = "observations before the choice",
                                    .networks = true,
                                    .curves = curves,
                                    .points = study_random_arms_points,
                                    .points_key = "problem.rounds",
                                    .axis_value = study_random_arms_axis_value,
                                    .run = study_random_arms_run};

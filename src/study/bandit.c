/* The bandit study: full simulations of a contextual bandit, cumulative regret by round (DiffTS paper,
 * Section 6). */
#include "study/probes.h"
#include "study/studies.h"
#include "study/study_rounds.h"

/* The curves, and what measures each. */
enum {
  REGRET,
#define BANDIT_PLACE(name, text) PLACE_##name,
  PROBE_LIST(BANDIT_PLACE, BANDIT_PLACE, BANDIT_PLACE)
#undef BANDIT_PLACE
      CURVES
};

static const StudyCurve curves[CURVES + 1] = {
    [REGRET] = {.name = "regret", .long_name = "cumulative expected regret", .tails = true},
#define BANDIT_ASKED(is, text) [PLACE_##is] = {.name = #is, .long_name = text, .metric = #is},
#define BANDIT_WORLD(is, text)                                                                               \
  [PLACE_##is] = {.name = #is, .long_name = text, .metric = #is, .shared = true, .of_world = true},
#define BANDIT_EVENT(is, text)                                                                               \
  [PLACE_##is] = {.name = #is, .long_name = text, .unpublished = true, .every = true},
    PROBE_LIST(BANDIT_ASKED, BANDIT_WORLD, BANDIT_EVENT)
#undef BANDIT_ASKED
#undef BANDIT_WORLD
#undef BANDIT_EVENT
};

static const ProbeOps *const probes[CURVES] = {[REGRET] = &probe_regret,
#define BANDIT_PROBE(name, text) [PLACE_##name] = &probe_##name,
                                               PROBE_LIST(BANDIT_PROBE, BANDIT_PROBE, BANDIT_PROBE)
#undef BANDIT_PROBE
};

/* Returns what measures curve number `c` of a study. */
static const ProbeOps *study_bandit_probe(const Study *study, int c) {
  return probes[study->curves[c] - curves];
}

/* Returns whether any of the curves needs the probabilities of arms. */
static bool study_bandit_weighs(const Study *study) {
  bool weighs = false;
  for (int c = 0; c < study->curve_count; c++) weighs |= study_bandit_probe(study, c)->weighs;
  return weighs;
}

static Status study_bandit_run(const TaskRun *run) {
  SCRATCH_ARENA(memory);
  SCOPED(Simulation, simulation, simulation_destroy);
  const Study *study = run->study;
  const Task *task = run->task;
  Feedback feedback;
  TRY(simulation_create(&memory, run, study_bandit_weighs(study) ? RULE_WEIGHS : RULE_CHOOSES, &simulation));
  TRY(feedback_create(&memory, run->setting, run->problem, task->first_run, task->runs, &feedback));
  simulation.feedback = &feedback;
  for (int c = 0; c < study->curve_count; c++) {
    if (run->result->has_shared && study->curves[c]->shared) continue;
    TRY(simulation_add_probe(&memory, study_bandit_probe(study, c), c, NULL, &simulation));
  }
  TRY(simulation_add_probe(&memory, &probe_draws, -1, NULL, &simulation));
  TRY(simulation_run(&simulation));
  study_result_set_seconds(simulation_seconds(&simulation), run->result);
  return STATUS_OK;
}

static Status study_bandit_check_setting(const Study *study, const Config *setting, const Problem *problem) {
  TRY(study_rounds_check(study->file, setting));
  for (int c = 0; c < study->curve_count; c++) {
    const ProbeOps *probe = study_bandit_probe(study, c);
    if (probe->check) TRY(probe->check(study, setting, problem));
  }
  return STATUS_OK;
}

static double study_bandit_axis_value(const Config *setting, const Problem *problem, int point) {
  (void)problem;
  return study_rounds_kept_at(setting, point);
}

const StudyOps study_bandit = {
    .name = "bandit",
    .summary = "contextual bandit simulations: cumulative regret by round",
    .reference = "DiffTS, Sections 5 and 6",
    .figure = "figure_diffts_2.py",
    .keys = "problem.rounds problem.drift feedback rounds_kept event_log metrics draws",
    .axis = "round",
    .axis_long_name = "round of the bandit",
    .believes = true,
    .networks = true,
    .drifts = true,
    .rewards_of = REWARDS_OF_ARMS,
    .curves = curves,
    .points = study_rounds_kept,
    .points_key = "rounds_kept",
    .axis_value = study_bandit_axis_value,
    .check_setting = study_bandit_check_setting,
    .run = study_bandit_run};

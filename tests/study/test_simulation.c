/* The loop of a bandit (study/simulation.h): at which moments probes measure, what they see there, and whose
 * time it is. */
#include "core/arena.h"
#include "harness.h"

#include "study/keys.h"
#include "study/simulation.h"

static TaskPriors no_priors = {.directory = ""};

enum { RUNS = 3, ROUNDS = 23, SEEN = 16 * ROUNDS };

/* What a probe has seen: one letter for each call, and the round. */
typedef struct {
  int count;
  char moment[SEEN];
  int round[SEEN], recorded[SEEN]; /* recorded: rounds in the history */
  double ended; /* clock_cpu when a probe that takes long ended */
  bool late; /* the clock of the policy started before that */
} Seen;

static Status note(const Probe *probe, int k, char moment) {
  Seen *seen = probe->state;
  CU_ASSERT_FATAL(seen->count < SEEN);
  seen->moment[seen->count] = moment;
  seen->round[seen->count] = k;
  seen->recorded[seen->count++] = probe->simulation->history.rounds;
  seen->late |= probe->simulation->timer.since < seen->ended;
  return STATUS_OK;
}

static Status note_before_choice(const Probe *probe, int k) { return note(probe, k, 'b'); }
static Status note_choice(const Probe *probe, int k) {
  const World *world = &probe->simulation->world;
  for (int b = 0; b < RUNS; b++) {
    const double *mean = world->mean + b;
    const int arm = probe->simulation->arm[b];
    CHECK_NEAR(probe->simulation->regret[b], mean[world->best[b] * RUNS] - mean[arm * RUNS], 1e-12);
  }
  return note(probe, k, 'c');
}
static Status note_learning(const Probe *probe, int k) { return note(probe, k, 'l'); }
static Status note_round(const Probe *probe, int k) { return note(probe, k, 'r'); }

static Status take_long(const Probe *probe, int k) {
  Seen *seen = probe->state;
  (void)k;
  const double start = clock_cpu();
  while (clock_cpu() - start < 1e-4) continue;
  seen->ended = clock_cpu();
  return STATUS_OK;
}

static Status leave_unknown(Arena *memory, const Simulation *simulation, void **state) {
  (void)memory;
  (void)simulation;
  (void)state;
  return STATUS_OK;
}

static const ProbeOps everything = {.measure = {[BEFORE_CHOICE] = note_before_choice,
                                                [AFTER_CHOICE] = note_choice,
                                                [AFTER_LEARNING] = note_learning,
                                                [AFTER_ROUND] = note_round},
                                    .quick = true};
static const ProbeOps sparse = {.measure = {[AFTER_ROUND] = note_round}, .sparse = true};
static const ProbeOps slow = {.measure = {[BEFORE_CHOICE] = take_long, [AFTER_CHOICE] = take_long}};
static const ProbeOps unknown = {.create = leave_unknown, .measure = {[AFTER_ROUND] = note_round}};

/* Simulates a block under these keys, with all probes. */
static void simulate(const char *keys, Seen *all, Seen *few) {
  SCRATCH_ARENA(memory);
  SCOPED(Study, study, study_destroy);
  SCOPED(TaskRun, run, study_task_run_destroy);
  SCOPED(TaskResult, result, study_result_destroy);
  SCOPED(Simulation, simulation, simulation_destroy);
  StudyFile *file;
  Feedback feedback;
  char text[512];
  snprintf(text, sizeof text,
           "name: t\nruns: %d\npolicies: [ts]\nproblem: {theta: gaussian, dimension: 2, arms: 4, rounds: "
           "%d}\n%s\n",
           RUNS, ROUNDS, keys);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(study_create(file, &study));
  const Task task = study_task(&study, 0);
  CHECK_OK(study_result_create(&study, &task, &result));
  CHECK_OK(study_task_run_create(&study, &task, &no_priors, &run));
  run.result = &result;
  CHECK_OK(simulation_create(&memory, &run, false, &simulation));
  CHECK_OK(feedback_create(&memory, run.setting, run.problem, 0, RUNS, &feedback));
  simulation.feedback = &feedback;
  CHECK_OK(simulation_add_probe(&memory, &slow, -1, all, &simulation));
  CHECK_OK(simulation_add_probe(&memory, &everything, -1, all, &simulation));
  CHECK_OK(simulation_add_probe(&memory, &sparse, -1, few, &simulation));
  CU_ASSERT_EQUAL(simulation.probe_count, 3);
  CHECK_OK(simulation_add_probe(&memory, &unknown, -1, NULL, &simulation));
  CU_ASSERT_EQUAL(simulation.probe_count, 3); /* nothing is known, so nothing is measured */
  CHECK_OK(simulation_run(&simulation));
}

static void test_moments(void) {
  Seen all = {0}, few = {0};
  simulate("", &all, &few);
  CU_ASSERT_EQUAL(all.count, 4 * ROUNDS);
  for (int i = 0; i < all.count; i++) {
    CU_ASSERT_EQUAL(all.moment[i], "bclr"[i % 4]);
    CU_ASSERT_EQUAL(all.round[i], 1 + i / 4);
    CU_ASSERT_EQUAL(all.recorded[i], i / 4 + (i % 4 >= 2)); /* learned from after the choice */
  }
  CU_ASSERT_FALSE(all.late);
  static const int rounds[] = {1, 2, 5, 10, 20, ROUNDS};
  CU_ASSERT_EQUAL_FATAL(few.count, 6);
  for (int i = 0; i < few.count; i++) CU_ASSERT_EQUAL(few.round[i], rounds[i]);
}

/* Checks that batches of 4 rounds are learned from one after the other, at the end of the fourth. */
static void test_batches(void) {
  Seen all = {0}, few = {0};
  int at = 0;
  simulate("feedback: {batch: 4}", &all, &few);
  for (int k = 1; k <= ROUNDS; k++) {
    CU_ASSERT_EQUAL(all.moment[at++], 'b');
    CU_ASSERT_EQUAL(all.moment[at++], 'c');
    if (k % 4 == 0)
      for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(all.recorded[at], k - 3 + i);
        CU_ASSERT_EQUAL(all.moment[at++], 'l');
      }
    CU_ASSERT_EQUAL(all.moment[at++], 'r');
  }
  CU_ASSERT_EQUAL(at, all.count);
}

int main(void) {
  CU_TestInfo tests[] = {
      {"moments of a round", test_moments}, {"rewards in batches", test_batches}, CU_TEST_INFO_NULL};
  return harness_run("simulation", tests);
}

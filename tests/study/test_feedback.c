/* Arrival of rewards: constant delays, batches, and geometric delays against their distribution; what is
 * dropped never arrives, and nothing arrives twice. */
#include "harness.h"

#include "study/feedback.h"
#include "study/keys.h"
#include "study/study.h"
#include "study/study_problem.h"

#include <math.h>

enum { RUNS = 64, D = 2, ROUNDS = 4000 };

static Feedback make(Arena *memory, Problem *problem, const char *keys) {
  StudyFile *file;
  Feedback feedback;
  char text[256];
  snprintf(text, sizeof text, "name: t\npolicies: [ts]\nproblem: {rounds: %d}\nfeedback: {%s}\n", ROUNDS,
           keys);
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(study_problem_create(file->settings[0], problem));
  CHECK_OK(feedback_create(memory, file->settings[0], problem, 3, RUNS, &feedback));
  config_study_free(file);
  return feedback;
}

/* Hands in the observation of round k: its number is in arm, phi and y, with the run. */
static int play(Feedback *feedback, int k) {
  int arm[RUNS];
  double phi[D * RUNS], y[RUNS];
  for (int b = 0; b < RUNS; b++) arm[b] = k, phi[b] = k, phi[RUNS + b] = -b - 1, y[b] = 2 * k;
  return feedback_exchange(feedback, k, arm, phi, y);
}

/* Returns the round whose reward reaches run b; 0: none. */
static int round_of(const FeedbackSlot *slot, int b) {
  const int k = slot->arm[b] < 0 ? 0 : slot->arm[b];
  CU_ASSERT_EQUAL(slot->phi[b], k);
  CU_ASSERT_EQUAL(slot->phi[RUNS + b], k > 0 ? -b - 1 : 0);
  CU_ASSERT_EQUAL(slot->y[b], 2 * k);
  return k;
}

static void test_constant(void) {
  static const struct {
    const char *keys;
    int delay, batch;
  } cases[] = {{"delay: 0", 0, 1}, {"delay: 7", 7, 1}, {"batch: 10", 0, 10}, {"batch: 10, delay: 3", 3, 10}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    SCRATCH_ARENA(memory);
    Problem problem;
    Feedback feedback = make(&memory, &problem, cases[c].keys);
    int next = 1 - cases[c].delay;
    for (int k = 1; k <= 100; k++) {
      const int slots = play(&feedback, k);
      CU_ASSERT_EQUAL(slots, k % cases[c].batch == 0 ? cases[c].batch : 0);
      for (int i = 0; i < slots; i++, next++)
        for (int b = 0; b < RUNS; b++) CU_ASSERT_EQUAL(round_of(&feedback.slots[i], b), next > 0 ? next : 0);
    }
    problem_destroy(&problem);
  }
}

/* Checks P(delay = t) = (1 - p)^t p with p = 1 / (1 + mean): chi-squared over 20 cells and the rest, 20
 * degrees of freedom, below its 1 - 1e-6 quantile 66.7; the mean within 5 standard errors. Whatever was not
 * dropped arrives once. */
static void test_geometric(void) {
  enum { MEAN = 6, CELLS = 21, DROPPED = 4 };
  static int count[CELLS], seen[ROUNDS + 1][RUNS];
  SCRATCH_ARENA(memory);
  Problem problem;
  Feedback feedback = make(&memory, &problem, "delay: 6, delay_distribution: geometric, drop: 0.25");
  double sum = 0, total = 0, chi = 0;
  const double p = 1.0 / (1 + MEAN);
  for (int k = 1; k <= ROUNDS; k++) {
    CU_ASSERT_EQUAL(play(&feedback, k), 1);
    for (int b = 0; b < RUNS; b++) {
      const int round = round_of(&feedback.slots[0], b), delay = k - round;
      if (round == 0) continue;
      CU_ASSERT_EQUAL(seen[round][b]++, 0);
      count[delay < CELLS ? delay : CELLS - 1]++;
      sum += delay, total++;
    }
  }
  CHECK_NEAR(total / (ROUNDS * RUNS), 0.75, 5 * sqrt(0.75 * 0.25 / (ROUNDS * RUNS)) + 1e-3);
  CHECK_NEAR(sum / total, MEAN, 5 * sqrt((1 - p) / (p * p) / total));
  for (int t = 0; t < CELLS; t++) {
    const double expected = total * pow(1 - p, t) * (t < CELLS - 1 ? p : 1);
    chi += (count[t] - expected) * (count[t] - expected) / expected;
  }
  CU_ASSERT_TRUE(chi < 66.7);
  problem_destroy(&problem);
}

int main(void) {
  CU_TestInfo tests[] = {{"constant delays and batches", test_constant},
                         {"geometric delays, dropped rewards", test_geometric},
                         CU_TEST_INFO_NULL};
  return harness_run("feedback", tests);
}

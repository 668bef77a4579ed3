/* The queue that ranks take tasks from: every task to one rank, once; a slow policy is found out and brought
 * forward; what failed and who asked to stop is known to all. */
#include "mpi_harness.h"
#include "parallel/queue.h"
#include "parallel/schedule.h"
#include "study/keys.h"

#include <stdlib.h>

/* Two settings of 3 policies with 20 blocks each: 120 tasks. */
static Study make_study(void) {
  static const char text[] = "{name: t, runs: 200, block: 10, study: bandit, policies: [ts, linucb, "
                             "egreedy], problem: {rounds: 5}, "
                             "sweep: {problem.arms: [3, 30]}}\n";
  StudyFile *file;
  Study study;
  CHECK_OK(config_study_parse("test", text, &study_schema, 0, NULL, &file));
  CHECK_OK(study_create(file, &study));
  return study;
}

typedef struct {
  Study study;
  int *list, count;
  double *cost;
  Queue *queue;
} Case;

/* All tasks but every seventh, which was done before. */
static void make_case(Case *c) {
  *c = (Case){.study = make_study()};
  const int tasks = c->study.task_count;
  c->list = calloc((size_t)tasks, sizeof *c->list);
  c->cost = calloc((size_t)tasks, sizeof *c->cost);
  for (int i = 0; i < tasks; i++) {
    const Task task = study_task(&c->study, i);
    c->cost[i] = c->study.ops->cost(&c->study, &task);
    if (i % 7 != 0) c->list[c->count++] = i;
  }
  CHECK_OK(queue_create(&ranks, &c->study, c->count, c->list, c->cost, &c->queue));
}

static void free_case(Case *c) {
  parallel_barrier();
  queue_destroy(c->queue);
  study_destroy(&c->study);
  free(c->list);
  free(c->cost);
}

static void test_every_task_once(void) {
  Case c;
  make_case(&c);
  const int tasks = c.study.task_count;
  double taken[120] = {0};
  int64_t failed = 0;
  for (int task; (task = queue_take(c.queue)) >= 0;) {
    taken[task]++;
    queue_finish(c.queue, task, task % 10 == 1, 1e-3);
  }
  queue_look(c.queue);
  parallel_barrier();
  for (int i = 0; i < tasks; i++) {
    CHECK_NEAR(parallel_sum(taken[i]), i % 7 != 0, 0);
    failed += i % 7 != 0 && i % 10 == 1;
  }
  const QueueState state = queue_look(c.queue);
  CU_ASSERT_EQUAL(state.failed, failed);
  CU_ASSERT_EQUAL(state.done, c.count - failed);
  CU_ASSERT_TRUE(!state.stopped);
  free_case(&c);
}

static void test_share_of_the_work(void) {
  Case c;
  make_case(&c);
  int taken = 0;
  for (int task; (task = queue_take(c.queue)) >= 0; taken++)
    queue_finish(c.queue, task, false, 2 * c.cost[task]);
  queue_look(c.queue);
  parallel_barrier();
  CHECK_NEAR(queue_look(c.queue).share, 1, 1e-9); /* counters have 1e12 steps */
  if (taken) CHECK_NEAR(queue_expect(c.queue, c.list[0]), 2 * c.cost[c.list[0]], 1e-3 * c.cost[c.list[0]]);
  free_case(&c);
}

static void test_stop_reaches_all(void) {
  Case c;
  make_case(&c);
  CU_ASSERT_TRUE(!queue_look(c.queue).stopped);
  parallel_barrier();
  if (ranks.rank == ranks.size - 1) queue_stop(c.queue), queue_look(c.queue);
  parallel_barrier();
  CU_ASSERT_TRUE(queue_look(c.queue).stopped);
  free_case(&c);
}

/* Three policies of which the model says 1, 2, 3 units a task, though they take 30, 2, 1 s; two equal workers
 * without any delay. Each is begun once; from then on the slow policy comes first, and the end is at most one
 * short task later than half of all work. */
static void test_slow_policy_comes_forward(void) {
  enum { LINES = 3, TASKS = 60, WORKERS = 2 };
  static const double model[LINES] = {1, 2, 3}, truth[LINES] = {30, 2, 1};
  ScheduleLine lines[LINES] = {{.next = 1}, {.next = 2}, {.next = 3}};
  double free_at[WORKERS] = {0}, work = 0;
  int left[LINES] = {TASKS, TASKS, TASKS}, running[WORKERS] = {-1, -1}, order[LINES * TASKS];
  for (int i = 0; i < LINES * TASKS; i++) {
    const int worker = free_at[1] < free_at[0];
    const int before = running[worker];
    if (before >= 0) lines[before].cost += model[before], lines[before].seconds += truth[before];
    const int line = schedule_choose(LINES, lines, worker);
    CU_ASSERT_FATAL(line >= 0);
    order[i] = running[worker] = line;
    free_at[worker] += truth[line], work += truth[line];
    lines[line].begun = true;
    if (--left[line] == 0) lines[line].next = 0;
  }
  CU_ASSERT_EQUAL(schedule_choose(LINES, lines, 0), -1);
  CU_ASSERT_EQUAL(order[0], 0);
  CU_ASSERT_EQUAL(order[1], 1); /* the second worker begins with another */
  for (int line = 0; line < LINES; line++) CU_ASSERT_EQUAL(left[line], 0);
  CU_ASSERT_TRUE(fmax(free_at[0], free_at[1]) <= work / WORKERS + 2);
}

int main(int argc, char **argv) {
  CU_TestInfo tests[] = {{"every task goes to one rank, once", test_every_task_once},
                         {"the share of the work that is done", test_share_of_the_work},
                         {"a stop reaches all ranks", test_stop_reaches_all},
                         {"a slow policy comes forward", test_slow_policy_comes_forward},
                         CU_TEST_INFO_NULL};
  return mpi_harness_main(argc, argv, "queue", tests);
}

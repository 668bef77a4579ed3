/* The queue that ranks take tasks from: every task goes to one rank, once, also from the parts of other
 * groups; a slow policy is detected and moved forward; short tasks come in batches; all ranks know what
 * failed and who asked to stop. */
#include "harness_mpi.h"
#include "parallel/tasks/queue.h"
#include "parallel/tasks/worklist.h"
#include "study_text.h"

#include <stdlib.h>

enum { TASKS = 120 }; /* two settings of 3 policies with 20 blocks each */

static Study make_study(void) {
  static const char text[] = "{name: t, runs: 200, block: 10, study: bandit, policies: [ts, linucb, "
                             "egreedy], problem: {rounds: 5}, "
                             "sweep: {problem.arms: [3, 30]}}\n";
  return study_text_study(text);
}

typedef struct {
  Study study;
  int *list, count;
  double *size;
  Queue *queue;
} Case;

/* Makes all tasks except every seventh, which was done before. */
static void make_case(int groups, Case *c) {
  *c = (Case){.study = make_study()};
  const int tasks = c->study.task_count;
  c->list = calloc((size_t)tasks, sizeof *c->list);
  c->size = calloc((size_t)tasks, sizeof *c->size);
  for (int i = 0; i < tasks; i++) {
    const Task task = study_task(&c->study, i);
    c->size[i] = study_task_size(&c->study, &task);
    if (i % 7 != 0) c->list[c->count++] = i;
  }
  CHECK_OK(queue_create(&c->study, groups, c->count, c->list, c->size, &c->queue));
}

static void free_case(Case *c) {
  parallel_barrier();
  queue_destroy(c->queue);
  study_destroy(&c->study);
  free(c->list);
  free(c->size);
}

/* Takes tasks until `most` are taken or none is left: taken[i] counts how often task i was taken. */
static void take_tasks(const Case *c, int most, double *taken) {
  for (int task, i = 0; i < most && (task = queue_take(c->queue)) >= 0; i++) {
    taken[task]++;
    queue_finish(c->queue, task, task % 10 == 1, 1e-3);
  }
  queue_look(c->queue);
}

/* Checks that over all ranks every task of the list was taken once, and that the counters say what became of
 * it. */
static void check_all_taken(const Case *c, const double *taken) {
  int64_t failed = 0;
  parallel_barrier();
  for (int i = 0; i < c->study.task_count; i++) {
    CHECK_NEAR(parallel_sum(taken[i]), i % 7 != 0, 0);
    failed += i % 7 != 0 && i % 10 == 1;
  }
  const QueueState state = queue_look(c->queue);
  CU_ASSERT_EQUAL(state.failed, failed);
  CU_ASSERT_EQUAL(state.done, c->count - failed);
  CU_ASSERT_TRUE(!state.stopped);
}

static void test_every_task_once(void) {
  for (int groups = 1; groups <= parallel_size(); groups++) {
    Case c;
    make_case(groups, &c);
    double taken[TASKS] = {0};
    take_tasks(&c, TASKS, taken);
    check_all_taken(&c, taken);
    free_case(&c);
  }
}

/* Checks that every part goes to one group, in order, however many groups ask. */
static void test_parts(void) {
  Case c;
  make_case(1, &c);
  double taken[TASKS] = {0};
  int last = -1;
  for (int part; (part = queue_take_part(c.queue)) < TASKS; last = part) {
    CU_ASSERT_TRUE(part > last);
    taken[part]++;
  }
  for (int i = 0; i < TASKS; i++) CHECK_NEAR(parallel_sum(taken[i]), 1, 0);
  free_case(&c);
}

/* Checks late ranks: the last rank takes nearly all parts alone, and stops holding a batch if it has one; the
 * others start when it has gone. Then each finds nothing, in its own part or any other. */
static void test_late_ranks(void) {
  for (int groups = 1; groups <= parallel_size(); groups++) {
    Case c;
    make_case(groups, &c);
    double taken[TASKS] = {0};
    const bool is_last = parallel_rank() == parallel_size() - 1;
    if (is_last) take_tasks(&c, c.count - 5, taken);
    parallel_barrier();
    if (!is_last) take_tasks(&c, TASKS, taken);
    parallel_barrier();
    if (is_last) take_tasks(&c, TASKS, taken);
    CU_ASSERT_EQUAL(queue_take(c.queue), -1);
    check_all_taken(&c, taken);
    free_case(&c);
  }
}

static void test_share_of_the_work(void) {
  Case c;
  make_case(parallel_size(), &c);
  int mine = -1;
  for (int task; (task = queue_take(c.queue)) >= 0; mine = task)
    queue_finish(c.queue, task, false, 2 * c.size[task]);
  queue_look(c.queue);
  parallel_barrier(); /* a look during the report of another rank may see half of it */
  queue_look(c.queue);
  CHECK_NEAR(queue_share(c.queue), 1, 1e-9); /* counters have 1e12 steps */
  if (mine >= 0) CHECK_NEAR(queue_expect(c.queue, mine), 2 * c.size[mine], 1e-3 * c.size[mine]);
  free_case(&c);
}

static void test_stop_reaches_all(void) {
  Case c;
  make_case(parallel_size(), &c);
  CU_ASSERT_TRUE(!queue_look(c.queue).stopped);
  parallel_barrier();
  if (parallel_rank() == parallel_size() - 1) queue_stop(c.queue), queue_look(c.queue);
  parallel_barrier();
  CU_ASSERT_TRUE(queue_look(c.queue).stopped);
  free_case(&c);
}

/* Checks three policies that the model puts at 1, 2, 3 units per task, though they take 30, 2, 1 s; two equal
 * workers without any delay. Each policy is started once; from then on the slow one comes first, and the end
 * is at most one short task later than half of all work. */
static void test_slow_policy_comes_forward(void) {
  enum { LINES = 3, EACH = 60, WORKERS = 2 };
  static const double model[LINES] = {1, 2, 3}, truth[LINES] = {30, 2, 1};
  WorkLine lines[LINES] = {{.left = EACH, .next = 1}, {.left = EACH, .next = 2}, {.left = EACH, .next = 3}};
  double free_at[WORKERS] = {0}, work = 0;
  int running[WORKERS] = {-1, -1}, order[LINES * EACH];
  for (int i = 0; i < LINES * EACH; i++) {
    const int worker = free_at[1] < free_at[0];
    const int before = running[worker];
    if (before >= 0) lines[before].size += model[before], lines[before].seconds += truth[before];
    const int line = worklist_choose(LINES, lines, worker);
    CU_ASSERT_FATAL(line >= 0);
    order[i] = running[worker] = line;
    free_at[worker] += truth[line], work += truth[line];
    lines[line].begun = true;
    lines[line].left--;
  }
  CU_ASSERT_EQUAL(worklist_choose(LINES, lines, 0), -1);
  CU_ASSERT_EQUAL(order[0], 0);
  CU_ASSERT_EQUAL(order[1], 1); /* the second worker starts with another policy */
  for (int line = 0; line < LINES; line++) CU_ASSERT_EQUAL(lines[line].left, 0);
  CU_ASSERT_TRUE(fmax(free_at[0], free_at[1]) <= work / WORKERS + 2);
}

static void test_batches(void) {
  /* 0.1 s per unit of the first policy, so 0.2 s per task; with the other two, 300 s of work remain */
  const WorkLine lines[] = {{.left = 1000, .begun = true, .next = 2, .size = 10, .seconds = 1},
                            {.left = 50, .begun = true, .next = 1, .size = 2, .seconds = 4},
                            {.left = 0, .begun = true, .next = 1, .size = 1, .seconds = 9}};
  CU_ASSERT_EQUAL(worklist_batch(3, lines, 0, 10), 5); /* a second */
  CU_ASSERT_EQUAL(worklist_batch(3, lines, 0, 300), 2); /* half of the remaining second for each */
  CU_ASSERT_EQUAL(worklist_batch(3, lines, 0, 1500), 1);
  CU_ASSERT_EQUAL(worklist_batch(3, lines, 1, 10), 1); /* 2 s per task */
  WorkLine unknown = {.left = 1000, .begun = true, .next = 1e-6};
  CU_ASSERT_EQUAL(worklist_batch(1, &unknown, 0, 1), 1);
  unknown.size = 1, unknown.seconds = 1e-3, unknown.left = 2;
  CU_ASSERT_TRUE(worklist_batch(1, &unknown, 0, 1e-9) <= 2);
  /* Finished in less than a microsecond, the unit of the counters. */
  const WorkLine instant = {.left = 100, .begun = true, .next = 1, .size = 3};
  CU_ASSERT_EQUAL(worklist_batch(1, &instant, 0, 10), 5);
}

/* Checks that every group has ranks of its own and its part of a line, and that the parts make up the
 * line. */
static void test_groups(void) {
  for (int size = 1; size <= 5000; size += 613) {
    const int groups = worklist_groups(size);
    for (int r = 0, before = 0; r < size; r++) {
      const int home = worklist_group_of_rank(r, size, groups);
      CU_ASSERT_TRUE_FATAL(home == before || home == before + 1);
      before = home;
    }
    CU_ASSERT_EQUAL(worklist_group_of_rank(size - 1, size, groups), groups - 1);
    for (int count = 0; count < 9; count++) {
      int sum = 0;
      for (int g = 0; g < groups; g++) sum += worklist_part(count, g, groups);
      CU_ASSERT_EQUAL(sum, count);
    }
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"every task goes to one rank, once", test_every_task_once},
                         {"every part goes to one group, once", test_parts},
                         {"late ranks, and the parts of others", test_late_ranks},
                         {"the share of the work that is done", test_share_of_the_work},
                         {"a stop reaches all ranks", test_stop_reaches_all},
                         {"a slow policy comes forward", test_slow_policy_comes_forward},
                         {"how many tasks at once", test_batches},
                         {"groups and their parts", test_groups},
                         CU_TEST_INFO_NULL};
  return mpi_harness_main("queue", tests);
}

/* Studies: what is looped over, measured and stored. A study is a list of tasks, setting x policy x block of
 * runs; every task can be run anywhere, in any order, with the same bytes as result. */
#ifndef STUDY_STUDY_H
#define STUDY_STUDY_H

#include "io/config.h"
#include "policy/policy.h"
#include "study/belief.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Study Study;

/* One block of runs of one policy in one setting. */
typedef struct {
  int index; /* in the list of tasks: setting slowest, then policy, then block */
  int setting, policy;
  uint32_t first_run, replicate;
  int runs; /* B */
} Task;

typedef enum { RUN_NOT_RUN = 0, RUN_OK = 1, RUN_FAILED = 2 } RunStatus;

/* What a task gives. All arrays are owned and have room for `runs` and `points`. */
typedef struct {
  int runs, points;
  double *curves; /* [curve_count, runs, points] */
  double *seconds; /* [runs] CPU seconds of the block's simulation divided by its runs */
  int64_t *fallbacks; /* [runs] */
  RunStatus status; /* of the whole block */
  char message[512]; /* why it failed; empty otherwise */
} TaskResult;

/* A measured curve: one value for each run and point of the axis. */
typedef struct {
  const char *name, *long_name, *units;
  const char *metric; /* the word of the key `metrics` that asks for it; NULL: always there */
  bool unpaired; /* the same for all policies, so that a paired difference says nothing */
} StudyCurve;

/* Called between the rounds of a task; returns false to give the task up. */
typedef struct {
  bool (*tick)(void *context, double fraction_done);
  void *context;
} StudyTick;

typedef struct {
  const char *name, *summary, *reference;
  const char *figure; /* the script in analysis/ that draws the results */
  const char *axis, *axis_long_name; /* name of the last dimension and its coordinate */
  bool networks; /* theta of a policy may be the weights of a network */
  const StudyCurve *curves; /* ends with a NULL name; the first that a study has is the one in tables */
  int (*points)(const Config *setting);
  double (*axis_value)(const Config *setting, int point);
  /* OPTIONAL. Whether a setting and a policy make sense in this study: STATUS_INPUT with a sentence if not.
   */
  Status (*check_setting)(const Study *study, const Config *setting, const Problem *problem);
  Status (*check_policy)(const PolicyMethod *method, const Config *options);
  /* Floating-point operations of a task, roughly: only for ordering and estimates. */
  double (*cost)(const Study *study, const Task *task);
  /* Run one task into `result`, which has room. Errors belong to the task alone. */
  Status (*run)(const Study *study, const Task *task, const Prior *prior, StudyTick tick, TaskResult *result);
} StudyOps;

const StudyOps *study_kind(int index); /* registry; NULL ends */
const char *study_kind_name(int index);

struct Study {
  const StudyOps *ops;
  StudyFile *file; /* owned */
  const char *name;
  uint64_t seed;
  int64_t runs;
  const StudyCurve **curves; /* [curve_count], those that the study measures */
  int curve_count;
  int points; /* the largest number of points of any setting */
  Task *tasks; /* [task_count] */
  int task_count;
};

/* Take over `file`, check that every policy fits its prior in every setting (STATUS_INPUT otherwise), list
 * the tasks. The caller ends with study_destroy, also after an error. */
Status study_create(StudyFile *file, Study *out);
void study_destroy(Study *study);

/* The replicate (which learned prior) of a run: contiguous parts, as equal as can be. */
uint32_t study_replicate(const Study *study, int64_t run);
int study_replicates(const Study *study);

/* Whether `metrics` of the study has that word. */
bool study_measures(const Study *study, const char *metric);
/* Floating-point operations of one posterior draw, roughly: two for each weight of each stage's network where
 * the sampler needs a chain. The dimension is 2 where only the problem's file knows it. */
double study_draw_cost(const Study *study, const Task *task);
double study_dimension(const Config *setting);

Status task_result_create(const Study *study, const Task *task, TaskResult *out);
void task_result_destroy(TaskResult *result);

/* Run a task: make its prior from `directory` (where fitted priors are cached), then the study's own `run`. A
 * task that raises an error gives RUN_FAILED, NaN curves and a message; only lack of memory and unreadable
 * prior files are a Status. */
Status study_run_task(const Study *study, const Task *task, const char *directory, StudyTick tick,
                      TaskResult *result);

#endif

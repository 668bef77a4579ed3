/* Studies: what is looped over, measured and stored. A study is a list of tasks, setting x policy x block of
 * runs; every task can be run anywhere and in any order, and gives the same bytes. */
#pragma once

#include "policy/policy.h"
#include "study/columns.h"
#include "study/study_belief.h"
#include "study/study_runs.h"

#include <math.h>
#include <string.h>

typedef struct Study Study;

/* One block of runs of one policy in one setting. */
typedef struct {
  int index; /* in the list of tasks: setting slowest, then policy, then block */
  int setting, policy;
  uint32_t first_run, replicate;
  int runs; /* B */
  /* If not NULL, theta* is drawn from this prior instead of the problem's own distribution. Bandits only. */
  const Prior *world;
} Task;

/* What all tasks of a policy in a setting with one replicate depend on (study/study_names.h): the first
 * digits of a SHA-256. */
typedef struct {
  char digits[24];
} CellName;

/* The name of a task: of what it depends on, and its runs. Journals store these bytes. */
typedef struct {
  CellName cell;
  uint32_t first_run;
  int32_t runs;
} TaskName;

typedef enum { RUN_NOT_RUN = 0, RUN_OK = 1, RUN_FAILED = 2 } RunStatus;

/* The result of a task. All arrays are owned and have room for `runs` and `points`. */
typedef struct {
  Arena memory;
  int runs, points, rounds, along; /* of the task, points and rounds of its setting, study->along */
  size_t size; /* numbers in all curves */
  double *curves; /* [along, runs, points], then [curve_count - along, runs, rounds] */
  Columns columns; /* numbers of each run that are not curves */
  int recorded; /* columns, the first of the list, that were read from a record */
  bool has_shared; /* the shared curves are there before the task is run (study_result_share) */
  RunStatus status; /* of the whole block */
  char message[512]; /* why it failed; empty otherwise */
} TaskResult;

/* Returns the values of a curve in one run: [points], or [rounds] of a curve that has every round. */
static inline double *study_result_values(const TaskResult *result, int curve, int run) {
  const size_t runs = (size_t)result->runs, points = (size_t)result->points;
  if (curve < result->along) return result->curves + ((size_t)curve * runs + (size_t)run) * points;
  const size_t further = (size_t)(curve - result->along) * runs + (size_t)run;
  return result->curves + (size_t)result->along * runs * points + further * (size_t)result->rounds;
}

/* Where the tasks of a study that a process runs one after another find learned priors. The last one is kept,
 * since the next task mostly needs it, too. */
typedef struct {
  const char *directory; /* they are in its folder `priors` */
  /* Private. */
  Arena memory;
  Prior last;
  Task task; /* that had it */
  bool known; /* there is one */
} TaskPriors;

/* A measured curve: one value for each run and point of the axis. */
typedef struct {
  const char *name, *long_name; /* what is measured has no unit */
  const char *metric; /* the word of the key `metrics` that asks for it; NULL: always there */
  bool shared; /* the same for all policies: measured once, and a paired difference says nothing */
  bool of_world; /* shared, and stored without the dimension of policies */
  bool each; /* stored for each run alone, without statistics over runs */
  bool tails; /* quantiles over runs are stored as well as the mean */
  bool unpublished; /* not in the results, but used for what is made from finished tasks; last in the list */
  bool every; /* unpublished, with a value for each of problem.rounds instead of each point; after the others
               */
} StudyCurve;

/* A task that is run: its parts, and what they are run with. */
typedef struct {
  const Study *study;
  const Task *task;
  const Config *setting;
  const ConfigPolicy *policy;
  PolicyMethod method;
  const Problem *problem; /* of the setting */
  Belief belief; /* of the policy; its likelihood is set for any policy */
  const Prior *prior;
  Tick tick;
  TaskResult *result; /* allocated; with has_shared it has the shared curves already */
  /* Private. */
  Arena memory;
  Problem own_problem;
  Prior own_prior;
} TaskRun;

/* The quantiles of a curve with tails. */
enum { STUDY_QUANTILES = 5 };
extern const double study_quantiles[STUDY_QUANTILES];

/* What settings whose matrices are spread over ranks are run with. `stage` is told the wall time of each part
 * when it ends. */
typedef struct {
  const Dense *dense;
  Tick tick;
  void (*stage)(const char *what, double seconds);
} StudySpread;

typedef struct {
  const char *name, *summary, *reference;
  const char *figure; /* the script in analysis/figures/ that draws the results */
  /* The keys and sections that it uses and not every study does, separated by blanks (study_unused_note). */
  const char *keys;
  const char *axis, *axis_long_name; /* name of the last dimension and its coordinate */
  /* Uses no key of priors but prior.test_fraction and what study_belief_print says of the belief of each
   * policy. */
  bool believes;
  bool estimates; /* curves are estimators of a policy's value (study/estimates.h), asked for by name */
  bool networks; /* theta of a policy may be the weights of a network */
  bool drifts; /* theta* may change within a run */
  bool draws_together; /* all draws of a run have one history (SamplerSetup.for_themselves) */
  ProblemRewards rewards_of; /* other rewards than those of theta* that it can use */
  const ProblemOps *problem; /* OPTIONAL. Its own problem, instead of that of problem.family. */
  const StudyCurve *curves; /* ends with a NULL name; tables show the first one that the study has */
  int (*points)(const Config *setting);
  const char *points_key; /* on which their number depends most */
  /* OPTIONAL, where study_axis_value is not point + 1. */
  double (*axis_value)(const Config *setting, const Problem *problem, int point);
  /* OPTIONAL. Whether a setting or policy makes sense in this study: STATUS_INPUT with a sentence if not. */
  Status (*check_setting)(const Study *study, const Config *setting, const Problem *problem);
  Status (*check_policy)(const PolicyMethod *method, const Config *options);
  /* OPTIONAL, where a run does not make one draw in each of problem.rounds rounds. Returns how many draws it
   * makes, roughly: settings are compared by it (study_task_size). */
  double (*draws)(const Config *setting);
  /* OPTIONAL, where it is more than its curves. Returns, roughly, the bytes that a task of the setting holds
   * at once. */
  double (*bytes)(const Study *study, const Config *setting, const Problem *problem);
  /* OPTIONAL. Calls `note` with a sentence about each policy that takes long without need. */
  void (*advise)(const Study *study, void (*note)(const char *sentence));
  /* Runs one task into its result. Errors belong to the task alone. */
  Status (*run)(const TaskRun *run);
  /* OPTIONAL, all or none. Whether the matrices of a setting can be spread over ranks with every policy of
   * the study; and running the tasks of one block of such a setting, one per policy. The latter is
   * collective: all ranks get the same results. The matrices of a run serve all policies. Errors belong to
   * these tasks. */
  Status (*check_spread)(const Study *study, const Config *setting, const Problem *problem);
  Status (*run_spread)(const Study *study, const StudySpread *spread, int count, const Task *tasks,
                       TaskResult *results);
  /* Returns the most bytes that these matrices take at any time, over all ranks that hold them. */
  double (*spread_bytes)(const Config *setting, const Problem *problem);
} StudyOps;

const StudyOps *study_kind(int index); /* registry; NULL ends */
const StudyOps *study_kind_of(const Config *setting);
const char *study_kind_name(int index);

struct Study {
  Arena memory;
  const StudyOps *ops;
  StudyFile *file; /* owned */
  const char *name;
  uint64_t seed;
  Runs runs;
  /* The curve, by place in the list below, whose standard error decides an adaptive number of runs; with a
   * fixed number, the one that `status` shows. */
  int target_curve;
  bool target_paired;
  double *run_size; /* [settings, policies], of study_task_size; 0 in settings spread over ranks */
  double *spread_bytes; /* [settings] of matrices that are spread over ranks; 0 elsewhere */
  double *noise; /* [settings], the standard deviation of a reward; NaN if it has none or each run its own */
  const StudyCurve **curves; /* [curve_count], the ones that the study measures */
  /* All of them; those in the results, which come first; those with a value for each point, not round. */
  int curve_count, published, along;
  int points; /* the largest number of points of any setting */
  double **values; /* [settings][points of the setting]: where its points are on the axis */
  /* The axis of the results: the points of all settings, which need not be at the same values. */
  double *axis; /* [places], rising */
  int places;
  RunsBlock *blocks; /* [runs.blocks], the same for every cell */
  int task_count; /* settings x policies x blocks */
  CellName *names; /* [settings, policies, replicates] (study/study_names.h) */
  int *by_name; /* [settings * policies * replicates], the places in `names` in their order */
};

/* Returns the value of a setting's point on the axis, and (study_place) its position in the results. */
static inline double study_axis_value(const Study *study, int setting, int point) {
  return study->values[setting][point];
}
int study_place(const Study *study, int setting, int point);

/* Returns task number `index` of the list. */
Task study_task(const Study *study, int index);
/* Returns the place in the list of block `block` of a cell. */
int study_task_index(const Study *study, int setting, int policy, int block);

/* Returns which of `shards` parts of the study a task belongs to. The tasks that ranks run together belong to
 * one part: those of one block in a setting that is spread over ranks. */
int study_shard(const Study *study, int index, int shards);

/* Returns how large a task is: the numbers that its draws go through, a product of what its setting counts
 * (runs, draws, dimensions, stages, ...). Tasks of one policy take about as long as they are large, whereas
 * policies differ by factors that only measuring can tell. Larger tasks are begun first; no result depends on
 * it. */
double study_task_size(const Study *study, const Task *task);

/* Takes ownership of `file`, checks that every policy fits its prior in every setting (STATUS_INPUT
 * otherwise), and counts the tasks. The caller must call study_destroy, also after an error. */
Status study_create(StudyFile *file, Study *out);
void study_destroy(Study *study);
/* Checks that what the priors need outside of this program is available: returns STATUS_INPUT with one
 * sentence if it is not, STATUS_STOPPED if the tick of the thread (core_tick.h) stops the wait for it. */
Status study_ready(const Study *study);

/* Returns word number `index` of the key runs.of: the curves of all kinds of studies and their paired
 * differences; NULL after the last. */
const char *study_target_name(int index);
/* Writes the name of the target, such as "regret_diff". */
void study_target(const Study *study, size_t size, char *out);
/* Writes the references of the methods of the study's policies: "ts: Thompson 1933; ...". */
Status study_references(Arena *memory, const Study *study, const char **out);

/* Returns word number `index` of the key metrics, which ask for curves of all kinds of studies; NULL after
 * the last. */
const char *study_metric_name(int index);
/* Returns word number `index` of the key estimators likewise. */
const char *study_estimator_name(int index);
/* Returns what such a word stands for: the long name of the first curve that it asks for. */
const char *study_metric_meaning(int index);
const char *study_estimator_meaning(int index);
/* Returns whether the study's key `metrics`, or `estimators` if it has those, lists this word. */
bool study_measures(const Study *study, const char *metric);
/* Frees the prior that is kept; a prior may be kept again. */
void study_task_priors_free(TaskPriors *priors);
/* Creates a task that is to be run, but for its tick and result. A learned prior is read, or is the one that
 * `priors` keeps, which must outlive the task's use of it; `priors` NULL: the caller sets the prior. *out
 * must stay where it is; the caller must call study_task_run_destroy, also after an error. */
Status study_task_run_create(const Study *study, const Task *task, TaskPriors *priors, TaskRun *out);
void study_task_run_destroy(TaskRun *run);
/* Returns the setup of the task's policy, which refers to `run`. */
PolicySetup study_policy_setup(const TaskRun *run);

/* Allocates the result of a task. The caller must call study_result_destroy, also after an error. */
Status study_result_create(const Study *study, const Task *task, TaskResult *out);
void study_result_destroy(TaskResult *result);
/* Returns whether a study has curves that all policies share. */
bool study_has_shared(const Study *study);
/* Copies the shared curves from a finished task of the same setting and runs, which spares measuring them. */
void study_result_share(const Study *study, const TaskResult *finished, TaskResult *result);
/* Turns `result` into that of a task that raised an error: RUN_FAILED, NaN curves, `message`. Returns
 * STATUS_OK, since the error belongs to the task alone. */
Status study_result_fail(const Study *study, const char *message, TaskResult *result);

/* Sets the seconds of each run to an equal share of the seconds of all. */
void study_result_set_seconds(double seconds, TaskResult *result);

/* Returns whether a task belongs to a setting that is spread over ranks. */
bool study_task_is_distributed(const Study *study, const Task *task);
/* Runs `count` tasks that run_spread can run together, like study_run_task. Collective over the ranks of
 * `spread`. */
Status study_run_spread(const Study *study, const StudySpread *spread, int count, const Task *tasks,
                        TaskResult *results);

/* Runs a task, with its prior from `priors`: measures what the result does not have yet. A task that raises
 * an error gives RUN_FAILED, NaN curves and a message; only STATUS_STOPPED and STATUS_INTERNAL (lack of
 * memory) are returned. */
Status study_run_task(const Study *study, const Task *task, TaskPriors *priors, Tick tick,
                      TaskResult *result);

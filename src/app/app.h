/* The verbs of the command line: one file each, listed in main.c. `main` parses the arguments, and the
 * verb does its work and returns a Status; then `main` prints the message of a failure, once, and ends all
 * ranks with the exit status. */
#pragma once

#include "io/ownership.h"
#include "parallel/parallel.h"
#include "parallel/results/leaderboard.h"
#include "study/study.h"

#include <argp.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A growing list of texts, for options that may be repeated. */
typedef struct {
  int count;
  const char *texts[256];
} AppTexts;

/* An option of a verb. One of the pointers is set: it says what the value is, and where it goes. */
typedef struct {
  const char *name;
  char letter; /* 0: none */
  const char *value, *help; /* what the help calls the value; NULL: there is none */
  bool *flag;
  const char **text;
  const char **output; /* a file or folder to write: a name that cannot be used is refused before any work */
  AppTexts *texts;
  int *count; /* from 1 to `high` */
  double *real; /* in [low, high] */
  uint64_t *seed;
  AppTexts *seed_of; /* the --set of a study, to which seed=N is added */
  void (*take)(struct argp_state *state, const char *text); /* does anything else */
  double low, high;
} AppOption;

/* A verb: what its command line allows, and what it does. The values are where its options have put them. */
typedef struct {
  const AppOption *options; /* the last has no name */
  const char **argument; /* where the positional argument goes */
  const char *what; /* it is: "study file" */
  bool optional; /* it may be missing */
  /* Takes the positional arguments instead, one at a time; NULL: there are none. */
  void (*take)(struct argp_state *state, const char *text);
  void (*check)(struct argp_state *state); /* refuses, in the end, what does not go together; may be NULL */
  const char *usage, *help;
  char *(*help_filter)(int key, const char *text, void *input); /* as in struct argp */
  /* One of the three is set; MPI is started before the last two, and ended after them. */
  Status (*run)(void); /* without MPI, or starts and ends it by itself */
  Status (*collective)(void); /* on all ranks */
  Status (*on_first)(void); /* on the first, while the others wait */
} AppVerb;

extern const AppVerb app_run, app_plan, app_status, app_list, app_train, app_sample, app_prepare, app_reduce,
    app_rerun, app_export, app_prune, app_score, app_tune, app_verify, app_bench;

/* Takes the arguments, silently on all ranks but the first, so that `mpiexec -n 8 thompson run --help`
 * answers once; argv[0] is "thompson VERB". --help and usage errors end the program. */
void app_parse(const AppVerb *verb, int argc, char **argv);

/* For functions that take a value; each calls argp_error, which ends the program, if it is refused. */

/* Parses a number in [low, high], or a seed. */
long long app_integer(struct argp_state *state, const char *option, const char *text, long long low,
                      long long high);
double app_real(struct argp_state *state, const char *option, const char *text, double low, double high);
uint64_t app_seed(struct argp_state *state, const char *text);
/* Refuses a value that is none of the names word(0), word(1), ...; `what` is what they name: "a sampler". */
void app_unknown_name(struct argp_state *state, const char *option, const char *value, const char *what,
                      const char *(*word)(int index));
void app_texts_add(struct argp_state *state, AppTexts *texts, const char *text);
/* Refuses a positional argument. */
void app_refuse_argument(struct argp_state *state, const char *text);

/* Returns how many parts ranks run together: blocks of settings whose matrices are spread over ranks. Writes
 * by which groups: "groups of 4 ranks". */
int app_groups(const Study *study, size_t size, char *text);

/* Returns the number as JSON, or null if it is not finite. */
json_t *app_json_number(double value);
/* Prints JSON on stdout, reals with `digits` digits (0: all), and frees it; STATUS_INTERNAL if it is NULL. */
Status app_print_json(json_t *root, size_t digits);
/* Returns the width of a column for the labels of all policies. */
int app_label_width(const StudyFile *file);

/* Starts MPI; from here on only rank 0 prints. */
void app_begin_parallel(void);

/* Refuses, on all ranks, an output file that rank 0 would be unable to write at the end, or that is of
 * another kind. Collective. */
Status app_try_output(const char *path, const OwnershipKind *kind);

/* Ends MPI and returns `status`. Rank 0 prints its message first, because mpiexec kills all ranks as soon as
 * one has ended with an error. */
Status app_end_parallel(Status status);
/* Prints the message of a failure on rank 0, unless one has been printed already. */
void app_report(Status status);
/* Whether a failure was reported. */
extern bool app_failed;

/* Reads the study of a results folder (DIR/study.yaml), and names its tasks. The caller must call
 * study_destroy. */
Status app_study_of_folder(const char *directory, Study *out);
/* Creates a study from `text`, the contents of the study file `path`, with --set and --seed applied. The
 * caller must call study_destroy. */
Status app_study_of_file(const char *path, const char *text, const AppTexts *sets, Study *out);

/* A temporary folder for priors that are fitted for a measurement, laid out like the folder of a run. */
typedef struct {
  char path[2048]; /* on all ranks; empty: none was made */
} Scratch;

/* Makes a folder, with one for priors inside it, in rank 0's TMPDIR or /tmp. Collective. The caller must call
 * app_scratch_destroy, even after an error, which removes the folder when all ranks are there. */
Status app_scratch_create(Scratch *out);
void app_scratch_destroy(Scratch *scratch);

/* Notes on stderr, on rank 0, which keys are set although they have no effect. */
Status app_note_unused(const Study *study);

/* Prints a line on a task: "task 3 (setting S, policy P, runs 0 to 7): VERDICT REASON". */
void app_print_task(const Study *study, const Task *task, const char *verdict, const char *reason);
/* Prints the leaderboard on stdout: the first curve for each policy in each setting of which some run has
 * ended, at all points if there are few, otherwise at the last one; and what went wrong numerically. */
void app_print_table(const Study *study, const Leaderboard *board);

/* The verbs of the command line: one file each, listed in main.c. A verb parses its arguments, does its work,
 * and returns a Status; `main` prints the message of a failure, once, and ends all ranks with the exit
 * status. */
#pragma once

#include "parallel/parallel.h"
#include "study/study.h"

#include <argp.h>
#include <jansson.h>

typedef struct {
  const char *name, *summary;
  Status (*run)(int argc, char **argv); /* argv[0] is "thompson VERB" */
} AppVerb;

Status app_run(int argc, char **argv);
Status app_plan(int argc, char **argv);
Status app_status(int argc, char **argv);
Status app_list(int argc, char **argv);
Status app_train(int argc, char **argv);
Status app_sample(int argc, char **argv);
Status app_prepare(int argc, char **argv);
Status app_reduce(int argc, char **argv);
Status app_score(int argc, char **argv);
Status app_tune(int argc, char **argv);
Status app_verify(int argc, char **argv);
Status app_bench(int argc, char **argv);

/* Calls argp_parse, silently on all ranks but the first, so that `mpiexec -n 8 thompson run --help` answers
 * once. --help and usage errors end the program. */
void app_parse(const struct argp *argp, int argc, char **argv, void *input);
/* Prints the manual page of the program (its verbs, up to one whose name is NULL, and its exit status) or of
 * a verb; `name` is "thompson run". */
void manual_program(const AppVerb *verbs);
void manual_verb(const struct argp *argp, const char *name);
/* Parses a number from the command line; calls argp_error if `text` is not a number in [low, high]. */
long long app_integer(struct argp_state *state, const char *option, const char *text, long long low,
                      long long high);
double app_real(struct argp_state *state, const char *option, const char *text, double low, double high);

/* Ends the program through argp_error, because the value of an option is none of the names word(0), word(1),
 * ...; `what` says what they name: "a sampler". */
void app_unknown_name(struct argp_state *state, const char *option, const char *value, const char *what,
                      const char *(*word)(int index));

/* Stores the one positional argument in *slot; calls argp_error if there is one already. `what` names it:
 * "study file". */
void app_take(struct argp_state *state, const char **slot, const char *text, const char *what);
/* Calls argp_error if the positional argument is missing. */
void app_need(struct argp_state *state, const char *slot, const char *what);

/* Stores the file or folder given with -o; calls argp_error, before any work is done, if the name cannot be
 * used. */
void app_take_output(struct argp_state *state, const char **slot, const char *text);

/* A growing list of texts, for options that may be repeated. */
typedef struct {
  int count;
  const char *texts[256];
} AppTexts;
void app_texts_add(struct argp_state *state, AppTexts *texts, const char *text);

/* Adds --seed N of a study as --set seed=N; `space` holds its text, and must live as long as `sets`. */
void app_take_seed(struct argp_state *state, AppTexts *sets, char space[40], const char *text);

/* Returns the number as JSON, or null if it is not finite. */
json_t *app_json_number(double value);
/* Prints JSON on stdout, real numbers with `digits` digits (0: all of them), and frees it. */
void app_print_json(json_t *root, size_t digits);

/* Starts MPI; from here on only rank 0 prints. */
Parallel app_begin_parallel(void);

/* Refuses, on all ranks, an output file that rank 0 would be unable to write at the end. Collective. */
Status app_try_output(const Parallel *parallel, const char *path);

/* Ends MPI and returns `status`. Rank 0 prints its message first, because mpiexec kills all ranks as soon as
 * one has ended with an error. */
Status app_end_parallel(Status status);
/* Prints the message of a failure on rank 0, unless one has been printed already. */
void app_report(Status status);
/* Returns whether a failure was reported. */
bool app_has_failed(void);

/* Reads the study of a results folder (DIR/study.yaml). The caller must call study_destroy. */
Status app_study_of_folder(const char *directory, Study *out);
/* Creates a study from `text`, the contents of the study file `path`, with --set and --seed applied. The
 * caller must call study_destroy. */
Status app_study_of_file(const char *path, const char *text, const AppTexts *sets, Study *out);

/* A temporary folder for priors that are fitted for a measurement, laid out like the folder of a run. */
typedef struct {
  const Parallel *parallel; /* NULL: none was made */
  char path[2048];
} Scratch;

/* Makes a folder, with one for priors inside it, in rank 0's TMPDIR or /tmp. Collective. The caller must call
 * app_scratch_destroy, even after an error, which removes the folder when all ranks are there. */
Status app_scratch_create(const Parallel *parallel, Scratch *out);
void app_scratch_destroy(Scratch *scratch);

/* Notes on stderr, on rank 0, if problem.noise is set although the rewards have no noise. */
void app_note_unused(const Study *study);

/* Prints the leaderboard on stdout, from DIR/results.nc: the first curve for each setting and policy, at all
 * points if there are few, otherwise at the last one. */
Status app_print_table(const Study *study, const char *directory);

/* False on all ranks but the first: only that one prints. */
extern bool app_speaks;

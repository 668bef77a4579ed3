/* Logs of past tasks: users, campaigns, patients. Each task has its own theta, which nobody has seen, and a
 * few observations (x, y) made under it, in any order. A prior of theta is learned from them (logs_fit.h).
 *
 * With a conjugate likelihood, X'X, X'y, y'y and the number of observations are all that a task says about
 * its theta, so memory does not grow with observations; with any other likelihood the rows are kept too. */
#pragma once

#include "core/arena.h"
#include "io/digest.h"
#include "model/history/likelihood.h"

#include <stdint.h>

/* Numbers of tasks and of rows in one block of memory. */
enum { LOGS_BLOCK = 64, LOGS_ROWS = 1024 };

typedef struct {
  Arena *memory; /* the creator's */
  int d;
  const Likelihood *likelihood; /* not owned */
  bool estimate_noise; /* the likelihood's noise is unknown and learned with the prior; false at first */
  int tasks;
  int64_t observations, clicks; /* all, and those whose reward is 0 or 1 */
  double **block; /* [LOGS_BLOCK, logs_width]; NULL if another rank has it */
  double **row_block; /* [LOGS_ROWS, d + 2]: x, y, task */
} Logs;

/* Returns the number of doubles in a task's statistics: X'X [d (d + 1) / 2], lower triangle by rows; X'y [d];
 * y'y; n. */
static inline size_t logs_width(int d) { return (size_t)(d * (d + 1) / 2 + d + 2); }

/* Creates logs without tasks. The likelihood must outlive them; they live as long as `memory`. */
Status logs_create(Arena *memory, int d, const Likelihood *likelihood, Logs *out);
/* Adds one observation of a task: x[d] and y. Tasks are numbered in order of arrival: task <= logs->tasks. */
Status logs_add(Logs *logs, int task, const double *x, double y);
/* Adds a whole task by its statistics, entry[logs_width]; the likelihood must be conjugate. */
Status logs_add_task(Logs *logs, const double *entry);
/* Returns the statistics of a task, [logs_width]. */
static inline double *logs_task(const Logs *logs, int task) {
  return logs->block[task / LOGS_BLOCK] + (size_t)(task % LOGS_BLOCK) * logs_width(logs->d);
}
/* Returns whether rows are kept. */
static inline bool logs_has_rows(const Logs *logs) { return !likelihood_is_conjugate(logs->likelihood); }
/* Returns row `index`, in order of arrival, [d + 2]: x, y, task. */
const double *logs_row(const Logs *logs, int64_t index);
/* Copies the tasks task[count] of `logs`, in that order, into new logs. */
Status logs_select(Arena *memory, const Logs *logs, int count, const int *task, Logs *out);
/* Copies `most` of the tasks (all, if there are fewer) in random order: fits hold out the first tasks and
 * compare starts on them, and logs are rarely in random order. */
Status logs_sample(Arena *memory, const Logs *logs, int most, uint64_t seed, Logs *out);

/* ---- from a file that a user gives (io/io_logs.h) */

/* Reads logs. Returns STATUS_INPUT, with the place in the file, also if the likelihood does not admit a
 * reward. progress(done, total), NULL allowed, is called now and then. */
Status logs_read(Arena *memory, const char *path, const Likelihood *likelihood, bool estimate_noise,
                 void (*progress)(double done, double total), Logs *out);
/* Computes the digest of everything that a fit depends on. */
Status logs_digest(const Logs *logs, char out[DIGEST_SIZE]);

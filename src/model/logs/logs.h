/* Logs of past tasks: users, campaigns, patients. Each task has a theta of its own that nobody has seen, and
 * a few observations (x, y) of it, in any order; a prior of theta is learned from them (logs_fit.h).
 *
 * With a conjugate likelihood all that a task says about its theta is X'X, X'y, y'y and the number of its
 * observations, so memory does not grow with observations; with any other likelihood the rows are kept
 * too. */
#pragma once

#include "core/arena.h"
#include "io/digest.h"
#include "model/history/likelihood.h"

#include <stdint.h>

/* Tasks, and rows, side by side in memory. */
enum { LOGS_BLOCK = 64, LOGS_ROWS = 1024 };

typedef struct {
  Arena *memory; /* of whoever created it */
  int d;
  const Likelihood *likelihood; /* not owned */
  bool estimate_noise; /* the likelihood's noise is not known: learned with the prior. False at first. */
  int tasks;
  int64_t observations;
  size_t blocks; /* for which `block` has room */
  double **block; /* [LOGS_BLOCK, logs_width]; NULL where another rank has it */
  size_t row_blocks;
  double **row_block; /* [LOGS_ROWS, d + 2]: x, y, task */
} Logs;

/* Returns the size of what is kept of a task: X'X [d (d + 1) / 2], lower triangle by rows; X'y [d]; y'y;
 * n. */
static inline size_t logs_width(int d) { return (size_t)(d * (d + 1) / 2 + d + 2); }

/* Creates logs without tasks. The likelihood must outlive them; they live as long as `memory`. */
Status logs_create(Arena *memory, int d, const Likelihood *likelihood, Logs *out);
/* Adds one observation of a task: x[d] and y. Tasks are numbered as they come: task <= logs->tasks. */
Status logs_add(Logs *logs, int task, const double *x, double y);
/* Adds a task by what is kept of it, entry[logs_width], with a conjugate likelihood. */
Status logs_add_task(Logs *logs, const double *entry);
/* Returns what is kept of a task, [logs_width]. */
static inline double *logs_task(const Logs *logs, int task) {
  return logs->block[task / LOGS_BLOCK] + (size_t)(task % LOGS_BLOCK) * logs_width(logs->d);
}
/* Returns whether rows are kept. */
static inline bool logs_has_rows(const Logs *logs) { return !likelihood_is_conjugate(logs->likelihood); }
/* Returns row `index` (in the order in which rows came), [d + 2]: x, y, task. */
const double *logs_row(const Logs *logs, int64_t index);
/* Copies the tasks task[count] of `logs`, in that order, into logs of their own. */
Status logs_select(Arena *memory, const Logs *logs, int count, const int *task, Logs *out);
/* Takes `most` of the tasks in random order (all, when there are fewer): what a fit chooses by, because
 * logs come in an order of their own. */
Status logs_sample(Arena *memory, const Logs *logs, int most, uint64_t seed, Logs *out);

/* ---- from a file that a user gives (io/logs_file.h) */

/* Returns STATUS_INPUT, with the place, also where a reward is not one of the likelihood. progress(done,
 * total), NULL allowed, is called now and then. */
Status logs_read(Arena *memory, const char *path, const Likelihood *likelihood, bool estimate_noise,
                 void (*progress)(double done, double total), Logs *out);
/* Computes the digest of all that a fit depends on. */
Status logs_digest(const Logs *logs, char out[DIGEST_SIZE]);

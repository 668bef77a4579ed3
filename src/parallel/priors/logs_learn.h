/* Learns a prior from the logs of past tasks (model/prior/logs_fit.h) on all ranks.
 *
 * The number of components, and the starting point of EM, are found on a random sample of at most
 * LOGS_LEARN_SAMPLE tasks; ranks share these fits as they share those of any prior. EM then continues over
 * all tasks, with each rank summing over its share; the bytes of the result are the same on any number of
 * ranks. Networks are fitted to posterior draws of the sample's tasks under the final mixture.
 *
 * What would take long to repeat is kept in PATH.partial, a separate prior file: the mixture so far, and the
 * digest of its logs and settings. */
#pragma once

#include "model/prior/prior.h"
#include "parallel/parallel.h"

enum { LOGS_LEARN_SAMPLE = 16384 };

typedef struct {
  int networks_from; /* tasks whose draws the networks learned from; 0: no networks */
  int iterations; /* of EM over all tasks; 0: all were in the sample */
  bool resumed; /* from PATH.partial */
} LogsLearned;

/* Takes the random sample of rank 0's logs, and sends it to all ranks. Collective. */
Status logs_learn_sample(Arena *memory, const Logs *logs, uint64_t seed, Logs *out);

/* Learns a prior from logs. `logs` are those of rank 0; the other ranks' are made here, in `memory`. The
 * prior exists on rank 0 only. STATUS_RESUME when `partial` belongs to other logs or settings, STATUS_FILE
 * when somebody else wrote it. A damaged one is set aside. Collective. */
Status logs_learn_prior(Arena *memory, const PriorOps *family, const PriorFit *fit, Logs *logs,
                        const char *partial, Prior *out, LogsLearned *learned);
/* Removes the partial file that logs_learn_prior wrote or read, once the result is written. Called on rank
 * 0. */
Status logs_learn_done(const char *partial);

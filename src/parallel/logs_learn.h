/* A prior learned from the logs of past tasks (model/prior/logs_fit.h) on all ranks.
 *
 * The number of components, and where EM begins, are found on a random sample of at most
 * LOGS_LEARN_SAMPLE tasks, whose fits ranks share as those of any prior. From there EM goes on over all
 * tasks, of which each rank has a part and sums it; the bytes of the result are the same on any number of
 * ranks. Networks are fitted to posterior draws of the sample's tasks under the mixture that comes out.
 *
 * What would take long to do again is kept in PATH.partial, a prior file of its own: the mixture so far, and
 * the digest of the logs and settings that it belongs to. */
#pragma once

#include "model/prior/prior.h"
#include "parallel/parallel.h"
#include "parallel/progress.h"

enum { LOGS_LEARN_SAMPLE = 16384 };

typedef struct {
  int tasks, networks_from; /* all tasks; those whose draws networks learned from, 0: no networks */
  int iterations; /* of EM over all tasks; 0: all were in the sample */
  bool resumed; /* from PATH.partial */
} LogsLearned;

/* Takes the random sample of rank 0's logs, on all ranks. Collective. */
Status logs_learn_sample(Arena *memory, const Parallel *parallel, const Logs *logs, uint64_t seed, Logs *out);

/* Learns a prior from logs. `logs` are rank 0's; the others' are made here, in the same memory. The prior
 * exists on rank 0 only. STATUS_RESUME when `partial` belongs to other logs or settings, STATUS_FILE when
 * somebody else wrote it. A damaged one is set aside. Collective. */
Status logs_learn(Arena *memory, const Parallel *parallel, const PriorOps *family, const PriorFit *fit,
                  Logs *logs, const char *partial, ProgressMode mode, Prior *out, LogsLearned *learned);
/* Removes the partial file of a result that is written: one that logs_learn wrote or read. Rank 0. */
Status logs_learn_done(const char *partial);

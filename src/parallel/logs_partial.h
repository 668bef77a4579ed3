/* Internal to src/parallel: how far the fit of a prior to logs is, in a file. */
#pragma once

#include "io/digest.h"
#include "model/prior/prior.h"

typedef struct {
  char of[DIGEST_SIZE]; /* of logs and settings */
  int iterations; /* of EM over all tasks */
  double
      likelihood; /* mean log marginal likelihood of a task before the last of them; -INFINITY before any */
  bool converged; /* the mixture is what comes out */
} LogsState;

/* Writes the prior so far, whole or not at all (io/store.h). */
Status logs_partial_write(const char *path, const LogsState *state, const Prior *prior);
/* Reads the prior so far; *found says whether there is one, of state->of. STATUS_RESUME when it is of
 * something else, STATUS_FILE when somebody else wrote it; a damaged one is set aside and reported. */
Status logs_partial_read(Arena *memory, const char *path, const PriorFit *fit, LogsState *state, Prior *prior,
                         bool *found);

#include "parallel/logs_partial.h"

#include "io/durable.h"
#include "io/ownership.h"
#include "io/store.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Status put(StoreFile *file, const LogsState *state, const Prior *prior) {
  TRY(store_text_attribute(file, NULL, "partial_of", state->of));
  TRY(store_int_attribute(file, NULL, "iterations", state->iterations));
  TRY(store_int_attribute(file, NULL, "converged", state->converged));
  if (isfinite(state->likelihood))
    TRY(store_real_attribute(file, NULL, "log_marginal_likelihood", state->likelihood));
  return prior_put(prior, file);
}

Status logs_partial_write(const char *path, const LogsState *state, const Prior *prior) {
  StoreFile *file;
  TRY(store_create(path, STORE_CLASSIC, &file));
  return store_finish(file, put(file, state, prior));
}

static Status read_state(StoreFile *file, LogsState *state) {
  SCOPED(char *, of, memory_free_text);
  int64_t iterations, converged;
  TRY(store_get_text_attribute(file, NULL, "partial_of", &of));
  if (strcmp(of, state->of) != 0)
    return status_set(STATUS_RESUME,
                      "%s is of other logs or settings; remove it, or name another file with -o",
                      store_path(file));
  TRY(store_get_int_attribute(file, NULL, "iterations", &iterations));
  TRY(store_get_int_attribute(file, NULL, "converged", &converged));
  state->iterations = (int)iterations;
  state->converged = converged;
  state->likelihood = -INFINITY;
  return store_has_attribute(file, "log_marginal_likelihood")
             ? store_get_real_attribute(file, NULL, "log_marginal_likelihood", &state->likelihood)
             : STATUS_OK;
}

static Status read_partial(Arena *memory, const char *path, const PriorFit *fit, LogsState *state,
                           Prior *prior) {
  StoreFile *file;
  TRY(store_open_own(path, &file));
  const Status status = read_state(file, state);
  store_abandon(file);
  TRY(status);
  return prior_load_own(memory, path, fit, prior);
}

Status logs_partial_read(Arena *memory, const char *path, const PriorFit *fit, LogsState *state, Prior *prior,
                         bool *found) {
  *found = false;
  TRY(ownership_check_output(path));
  if (ownership_of(AT_FDCWD, path) == OWNERSHIP_NOTHING) return STATUS_OK;
  const Status status = read_partial(memory, path, fit, state, prior);
  *found = status == STATUS_OK;
  if (status != STATUS_INPUT) return status;
  fprintf(stderr, "%s; the file is set aside and the fit begins again\n", status_message());
  return durable_set_aside(path);
}

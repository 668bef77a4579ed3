#include "parallel/priors/logs_learn.h"

#include "core/clock.h"
#include "io/durable.h"
#include "io/ownership.h"
#include "model/prior/logs_fit.h"
#include "parallel/priors/fits.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* How far the fit of a prior to logs has got, as it is kept in a file. */
typedef struct {
  char of[DIGEST_SIZE]; /* digest of the logs and settings */
  int iterations; /* of EM over all tasks */
  double likelihood; /* mean log marginal likelihood per task, before the last iteration; -INFINITY before the
                        first */
  bool converged; /* the mixture is final */
} LogsState;

static Status logs_learn_put(StoreFile *file, const LogsState *state, const Prior *prior) {
  TRY(store_text_attribute(file, NULL, "partial_of", state->of));
  TRY(store_int_attribute(file, "iterations", state->iterations));
  TRY(store_int_attribute(file, "converged", state->converged));
  if (isfinite(state->likelihood))
    TRY(store_real_attribute(file, "log_marginal_likelihood", state->likelihood));
  return prior_put(prior, file);
}

static Status logs_learn_read_state(const char *path, LogsState *state) {
  SCOPED(StoreFile *, file, store_close);
  SCRATCH_ARENA(scratch);
  const char *of;
  int64_t iterations, converged;
  TRY(store_open_own(path, &file));
  TRY(store_get_text_attribute(&scratch, file, "partial_of", &of));
  if (strcmp(of, state->of) != 0)
    return status_set(STATUS_RESUME,
                      "%s was made from other logs or settings; remove it, or name another file with -o",
                      path);
  TRY(store_get_int_attribute(file, "iterations", &iterations));
  TRY(store_get_int_attribute(file, "converged", &converged));
  state->iterations = (int)iterations;
  state->converged = converged;
  state->likelihood = -INFINITY;
  return store_has_attribute(file, "log_marginal_likelihood")
             ? store_get_real_attribute(file, "log_marginal_likelihood", &state->likelihood)
             : STATUS_OK;
}

/* Seconds of work that a kill may cost. What the sample has yielded is saved at once. */
static const double SAVED_EVERY = 1;

typedef struct {
  const PriorFit *fit;
  const char *partial;
  const Logs *logs, *sample;
  double saved; /* time of the last save */
  LogsState state; /* rank 0's */
  Prior prior; /* rank 0's: mixture or Gaussian */
} Learning;

/* ---- sending logs to ranks */

static int logs_learn_blocks(const Logs *logs) { return (logs->tasks + LOGS_BLOCK - 1) / LOGS_BLOCK; }
static size_t logs_learn_block_size(const Logs *logs) { return LOGS_BLOCK * logs_width(logs->d); }
static size_t logs_learn_row_blocks(const Logs *logs) {
  return logs_has_rows(logs) ? ((size_t)logs->observations + LOGS_ROWS - 1) / LOGS_ROWS : 0;
}
static size_t logs_learn_row_block_size(const Logs *logs) { return LOGS_ROWS * (size_t)(logs->d + 2); }

/* Allocates the blocks of rank 0's logs, whose shape is in *logs: all of them, or the slices of this rank. */
static Status logs_learn_allocate(bool whole, Logs *logs) {
  const int blocks = logs_learn_blocks(logs);
  ALLOCATE(logs->memory, logs->block, blocks);
  ALLOCATE(logs->memory, logs->row_block, logs_learn_row_blocks(logs));
  for (int s = 0; s < EM_LOGS_SLICES; s++)
    for (int b = em_logs_slice(s, blocks); b < em_logs_slice(s + 1, blocks); b++)
      if (whole || em_logs_owner(s, parallel_size()) == parallel_rank())
        ALLOCATE(logs->memory, logs->block[b], logs_learn_block_size(logs));
  for (size_t r = 0; r < logs_learn_row_blocks(logs); r++)
    ALLOCATE(logs->memory, logs->row_block[r], logs_learn_row_block_size(logs));
  return STATUS_OK;
}

/* Shares rank 0's logs: all of them with all ranks, or with each rank its slices. The other ranks' are made
 * here. */
static Status logs_learn_share(Arena *memory, const Likelihood *likelihood, bool whole, Logs *logs) {
  Logs shape = *logs;
  Status status = STATUS_OK;
  if (parallel_size() == 1) return STATUS_OK;
  parallel_broadcast(&shape, sizeof shape);
  if (parallel_rank() != 0) {
    *logs = shape;
    logs->memory = memory;
    logs->likelihood = likelihood;
    status = logs_learn_allocate(whole, logs);
  }
  TRY(parallel_agree(status));
  const int blocks = logs_learn_blocks(logs);
  const size_t block_bytes = logs_learn_block_size(logs) * sizeof(double);
  for (int s = 0; s < EM_LOGS_SLICES; s++) {
    const int owner = em_logs_owner(s, parallel_size());
    for (int b = em_logs_slice(s, blocks); b < em_logs_slice(s + 1, blocks); b++)
      if (whole)
        parallel_broadcast(logs->block[b], block_bytes);
      else if (owner != 0 && parallel_rank() == 0)
        parallel_send(owner, logs->block[b], block_bytes);
      else if (owner != 0 && parallel_rank() == owner)
        parallel_receive(0, logs->block[b], block_bytes);
  }
  for (size_t r = 0; r < logs_learn_row_blocks(logs); r++)
    parallel_broadcast(logs->row_block[r], logs_learn_row_block_size(logs) * sizeof(double));
  return STATUS_OK;
}

/* ---- the partial file */

/* Makes rank 0's prior with this mixture of theta and this variance of the noise. */
static Status logs_learn_make_prior(Arena *memory, const Learning *self, const Mixture *mixture,
                                    double variance, Prior *out) {
  TRY(prior_replace_mixture(memory, &self->prior, mixture, self->fit, out));
  if (!logs_has_rows(self->logs)) out->noise = sqrt(variance);
  return STATUS_OK;
}

/* Saves the prior so far on rank 0, if enough work could be lost. */
static Status logs_learn_save(Learning *self, const Mixture *mixture, double variance) {
  SCRATCH_ARENA(scratch);
  Prior now;
  StoreFile *file;
  if (parallel_rank() != 0 || clock_wall() - self->saved < SAVED_EVERY) return STATUS_OK;
  TRY(logs_learn_make_prior(&scratch, self, mixture, variance, &now));
  TRY(store_create(self->partial, &file)); /* the old file stays until the new one is whole */
  TRY(store_finish(file, logs_learn_put(file, &self->state, &now)));
  self->saved = clock_wall();
  return STATUS_OK;
}

/* Reads the prior so far on rank 0; *found says whether there is one for these logs and settings.
 * STATUS_RESUME when it belongs to something else, STATUS_FILE when somebody else wrote it; a damaged one is
 * set aside and reported. */
static Status logs_learn_read(Arena *memory, Learning *self, const PriorOps *family, bool *found) {
  const Likelihood *likelihood = self->logs->likelihood;
  char logs[DIGEST_SIZE];
  SCOPED(char *, text, memory_free_text);
  size_t size = 0;
  *found = false;
  TRY(logs_digest(self->logs, logs));
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return status_set(STATUS_INTERNAL, "out of memory");
  fprintf(stream, "logs %s likelihood %s noise %a %d seed %llu sample %d family %s ", logs,
          likelihood->ops->name, likelihood->noise, self->logs->estimate_noise,
          (unsigned long long)self->fit->seed, LOGS_LEARN_SAMPLE, family->name);
  family->describe_fit(self->fit, stream);
  fclose(stream);
  TRY(digest_hex(text, size, self->state.of));
  TRY(io_ownership_check_output(self->partial, NULL));
  if (io_ownership_of(AT_FDCWD, self->partial) == OWNERSHIP_NOTHING) return STATUS_OK;
  Status status = logs_learn_read_state(self->partial, &self->state);
  if (status == STATUS_OK) status = prior_load_own(memory, self->partial, self->fit, &self->prior);
  *found = status == STATUS_OK;
  if (status != STATUS_INPUT) return status;
  fprintf(stderr, "%s; the file is set aside and the fit starts over\n", status_message());
  return durable_set_aside(self->partial);
}

/* ---- EM over all tasks */

static void logs_learn_combine_sums(const void *context, size_t count, double *values) {
  (void)context;
  parallel_collect(values, count * sizeof *values);
}

/* Shares rank 0's mixture and noise with all ranks, and prepares the mixture. */
static Status logs_learn_share_mixture(Arena *memory, const Learning *self, Mixture *mixture, double *noise) {
  const bool root = parallel_rank() == 0;
  int components = root ? self->prior.mixture->components : 0;
  *noise = root ? self->prior.noise : 0;
  parallel_broadcast(&components, sizeof components);
  parallel_broadcast(noise, sizeof *noise);
  TRY(parallel_agree(mixture_create(memory, self->logs->d, components, mixture)));
  if (root) mixture_copy_parameters(self->prior.mixture, mixture);
  const size_t count = (size_t)components, d = (size_t)self->logs->d;
  parallel_broadcast(mixture->weight, count * sizeof(double));
  parallel_broadcast(mixture->mean, count * d * sizeof(double));
  parallel_broadcast(mixture->covariance, count * d * d * sizeof(double));
  return mixture_prepare(mixture);
}

/* Refines the mixture of rank 0 by EM over all tasks, together with all ranks. Iterates from theta to theta,
 * so that the kept mixture is all that the next iteration needs. */
static Status logs_learn_refine_mixture(Arena *memory, Learning *self, Mixture *mixture, double *noise) {
  SCRATCH_ARENA(scratch);
  const EmRanks ranks = {parallel_rank(), parallel_size(), NULL, logs_learn_combine_sums};
  const EmPlan plan = logs_plan(mixture->components, 1, true);
  LogsFrame frame;
  EmLogs items, sample;
  Status status = logs_frame(&scratch, self->sample, &frame);
  if (status == STATUS_OK)
    status = em_logs_create(&scratch, self->sample, &frame, 0, self->sample->tasks, 1, &sample);
  if (status == STATUS_OK)
    status = em_logs_create(&scratch, self->logs, &frame, 0, self->logs->tasks, mixture->components, &items);
  TRY(parallel_agree(status));
  items.sample = &sample;
  items.ranks = &ranks;
  if (!logs_has_rows(self->logs)) items.variance = *noise * *noise;
  Progress progress = progress_begin(PROGRESS_AUTO, "iterations over all tasks, at most");
  LogsState *state = &self->state;
  while (!state->converged) {
    double likelihood;
    const Rng rng = {.key = rng_key(self->fit->seed, RNG_MIXTURE_REPAIR),
                     .run = self->fit->replicate,
                     .round = (uint32_t)state->iterations};
    TRY(mixture_standardise(mixture, frame.shift, frame.scale));
    TRY(em_step(&items.data, &plan, rng, mixture, &likelihood));
    TRY(mixture_transform(mixture, frame.shift, frame.scale));
    state->iterations++;
    state->converged =
        em_has_converged(&plan, state->likelihood, likelihood) || state->iterations == plan.most_iterations;
    state->likelihood = likelihood;
    TRY(parallel_agree(logs_learn_save(self, mixture, items.variance)));
    progress_update(&progress, state->iterations, plan.most_iterations,
                    (double)state->iterations / plan.most_iterations);
  }
  progress_end(&progress, state->iterations, plan.most_iterations);
  if (!logs_has_rows(self->logs)) *noise = sqrt(items.variance);
  Prior refined = {.d = 0};
  if (parallel_rank() == 0) status = logs_learn_make_prior(memory, self, mixture, items.variance, &refined);
  TRY(parallel_agree(status));
  if (parallel_rank() == 0) self->prior = refined;
  return STATUS_OK;
}

/* ---- the whole fit */

Status logs_learn_sample(Arena *memory, const Logs *logs, uint64_t seed, Logs *out) {
  Status status = STATUS_OK;
  *out = (Logs){.likelihood = logs->likelihood};
  if (parallel_rank() == 0) status = logs_sample(memory, logs, LOGS_LEARN_SAMPLE, seed, out);
  TRY(parallel_agree(status));
  return logs_learn_share(memory, logs->likelihood, true, out);
}

/* Learns the mixture of all tasks, into rank 0's self->prior and every rank's *mixture. */
static Status logs_learn_mixture(Arena *memory, Learning *self, const PriorOps *family, Mixture *mixture,
                                 double *noise, bool *resumed) {
  TRY(parallel_agree(parallel_rank() == 0 ? logs_learn_read(memory, self, family, resumed) : STATUS_OK));
  parallel_broadcast(resumed, sizeof *resumed);
  if (!*resumed) {
    self->state.likelihood = -INFINITY;
    TRY(fits_run_one(memory, family, self->fit, &(FitSource){.logs = self->sample}, PROGRESS_AUTO, (Tick){0},
                     &self->prior));
    self->state.converged = self->sample->tasks == self->logs->tasks;
  }
  TRY(logs_learn_share_mixture(memory, self, mixture, noise));
  TRY(parallel_agree(logs_learn_save(self, mixture, *noise * *noise)));
  parallel_broadcast(&self->state, sizeof self->state);
  return self->state.converged ? STATUS_OK : logs_learn_refine_mixture(memory, self, mixture, noise);
}

Status logs_learn_prior(Arena *memory, const PriorOps *family, const PriorFit *fit, Logs *logs,
                        const char *partial, Prior *out, LogsLearned *learned) {
  const Likelihood *likelihood = logs->likelihood;
  const double start = clock_cpu();
  Logs sample;
  Mixture mixture;
  double noise;
  Learning self = {.fit = fit, .partial = partial, .logs = logs, .sample = &sample, .saved = -INFINITY};
  TRY(logs_learn_sample(memory, logs, fit->seed, &sample));
  TRY(logs_learn_share(memory, likelihood, logs_has_rows(logs), logs));
  *learned = (LogsLearned){0};
  TRY(logs_learn_mixture(memory, &self, logs_family(family), &mixture, &noise, &learned->resumed));
  learned->iterations = self.state.iterations;
  *out = self.prior;
  if (!(family->able & PRIOR_LOGS)) {
    SCRATCH_ARENA(scratch);
    Samples samples;
    TRY(parallel_agree(logs_draws(&scratch, &sample, fit, &mixture, noise, &samples)));
    TRY(fits_run_one(memory, family, fit, &(FitSource){.samples = &samples}, PROGRESS_AUTO, (Tick){0}, out));
    if (parallel_rank() == 0) out->noise = noise;
    learned->networks_from = sample.tasks;
  }
  out->rewards = likelihood->ops->name;
  out->seconds_fit = parallel_sum(clock_cpu() - start);
  return STATUS_OK;
}

Status logs_learn_done(const char *partial) {
  if (io_ownership_of(AT_FDCWD, partial) != OWNERSHIP_OURS || unlink(partial) == 0) return STATUS_OK;
  return status_set(STATUS_FILE, "cannot remove %s: %s", partial, strerror(errno));
}

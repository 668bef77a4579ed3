/* What all files of the library share, and its priors: from files, samples and arrays. */
#include "library/library.h"
#include "io/csv_fields.h"
#include "io/durable.h"
#include "io/version.h"
#include "model/mixture/mixture_store.h"
#include "model/prior/prior_oracle.h"
#include "model/prior/training_samples.h"

#include <errno.h>
#include <math.h>
#include <netcdf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char *thompson_version(void) { return VERSION_NUMBER; }

const char *thompson_error(void) { return status_message(); }

Status library_check(const char *name, size_t count, const double *values) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs(values[i]) <= DATASET_MOST))
      return status_set(STATUS_INPUT,
                        "%s: element %zu (from 0) is %g; every value must be finite and at most %g in size",
                        name, i, values[i], DATASET_MOST);
  return STATUS_OK;
}

Status library_options(Arena *memory, const char *options, LibraryOptions *out) {
  *out = (LibraryOptions){0};
  if (!options || !*options) return STATUS_OK;
  const size_t size = strlen(options) + 1;
  char *copy;
  ALLOCATE(memory, copy, size);
  memcpy(copy, options, size);
  int depth = 0;
  out->text[out->count++] = copy;
  for (char *c = copy; *c; c++) {
    depth += (*c == '[') - (*c == ']');
    if (*c != ',' || depth > 0) continue;
    if (out->count == LIBRARY_MOST_OPTIONS)
      return status_set(STATUS_INPUT, "more than %d options", LIBRARY_MOST_OPTIONS);
    *c = '\0';
    out->text[out->count++] = c + 1;
  }
  return STATUS_OK;
}

const char *library_take_option(LibraryOptions *options, const char *name) {
  const size_t length = strlen(name);
  const char *value = NULL;
  int kept = 0;
  for (int i = 0; i < options->count; i++) {
    const char *text = options->text[i];
    if (strncmp(text, name, length) == 0 && text[length] == '=')
      value = text + length + 1;
    else
      options->text[kept++] = text;
  }
  options->count = kept;
  return value;
}

static pthread_mutex_t files = PTHREAD_MUTEX_INITIALIZER;

LibraryFiles library_enter_files(void) {
  LibraryFiles before;
  pthread_mutex_lock(&files);
  /* At its first use NetCDF silences HDF5 for good, which library_leave_files must not undo. */
  nc_initialize();
  H5Eget_auto2(H5E_DEFAULT, &before.print, &before.data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  return before;
}

void library_leave_files(LibraryFiles before) {
  H5Eset_auto2(H5E_DEFAULT, before.print, before.data);
  pthread_mutex_unlock(&files);
}

Status library_write(const char *path, Status (*put)(StoreFile *file, const void *what), const void *what) {
  StoreFile *file;
  const LibraryFiles before = library_enter_files();
  durable_sweep(path);
  Status status = store_create_in_memory(path, &file);
  if (status == STATUS_OK) status = store_finish(file, put(file, what));
  library_leave_files(before);
  return status;
}

/* ---- priors */

/* All priors, for a process that is forked: of the threads that may be using them only one goes on in the
 * child, where the others would never give back their turns. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static thompson_prior *first_prior;

static void library_make_turn(thompson_prior *self) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE); /* some samplers contain another */
  pthread_mutex_init(&self->turn, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

/* Waits until no thread uses a file, so that HDF5 is in order in the child as well, or inverts a mixture. */
static void library_before_fork(void) {
  pthread_mutex_lock(&files);
  pthread_mutex_lock(&listing);
  mixture_before_fork();
}

static void library_after_fork(void) {
  mixture_after_fork();
  pthread_mutex_unlock(&listing);
  pthread_mutex_unlock(&files);
}

/* Makes the turns again: what they protect is scratch. */
static void library_begin_child(void) {
  for (thompson_prior *prior = first_prior; prior; prior = prior->after)
    if (prior->prior.turn) library_make_turn(prior);
  library_after_fork();
}

static void library_expect_forks(void) {
  pthread_atfork(library_before_fork, library_after_fork, library_begin_child);
}

Status library_prior_new(thompson_prior **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, library_expect_forks);
  *out = NULL;
  NEW(*out, 1);
  thompson_prior *self = *out;
  self->self = self, self->holders = 1;
  pthread_mutex_lock(&listing);
  self->after = first_prior;
  if (first_prior) first_prior->before = self;
  first_prior = self;
  pthread_mutex_unlock(&listing);
  return STATUS_OK;
}

void library_prior_share(thompson_prior *self) {
  if (self->prior.turn) return;
  pthread_mutex_lock(&listing);
  library_make_turn(self);
  self->prior.turn = &self->turn;
  pthread_mutex_unlock(&listing);
}

thompson_prior *library_prior_hold(const thompson_prior *prior) {
  atomic_fetch_add(&prior->self->holders, 1);
  return prior->self;
}

thompson_status library_finish_prior(Status status, thompson_prior **out) {
  if (status == STATUS_OK) {
    library_prior_share(*out);
  } else {
    thompson_prior_close(*out);
    *out = NULL;
  }
  return status;
}

thompson_status thompson_prior_open(const char *path, thompson_prior **out) {
  PriorFit defaults;
  TRY(library_prior_new(out));
  const LibraryFiles before = library_enter_files();
  Status status = fit_of_options("defaults", 0, NULL, 1, &defaults);
  if (status == STATUS_OK) status = prior_load(&(*out)->memory, path, &defaults, &(*out)->prior);
  library_leave_files(before);
  return library_finish_prior(status, out);
}

static bool library_fit_continues(void *stop, double fraction) {
  (void)fraction;
  return !__atomic_load_n((const volatile int *)stop, __ATOMIC_RELAXED);
}

Tick library_until(const volatile int *stop) {
  return core_tick_exchange((Tick){stop ? library_fit_continues : NULL, (void *)(uintptr_t)stop});
}

thompson_status thompson_prior_from_theta_until(const double *theta, int n, int d, const char *family,
                                                const char *options, const volatile int *stop,
                                                thompson_prior **out) {
  SCRATCH_ARENA(scratch);
  const PriorOps *ops = prior_find(family);
  LibraryOptions texts;
  PriorFit fit;
  Samples samples = {.d = d, .n = n};
  uint64_t seed = 1;
  *out = NULL;
  if (!ops) return config_unknown_name(STATUS_INPUT, family, "a family of priors", prior_name);
  if (n < 1 || d < 1)
    return status_set(STATUS_INPUT, "theta: %d samples in %d dimensions; at least 1 of each is needed", n, d);
  TRY(library_check("theta", (size_t)n * (size_t)d, theta));
  TRY(library_options(&scratch, options, &texts));
  const char *given = library_take_option(&texts, "seed");
  if (given) {
    char *end;
    errno = 0;
    seed = strtoull(given, &end, 10);
    if (*given < '0' || *given > '9' || *end || errno != 0 || seed > 1ULL << 53)
      return status_set(STATUS_INPUT, "option seed=%s; allowed: an integer from 0 to 2^53", given);
  }
  TRY(fit_of_options("options", texts.count, texts.text, seed, &fit));
  ALLOCATE(&scratch, samples.theta, (size_t)n * (size_t)d);
  io_dataset_transpose(n, d, theta, samples.theta);
  TRY(io_dataset_check_spread("theta", &samples));
  TRY(training_samples_contaminate(&fit, &samples));
  prior_settle(ops, &fit, d);
  TRY(library_prior_new(out));
  const Tick before = library_until(stop);
  const Status status = prior_fit(&(*out)->memory, ops, &fit, &samples, &(*out)->prior);
  core_tick_exchange(before);
  return library_finish_prior(status, out);
}

thompson_status thompson_prior_from_theta(const double *theta, int n, int d, const char *family,
                                          const char *options, thompson_prior **out) {
  return thompson_prior_from_theta_until(theta, n, d, family, options, NULL, out);
}

thompson_status thompson_prior_from_mixture(int c, int d, const double *weight, const double *mean,
                                            const double *covariance, thompson_prior **out) {
  SCRATCH_ARENA(scratch);
  PriorFit defaults;
  Mixture mixture;
  *out = NULL;
  if (c < 1 || d < 1)
    return status_set(STATUS_INPUT, "%d components in %d dimensions; at least 1 of each is needed", c, d);
  TRY(fit_of_options("defaults", 0, NULL, 1, &defaults));
  TRY(mixture_create(&scratch, d, c, &mixture));
  const size_t entries = (size_t)c * (size_t)d;
  memcpy(mixture.weight, weight, (size_t)c * sizeof *weight);
  memcpy(mixture.mean, mean, entries * sizeof *mean);
  memcpy(mixture.covariance, covariance, entries * (size_t)d * sizeof *covariance);
  TRY(mixture_store_check("mixture", &mixture));
  TRY(library_prior_new(out));
  const Status status = prior_from_mixture(&(*out)->memory, &mixture, &defaults, &(*out)->prior);
  return library_finish_prior(status, out);
}

thompson_status thompson_prior_from_denoiser(int d, thompson_denoiser *denoiser, void *context,
                                             thompson_prior **out) {
  *out = NULL;
  if (d < 1) return status_set(STATUS_INPUT, "a denoiser in %d dimensions; at least 1 is needed", d);
  TRY(library_prior_new(out));
  return library_finish_prior(prior_given(&(*out)->memory, d, denoiser, context, &(*out)->prior), out);
}

thompson_status thompson_prior_from_score_network(int d, int stages, const double *alpha_bar,
                                                  thompson_score_network *network, void *context,
                                                  thompson_prior **out) {
  *out = NULL;
  if (d < 1) return status_set(STATUS_INPUT, "a score network in %d dimensions; at least 1 is needed", d);
  TRY(library_prior_new(out));
  const Status status = prior_score(&(*out)->memory, d, stages, alpha_bar, network, context, &(*out)->prior);
  return library_finish_prior(status, out);
}

thompson_status thompson_prior_from_oracle(int d, double sigma_min, double sigma_max, thompson_oracle *oracle,
                                           thompson_oracle_product *product, void *context,
                                           thompson_prior **out) {
  const OracleFunctions functions = {.mean = oracle, .product = product, .context = context};
  PriorFit defaults;
  *out = NULL;
  if (d < 1) return status_set(STATUS_INPUT, "an oracle in %d dimensions; at least 1 is needed", d);
  TRY(fit_of_options("defaults", 0, NULL, 1, &defaults));
  TRY(library_prior_new(out));
  const OracleRange range = {
      .stages = defaults.schedule.stages, .sigma_min = sigma_min, .sigma_max = sigma_max};
  const Status status = prior_oracle_given(&(*out)->memory, d, &functions, &range, &(*out)->prior);
  return library_finish_prior(status, out);
}

static Status library_put_prior(StoreFile *file, const void *prior) { return prior_put(prior, file); }

thompson_status thompson_prior_save(const thompson_prior *self, const char *path) {
  return library_write(path, library_put_prior, &self->prior);
}

thompson_status thompson_prior_sample(const thompson_prior *self, int m, uint64_t seed, double *theta) {
  SCRATCH_ARENA(scratch);
  const Prior *prior = &self->prior;
  if (m < 1) return status_set(STATUS_INPUT, "%d samples requested; at least 1 is needed", m);
  RngLanes rng = {.key = rng_key(seed, RNG_UNCONDITIONAL), .draws = (uint32_t)m, .lanes = (uint32_t)m};
  const size_t d = (size_t)prior->d;
  double *lanes; /* [d, m] */
  ALLOCATE(&scratch, lanes, d * (size_t)m);
  pthread_mutex_lock(prior->turn);
  prior->ops->sample(prior, &rng, lanes);
  pthread_mutex_unlock(prior->turn);
  io_dataset_transpose(prior->d, m, lanes, theta);
  return THOMPSON_OK;
}

int thompson_prior_dimension(const thompson_prior *self) { return self->prior.d; }

const char *thompson_prior_doubt(const thompson_prior *self) { return prior_doubt(&self->prior); }
const char *thompson_prior_rewards(const thompson_prior *self) { return prior_rewards(&self->prior); }

const char *thompson_prior_family(const thompson_prior *self) { return self->prior.ops->name; }

void thompson_prior_close(thompson_prior *self) {
  if (!self || atomic_fetch_sub(&self->holders, 1) > 1) return;
  pthread_mutex_lock(&listing);
  if (self->before)
    self->before->after = self->after;
  else
    first_prior = self->after;
  if (self->after) self->after->before = self->before;
  pthread_mutex_unlock(&listing);
  if (self->prior.turn) pthread_mutex_destroy(&self->turn);
  arena_free(&self->memory);
  free(self);
}

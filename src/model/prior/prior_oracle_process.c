/* A denoising oracle in Python, in a process beside this one. Arguments and results lie in memory that both
 * share, so that a call copies them only from lanes to rows and back; over the channel goes what is asked. */
#include "io/io_worker.h"
#include "model/prior/prior_oracle.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
  Worker worker;
  double *shared; /* [3, batch, d]: x, v, answer */
  size_t size; /* in bytes; 0: not mapped */
  long long calls;
  PriorElsewhere outcome;
} Process;

/* What a worker is told first, and in each request. Numbers are sent as they are in memory. */
typedef struct {
  int64_t d, batch;
} Begin;

enum { ASK_MEAN, ASK_PRODUCT };

typedef struct {
  int64_t what, rows;
  double sigma;
} Ask;

/* Asks for the first m rows of the answer; once that has failed they are 0. */
static int prior_process_ask(const Oracle *oracle, const Ask *ask) {
  Process *self = oracle->context;
  char where[96];
  double seconds;
  if (self->outcome.status == STATUS_OK) {
    snprintf(where, sizeof where, ", call %lld%s (%lld rows, sigma %g)", ++self->calls,
             ask->what == ASK_PRODUCT ? ", of jvp" : "", (long long)ask->rows, ask->sigma);
    io_worker_send(&self->worker, ask, sizeof *ask);
    self->outcome.status = io_worker_receive(&self->worker, where, sizeof seconds, &seconds);
    if (self->outcome.status == STATUS_OK) {
      self->outcome.seconds += seconds;
      return 0;
    }
    snprintf(self->outcome.sentence, sizeof self->outcome.sentence, "%s", status_message());
  }
  memset(oracle->answer, 0, (size_t)ask->rows * (size_t)oracle->d * sizeof *oracle->answer);
  return 0;
}

static int prior_process_mean(const Oracle *oracle, int m, int t, double sigma) {
  (void)t;
  return prior_process_ask(oracle, &(Ask){.what = ASK_MEAN, .rows = m, .sigma = sigma});
}

static int prior_process_product(const Oracle *oracle, int m, int t, double sigma) {
  (void)t;
  return prior_process_ask(oracle, &(Ask){.what = ASK_PRODUCT, .rows = m, .sigma = sigma});
}

static void prior_process_release(void *block) {
  Process *self = block;
  io_worker_end(&self->worker);
  if (self->size > 0) munmap(self->shared, self->size);
}

static bool prior_process_goes_on(void *context, double done) {
  (void)context, (void)done;
  return core_tick_allows(0);
}

static Status prior_process_start(const OracleProcess *process, int shared, Worker *out) {
  const WorkerSetup setup = {.what = "prior oracle",
                             .kind = "oracle",
                             .module = process->module,
                             .callable = process->callable,
                             .shared = shared,
                             .limit = process->limit};
  return io_worker_start(&setup, (Tick){prior_process_goes_on, NULL}, out);
}

Status prior_oracle_process_check(const OracleProcess *process) {
  SCOPED(Worker, worker, io_worker_end);
  return prior_process_start(process, 0, &worker);
}

static void prior_process_close(int *descriptor) {
  if (*descriptor > 0) close(*descriptor);
}

/* Maps the memory that the process shares with the worker that it starts. */
static Status prior_process_begin(Process *self, const OracleProcess *process) {
  const size_t size = 3 * (size_t)process->batch * (size_t)process->d * sizeof *self->shared;
  SCOPED(int, shared, prior_process_close);
  shared = memfd_create("thompson oracle", MFD_CLOEXEC);
  if (shared < 0 || ftruncate(shared, (off_t)size) != 0)
    return status_set(STATUS_INTERNAL, "cannot create %zu bytes of shared memory: %s", size, strerror(errno));
  self->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  if (self->shared == MAP_FAILED)
    return status_set(STATUS_INTERNAL, "cannot map %zu bytes of shared memory: %s", size, strerror(errno));
  self->size = size;
  return prior_process_start(process, shared, &self->worker);
}

Status prior_oracle_process(Arena *memory, const OracleProcess *process, Prior *out) {
  Process *self;
  int64_t has_product;
  ALLOCATE(memory, self, 1);
  arena_release_with(self, prior_process_release);
  TRY(prior_process_begin(self, process));
  const Begin begin = {.d = process->d, .batch = process->batch};
  io_worker_send(&self->worker, &begin, sizeof begin);
  TRY(io_worker_receive(&self->worker, "", sizeof has_product, &has_product));
  const size_t values = (size_t)process->batch * (size_t)process->d;
  const Oracle oracle = {.d = process->d,
                         .batch = process->batch,
                         .x = self->shared,
                         .v = self->shared + values,
                         .answer = self->shared + 2 * values,
                         .context = self,
                         .mean = prior_process_mean,
                         .product = has_product ? prior_process_product : NULL};
  TRY(prior_oracle(memory, &oracle, &process->range, out));
  out->elsewhere = &self->outcome;
  return prior_check(out);
}

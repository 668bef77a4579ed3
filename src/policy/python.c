/* The user's own sampler, written in Python, with the Thompson rule: a callable in a module gets what the
 * runs of a block observed and returns one theta for each of them, or M draws in a study of posteriors. Each
 * block has its own process, which runs analysis/thompson/worker.py and starts with nothing in its memory, so
 * that its draws depend on no other block; its random numbers are named by (seed, first run, round). */
#include "io/config/config_rows.h"
#include "io/io_worker.h"
#include "policy/policy.h"
#include "problem/world.h"

#include <string.h>

/* What a worker is told first. Both sides run on one machine, so numbers are sent as they are in memory. */
typedef struct {
  uint64_t seed, first_run;
  int64_t runs, d, arms, rounds;
  double noise;
  char likelihood[32];
} Begin;

/* A request for theta, followed by `rows` more observations of every run, row[B, d + 1] each; `rounds` is the
 * number of rounds so far. */
typedef struct {
  int64_t rows, rounds, draws; /* M; 0: one theta, of a bandit */
} Request;

typedef struct {
  Worker worker;
  int sent, *taken; /* rounds that the worker knows of; [B], observations in them */
  double *row; /* [B, d + 1]: phi and y of a round */
  double *answer; /* [1 + B M d]: seconds, theta */
  double *theta; /* [d, B] */
} Python;

static Status python_policy_start_worker(const Config *options, Tick tick, Worker *out) {
  const WorkerSetup setup = {.what = "policy python",
                             .kind = "policy",
                             .module = config_text(options, "module"),
                             .callable = config_text(options, "callable")};
  return io_worker_start(&setup, tick, out);
}

static Status python_policy_check_ready(const Config *options, Tick tick) {
  SCOPED(Worker, worker, io_worker_end);
  return python_policy_start_worker(options, tick, &worker);
}

static Status python_create(Policy *self) {
  const PolicySetup *setup = &self->setup;
  const size_t d = (size_t)setup->problem->d, runs = (size_t)setup->runs,
               lanes = runs * (size_t)(setup->draws > 0 ? setup->draws : 1);
  Python *state;
  ALLOCATE(self->memory, state, 1);
  self->state = state;
  ALLOCATE(self->memory, state->taken, runs);
  ALLOCATE(self->memory, state->row, runs * (d + 1));
  ALLOCATE(self->memory, state->answer, 1 + lanes * d);
  ALLOCATE(self->memory, state->theta, d * runs);
  TRY(python_policy_start_worker(setup->options, setup->tick, &state->worker));
  Begin begin = {.seed = setup->seed,
                 .first_run = setup->first_run,
                 .runs = setup->runs,
                 .d = setup->problem->d,
                 .arms = setup->problem->arms,
                 .rounds = setup->draws > 0 ? setup->observations : setup->problem->rounds,
                 .noise = likelihood_noise(setup->likelihood)};
  snprintf(begin.likelihood, sizeof begin.likelihood, "%s", setup->likelihood->ops->name);
  io_worker_send(&state->worker, &begin, sizeof begin);
  return STATUS_OK;
}

static void python_destroy(Policy *self) {
  Python *state = self->state;
  if (state) io_worker_end(&state->worker);
}

/* Asks the worker for theta[d, B max(M, 1)] after this many rounds. Sends what every run has observed since
 * the last request, with rows of 0 for runs that have observed less than others. */
static Status ask_worker(Policy *self, const History *history, int rounds, int draws, double *theta) {
  Python *state = self->state;
  const size_t d = (size_t)history->d, runs = (size_t)history->runs,
               lanes = runs * (size_t)(draws > 0 ? draws : 1);
  Request request = {.rows = history->rounds - state->sent, .rounds = rounds, .draws = draws};
  char where[40];
  io_worker_send(&state->worker, &request, sizeof request);
  for (; state->sent < history->rounds; state->sent++) {
    for (size_t b = 0; b < runs; b++) {
      double *row = state->row + b * (d + 1);
      memset(row, 0, (d + 1) * sizeof *row);
      if (state->taken[b] < history_observations(history, (int)b))
        row[d] = history_observation(history, (int)b, state->taken[b]++, 1, row);
    }
    io_worker_send(&state->worker, state->row, runs * (d + 1) * sizeof *state->row);
  }
  snprintf(where, sizeof where, ", round %d", rounds + 1);
  TRY(io_worker_receive(&state->worker, where, (1 + lanes * d) * sizeof *state->answer, state->answer));
  self->elsewhere += state->answer[0];
  io_dataset_transpose((int)lanes, (int)d, state->answer + 1, theta);
  return STATUS_OK;
}

static Status python_choose(Policy *self, const World *world, const History *history, double *probability,
                            int *arm, int64_t *fallbacks) {
  Python *state = self->state;
  (void)probability, (void)fallbacks;
  const int rounds = (int)world->round - 1;
  state->worker.done = (double)rounds / self->setup.problem->rounds;
  TRY(ask_worker(self, history, rounds, 0, state->theta));
  world_greedy(world, state->theta, NULL, arm);
  return STATUS_OK;
}

static Status python_draw(Policy *self, const History *history, double *theta) {
  Python *state = self->state;
  state->worker.done = (double)history->rounds / self->setup.observations;
  return ask_worker(self, history, history->rounds, self->setup.draws, theta);
}

static const ConfigKey keys[] = {
    {TEXT("module", NULL, "name of the Python module, found in the current folder or through PYTHONPATH")},
    {TEXT("callable", NULL,
          "its function (x[runs, t, d], y[runs, t], rng, about) -> theta[runs, d], or theta[runs, "
          "about.draws, d]; docs/python.md")},
    {.name = NULL}};

const PolicyOps policy_python = {
    .name = "python",
    .summary =
        "Thompson sampling with a sampler of your own in Python, in a separate process for each rank: slow",
    .reference = "docs/python.md",
    .one_theta = true,
    .by_observation = true,
    .keys = keys,
    .create = python_create,
    .choose = python_choose,
    .draw = python_draw,
    .ready = python_policy_check_ready,
    .destroy = python_destroy,
};

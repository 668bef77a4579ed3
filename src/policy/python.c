/* The user's own sampler, written in Python, with the Thompson rule: a callable in a module gets what the
 * runs of a block observed and returns one theta for each of them, or M draws in a study of posteriors. Each
 * block has its own process, which runs analysis/thompson/worker.py and starts with nothing in its memory, so
 * that its draws depend on no other block; its random numbers are named by (seed, first run, round). */
#include "io/config/config_rows.h"
#include "policy/policy.h"
#include "policy/python_worker.h"
#include "problem/world.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child process, and a socket to it. */
typedef struct {
  pid_t process; /* 0: none */
  int socket;
  Tick tick; /* called with the share `done` while we wait for the process */
  double done;
  bool given_up; /* the tick said so */
} Child;

/* Results must not depend on where the worker runs: one thread, and a fixed order of sets. */
static const char *const environment[][2] = {{"PYTHONHASHSEED", "0"},
                                             {"OMP_NUM_THREADS", "1"},
                                             {"OPENBLAS_NUM_THREADS", "1"},
                                             {"MKL_NUM_THREADS", "1"}};

/* Starts arguments[0], searched for in PATH, with arguments[] that end with NULL. Its standard input is the
 * socket, its standard output is our standard error, and it inherits no descriptors beyond these. It ends
 * when the calling thread does, and ignores the signals that ask a job to stop, which we handle. A program
 * that cannot be started closes the socket. Returns STATUS_INTERNAL if no socket or no process can be
 * created. The caller must call python_policy_end_worker. */
static Status python_policy_start_process(const char *const *arguments, Tick tick, Child *out) {
  static const int ours[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
  int ends[2];
  *out = (Child){.socket = -1, .tick = tick};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return status_set(STATUS_INTERNAL, "cannot create a socket: %s", strerror(errno));
  const pid_t parent = getpid(), process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_FAILURE);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) signal(ours[i], SIG_IGN);
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
      setenv(environment[i][0], environment[i][1], 0);
    dup2(ends[1], STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    execvp(arguments[0], (char *const *)arguments);
    _exit(EXIT_FAILURE);
  }
  const int error = errno;
  close(ends[1]);
  out->socket = ends[0];
  if (process < 0) return status_set(STATUS_INTERNAL, "cannot start a process: %s", strerror(error));
  out->process = process;
  return STATUS_OK;
}

/* Sends or receives bytes[size]. Returns false if the child has closed the socket, or the tick, which is
 * asked while we wait, has given up. */
static bool python_policy_transfer(Child *child, bool sends, void *bytes, size_t size) {
  enum { TICK_MS = 50 };
  for (char *rest = bytes; size > 0;) {
    struct pollfd end = {.fd = child->socket, .events = sends ? POLLOUT : POLLIN};
    while (poll(&end, 1, TICK_MS) <= 0) {
      child->given_up = !core_tick_goes_on(child->tick, child->done);
      if (child->given_up) return false;
    }
    const ssize_t moved = sends ? send(child->socket, rest, size, MSG_NOSIGNAL | MSG_DONTWAIT)
                                : recv(child->socket, rest, size, 0);
    const bool again = moved < 0 ? errno == EINTR || (sends && errno == EAGAIN) : moved > 0 || sends;
    if (!again) return false;
    if (moved <= 0) continue;
    rest += moved;
    size -= (size_t)moved;
  }
  return true;
}

/* Ends the child, by force if necessary, and writes how it had ended before that: "ended by signal 9
 * (Killed)", or "closed its connection" if it had not: a process that closed the socket because it ended has
 * an exit status within a second. With size 0 it is killed at once, and nothing is written. */
static void python_policy_end_worker(Child *child, size_t size, char *how) {
  enum { TRIES = 100, NAP = 10 * 1000 * 1000 /* nanoseconds */ };
  int status = 0;
  const int tries = child->process > 0 && size > 0 && !child->given_up ? TRIES : 0;
  bool ended = false;
  for (int i = 0; i < tries && !ended; i++) {
    ended = waitpid(child->process, &status, WNOHANG) == child->process;
    if (!ended) nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
  }
  if (child->process > 0 && !ended) {
    kill(child->process, SIGKILL);
    while (waitpid(child->process, NULL, 0) < 0 && errno == EINTR) continue;
  }
  if (child->socket >= 0) close(child->socket);
  child->process = 0;
  child->socket = -1;
  if (size == 0) return;
  if (!ended)
    snprintf(how, size, "closed its connection");
  else if (WIFSIGNALED(status))
    snprintf(how, size, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(how, size, "ended with status %d", WEXITSTATUS(status));
}

enum { SENTENCE = 400 };

/* Both sides run on one machine, so numbers are sent as they are in memory. */
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

enum { ANSWER_OK, ANSWER_ERROR };

typedef struct {
  int64_t kind, size; /* bytes that follow: seconds and theta[B, d], or a sentence */
} Answer;

typedef struct {
  Child child;
  int sent, *taken; /* rounds that the worker knows of; [B], observations in them */
  double *row; /* [B, d + 1]: phi and y of a round */
  double *answer; /* [1 + B M d]: seconds, theta */
  double *theta; /* [d, B] */
} Python;

static Status python_refuse(const Config *options, const char *where, const char *sentence) {
  return status_set(STATUS_INPUT, "policy python: module %s, callable %s%s: %s",
                    config_text(options, "module"), config_text(options, "callable"), where, sentence);
}

/* Receives the result of a request, `size` bytes, from the worker; if that fails, writes a sentence and
 * returns false. */
static bool python_policy_receive_answer(Child *child, size_t size, void *bytes, char *sentence) {
  Answer answer;
  const bool whole = python_policy_transfer(child, false, &answer, sizeof answer);
  if (whole && answer.kind == ANSWER_OK && (size_t)answer.size == size) {
    if (python_policy_transfer(child, false, bytes, size)) return true;
  } else if (whole && answer.kind == ANSWER_ERROR && answer.size < SENTENCE) {
    sentence[answer.size] = '\0';
    if (python_policy_transfer(child, false, sentence, (size_t)answer.size)) return false;
  }
  char how[SENTENCE / 2] = "sent an invalid answer";
  python_policy_end_worker(child, whole ? 0 : sizeof how, how);
  snprintf(sentence, SENTENCE, "its process %s", how);
  return false;
}

/* Starts the worker under the interpreter of THOMPSON_PYTHON, or else under the first usual one that is a
 * Python with NumPy, which its first answer says; the second is about the user's module. */
static Status python_policy_start_worker(const Config *options, Tick tick, Child *child) {
  static const char *const usual[] = {"python3", "/usr/bin/python3"};
  const char *named = getenv("THOMPSON_PYTHON"), *module = config_text(options, "module"),
             *callable = config_text(options, "callable");
  char sentence[SENTENCE];
  bool found = false;
  for (int i = 0; i < (named ? 1 : 2); i++) {
    if (found || child->given_up) break;
    const char *const arguments[] = {named ? named : usual[i], "-c", python_worker, module, callable, NULL};
    TRY(python_policy_start_process(arguments, tick, child));
    found = python_policy_receive_answer(child, 0, NULL, sentence);
  }
  if (found && python_policy_receive_answer(child, 0, NULL, sentence)) return STATUS_OK;
  if (child->given_up) return status_set(STATUS_STOPPED, "stopped");
  if (found) return python_refuse(options, "", sentence);
  if (named)
    return status_set(
        STATUS_INPUT,
        "policy python: %s, from the environment variable THOMPSON_PYTHON, is not a Python with NumPy",
        named);
  return status_set(STATUS_INPUT, "policy python: neither python3 in PATH nor /usr/bin/python3 is a Python "
                                  "with NumPy; name one in the environment variable THOMPSON_PYTHON");
}

static Status python_policy_check_ready(const Config *options, Tick tick) {
  Child child = {.socket = -1};
  Status status = python_policy_start_worker(options, tick, &child);
  python_policy_end_worker(&child, 0, NULL);
  return status;
}

static Status python_create(Policy *self) {
  const PolicySetup *setup = &self->setup;
  const size_t d = (size_t)setup->problem->d, runs = (size_t)setup->runs,
               lanes = runs * (size_t)(setup->draws > 0 ? setup->draws : 1);
  Python *state;
  ALLOCATE(self->memory, state, 1);
  self->state = state;
  state->child = (Child){.socket = -1};
  ALLOCATE(self->memory, state->taken, runs);
  ALLOCATE(self->memory, state->row, runs * (d + 1));
  ALLOCATE(self->memory, state->answer, 1 + lanes * d);
  ALLOCATE(self->memory, state->theta, d * runs);
  TRY(python_policy_start_worker(setup->options, setup->tick, &state->child));
  Begin begin = {.seed = setup->seed,
                 .first_run = setup->first_run,
                 .runs = setup->runs,
                 .d = setup->problem->d,
                 .arms = setup->problem->arms,
                 .rounds = setup->draws > 0 ? setup->observations : setup->problem->rounds,
                 .noise = likelihood_noise(setup->likelihood)};
  snprintf(begin.likelihood, sizeof begin.likelihood, "%s", setup->likelihood->ops->name);
  /* If the worker has ended, the first answer will say how. */
  python_policy_transfer(&state->child, true, &begin, sizeof begin);
  return STATUS_OK;
}

static void python_destroy(Policy *self) {
  Python *state = self->state;
  if (state) python_policy_end_worker(&state->child, 0, NULL);
}

/* Asks the worker for theta[d, B max(M, 1)] after this many rounds. Sends what every run has observed since
 * the last request, with rows of 0 for runs that have observed less than others. */
static Status ask_worker(Policy *self, const History *history, int rounds, int draws, double *theta) {
  Python *state = self->state;
  const size_t d = (size_t)history->d, runs = (size_t)history->runs,
               lanes = runs * (size_t)(draws > 0 ? draws : 1);
  Request request = {.rows = history->rounds - state->sent, .rounds = rounds, .draws = draws};
  char sentence[SENTENCE], where[40];
  python_policy_transfer(&state->child, true, &request, sizeof request);
  for (; state->sent < history->rounds; state->sent++) {
    for (size_t b = 0; b < runs; b++) {
      double *row = state->row + b * (d + 1);
      memset(row, 0, (d + 1) * sizeof *row);
      if (state->taken[b] < history_observations(history, (int)b))
        row[d] = history_observation(history, (int)b, state->taken[b]++, 1, row);
    }
    python_policy_transfer(&state->child, true, state->row, runs * (d + 1) * sizeof *state->row);
  }
  if (!python_policy_receive_answer(&state->child, (1 + lanes * d) * sizeof *state->answer, state->answer,
                                    sentence)) {
    snprintf(where, sizeof where, ", round %d", rounds + 1);
    return state->child.given_up ? status_set(STATUS_STOPPED, "stopped%s", where)
                                 : python_refuse(self->setup.options, where, sentence);
  }
  self->elsewhere += state->answer[0];
  io_dataset_transpose((int)lanes, (int)d, state->answer + 1, theta);
  return STATUS_OK;
}

static Status python_choose(Policy *self, const World *world, const History *history, double *probability,
                            int *arm, int64_t *fallbacks) {
  Python *state = self->state;
  (void)probability, (void)fallbacks;
  const int rounds = (int)world->round - 1;
  state->child.done = (double)rounds / self->setup.problem->rounds;
  TRY(ask_worker(self, history, rounds, 0, state->theta));
  world_greedy(world, state->theta, NULL, arm);
  return STATUS_OK;
}

static Status python_draw(Policy *self, const History *history, double *theta) {
  Python *state = self->state;
  state->child.done = (double)history->rounds / self->setup.observations;
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

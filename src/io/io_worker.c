#include "io/io_worker.h"

#include "core/clock.h"
#include "io/worker_source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SHARED = STDERR_FILENO + 1, SENTENCE = 400 };

/* Results must not depend on where the worker runs: one thread, and a fixed order of sets. A rank without
 * neighbours need not have been numbered. The memory of arrays that are freed after each call is kept for the
 * next one: to be given new pages costs about as much as to fill them. */
static const char *const environment[][2] = {{"PYTHONHASHSEED", "0"},
                                             {"OMP_NUM_THREADS", "1"},
                                             {"OPENBLAS_NUM_THREADS", "1"},
                                             {"MKL_NUM_THREADS", "1"},
                                             {"THOMPSON_LOCAL_RANK", "0"},
                                             {"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                                             {"MALLOC_TRIM_THRESHOLD_", "1073741824"}};

/* ---- the process */

/* Becomes arguments[0], searched for in PATH. Its standard input is the socket, its standard output and error
 * are the pipe, and it inherits no other descriptor but that of shared memory. It ends when the thread that
 * forked does, leads a group of its own, so that what it forks can be ended too, and ignores the signals that
 * ask a job to stop, which we handle. A program that cannot be started closes the socket. */
static void io_worker_become(const char *const *arguments, pid_t parent, int socket, int output, int shared) {
  static const int ours[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  setpgid(0, 0);
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) signal(ours[i], SIG_IGN);
  for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
    setenv(environment[i][0], environment[i][1], 0);
  dup2(socket, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  /* SHARED may be one of the ends, which are no longer needed. */
  if (shared == SHARED) fcntl(SHARED, F_SETFD, 0);
  if (shared > SHARED) dup2(shared, SHARED);
  close_range(shared > 0 ? SHARED + 1 : SHARED, ~0U, 0);
  execvp(arguments[0], (char *const *)arguments);
  _exit(EXIT_FAILURE);
}

/* Starts arguments[], which end with NULL. Returns STATUS_INTERNAL if no socket, pipe or process can be
 * created. */
static Status io_worker_start_process(const char *const *arguments, Worker *self) {
  int ends[2], output[2];
  io_worker_end(self);
  self->given_up = self->late = false;
  self->said_size = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return status_set(STATUS_INTERNAL, "cannot create a socket: %s", strerror(errno));
  self->socket = ends[0];
  if (pipe2(output, O_CLOEXEC) != 0) {
    const int error = errno;
    close(ends[1]);
    return status_set(STATUS_INTERNAL, "cannot create a pipe: %s", strerror(error));
  }
  self->output = output[0];
  fcntl(self->output, F_SETFL, O_NONBLOCK);
  const pid_t parent = getpid(), process = fork();
  if (process == 0) io_worker_become(arguments, parent, ends[1], output[1], self->setup.shared);
  const int error = errno;
  if (process > 0) setpgid(process, process); /* whoever comes first */
  close(ends[1]);
  close(output[1]);
  self->process = process > 0 ? process : 0;
  return process > 0 ? STATUS_OK : status_set(STATUS_INTERNAL, "cannot start a process: %s", strerror(error));
}

static void io_worker_close(int *descriptor) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
}

/* Returns whether the process has ended by itself; its status is still there. */
static bool io_worker_has_ended(const Worker *self) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)self->process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* Ends the worker and what it has forked; with `how`[size], first gives it a second to end by itself, because
 * a process that closed the socket because it ended has an exit status within that, and writes how it did:
 * "ended by signal 9 (Killed)", or "closed its connection" if it did not. */
static void io_worker_end_process(Worker *self, size_t size, char *how) {
  enum { TRIES = 100, NAP = 10 * 1000 * 1000 /* nanoseconds */ };
  const int tries = how ? TRIES : 0;
  int status = 0;
  bool ended = false;
  for (int i = 0; i < tries; i++) {
    ended = io_worker_has_ended(self);
    if (ended) break;
    nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
  }
  kill(self->process, SIGKILL);
  kill(-self->process, SIGKILL);
  while (waitpid(self->process, &status, 0) < 0 && errno == EINTR) continue;
  self->process = 0;
  if (!how) return;
  if (!ended)
    snprintf(how, size, "closed its connection");
  else if (WIFSIGNALED(status))
    snprintf(how, size, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(how, size, "ended with status %d", WEXITSTATUS(status));
}

void io_worker_end(Worker *self) {
  if (!self->setup.what) return;
  if (self->process > 0) io_worker_end_process(self, 0, NULL);
  io_worker_close(&self->socket);
  io_worker_close(&self->output);
}

/* ---- what it prints */

/* Keeps the end of what was kept and these bytes[size]. */
static void io_worker_keep(Worker *self, size_t size, const char *bytes) {
  const size_t fresh = size < WORKER_SAID ? size : WORKER_SAID, room = WORKER_SAID - fresh;
  const size_t kept = self->said_size < room ? self->said_size : room;
  memmove(self->said, self->said + self->said_size - kept, kept);
  memcpy(self->said + kept, bytes + size - fresh, fresh);
  self->said_size = kept + fresh;
}

/* Writes bytes[size] to our standard error, as far as it takes them. */
static void io_worker_pass_on(size_t size, const char *bytes) {
  while (size > 0) {
    const ssize_t written = write(STDERR_FILENO, bytes, size);
    if (written <= 0) return;
    bytes += written;
    size -= (size_t)written;
  }
}

/* Passes on what the worker has printed since the last call, at most as much as a pipe holds, because it may
 * never stop, and keeps the end of it. */
static void io_worker_listen(Worker *self) {
  enum { PAGES = 16 };
  char bytes[4096];
  for (int page = 0; page < PAGES; page++) {
    const ssize_t size = self->output >= 0 ? read(self->output, bytes, sizeof bytes) : -1;
    if (size == 0) io_worker_close(&self->output);
    if (size <= 0) return;
    io_worker_pass_on((size_t)size, bytes);
    io_worker_keep(self, (size_t)size, bytes);
  }
}

/* Writes the end of what the worker has printed, in one line, or nothing if it has printed nothing. */
static void io_worker_quote(const Worker *self, size_t size, char *out) {
  size_t used = 0;
  for (size_t i = 0; i < self->said_size && used + 1 < size; i++) {
    const unsigned char c = (unsigned char)self->said[i];
    const bool blank = isspace(c) || !isprint(c);
    if (!blank || (used > 0 && out[used - 1] != ' ')) out[used++] = blank ? ' ' : (char)c;
  }
  while (used > 0 && out[used - 1] == ' ') used--;
  out[used] = '\0';
}

/* ---- the channel */

/* Waits until the socket can be written or read. Returns false if the worker has ended, which a process that
 * it forked can hide, if the tick, which is asked while we wait, has given up, or if the limit has passed;
 * time during which this process was suspended does not count. */
static bool io_worker_await(Worker *self, short events) {
  enum { TICK_MS = 50 };
  double waited = 0, last = clock_wall();
  for (;;) {
    struct pollfd ends[] = {{.fd = self->socket, .events = events}, {.fd = self->output, .events = POLLIN}};
    const bool ended = io_worker_has_ended(self);
    poll(ends, 2, TICK_MS);
    if (ends[1].revents) io_worker_listen(self);
    if (ends[0].revents) return true;
    if (ended) return false;
    const double now = clock_wall();
    waited += fmin(now - last, 1);
    last = now;
    self->late = self->limit > 0 && waited > self->limit;
    self->given_up = !core_tick_goes_on(self->tick, self->done);
    if (self->late || self->given_up) return false;
  }
}

/* Sends or receives bytes[size]. Returns false if the worker has closed the socket, or does not answer. */
static bool io_worker_transfer(Worker *self, bool sends, void *bytes, size_t size) {
  for (char *rest = bytes; size > 0;) {
    if (!io_worker_await(self, sends ? POLLOUT : POLLIN)) return false;
    const ssize_t moved = sends ? send(self->socket, rest, size, MSG_NOSIGNAL | MSG_DONTWAIT)
                                : recv(self->socket, rest, size, 0);
    const bool again = moved < 0 ? errno == EINTR || (sends && errno == EAGAIN) : moved > 0 || sends;
    if (!again) return false;
    if (moved <= 0) continue;
    rest += moved;
    size -= (size_t)moved;
  }
  return true;
}

void io_worker_send(Worker *self, const void *bytes, size_t size) {
  io_worker_transfer(self, true, (void *)(uintptr_t)bytes, size);
}

enum { ANSWER_OK, ANSWER_ERROR };

/* Both sides run on one machine, so numbers are sent as they are in memory. */
typedef struct {
  int64_t kind, size; /* bytes that follow: the answer, or a sentence */
} Answer;

/* Receives an answer, bytes[size]; if that fails, ends the worker, writes a sentence and returns false. */
static bool io_worker_receive_answer(Worker *self, size_t size, void *bytes, char *sentence) {
  Answer answer;
  ASSERT(self->process > 0);
  const bool whole = io_worker_transfer(self, false, &answer, sizeof answer);
  bool reported = false;
  if (whole && answer.kind == ANSWER_OK && (size_t)answer.size == size) {
    if (io_worker_transfer(self, false, bytes, size)) return true;
  } else if (whole && answer.kind == ANSWER_ERROR && answer.size >= 0 && answer.size < SENTENCE) {
    sentence[answer.size] = '\0';
    reported = io_worker_transfer(self, false, sentence, (size_t)answer.size);
  }
  const bool waits = whole || self->given_up || self->late;
  char how[SENTENCE / 2] = "sent an invalid answer";
  io_worker_end_process(self, sizeof how, waits ? NULL : how);
  io_worker_listen(self);
  io_worker_close(&self->socket);
  io_worker_close(&self->output);
  if (self->late)
    snprintf(sentence, SENTENCE, "did not answer within %g s", self->limit);
  else if (!reported)
    snprintf(sentence, SENTENCE, "its process %s", how);
  return false;
}

static Status io_worker_refuse(const Worker *self, const char *where, const char *sentence) {
  char said[WORKER_SAID + 1];
  io_worker_quote(self, sizeof said, said);
  if (self->given_up) return status_set(STATUS_STOPPED, "stopped%s", where);
  return status_set(STATUS_INPUT, "%s: module %s, callable %s%s: %s%s%s", self->setup.what,
                    self->setup.module, self->setup.callable, where, sentence,
                    said[0] ? "; its output ends with: " : "", said);
}

Status io_worker_receive(Worker *self, const char *where, size_t size, void *bytes) {
  char sentence[SENTENCE];
  if (io_worker_receive_answer(self, size, bytes, sentence)) return STATUS_OK;
  return io_worker_refuse(self, where, sentence);
}

/* Finds a Python with NumPy, which the first answer says, and then the user's module, which the second one is
 * about. */
Status io_worker_start(const WorkerSetup *setup, Tick tick, Worker *out) {
  static const char *const usual[] = {"python3", "/usr/bin/python3"};
  const char *named = getenv("THOMPSON_PYTHON");
  char sentence[SENTENCE];
  bool found = false;
  *out = (Worker){.setup = *setup, .socket = -1, .output = -1, .tick = tick};
  for (int i = 0; i < (named ? 1 : 2); i++) {
    if (found || out->given_up) break;
    const char *const arguments[] = {
        named ? named : usual[i], "-u", "-c", worker_source, setup->kind, setup->module,
        setup->callable,          NULL};
    TRY(io_worker_start_process(arguments, out));
    found = io_worker_receive_answer(out, 0, NULL, sentence);
  }
  if (found) {
    TRY(io_worker_receive(out, "", 0, NULL));
    out->limit = setup->limit;
    return STATUS_OK;
  }
  if (out->given_up) return status_set(STATUS_STOPPED, "stopped");
  if (named)
    return status_set(STATUS_INPUT,
                      "%s: %s, from the environment variable THOMPSON_PYTHON, is not a Python with NumPy",
                      setup->what, named);
  return status_set(STATUS_INPUT,
                    "%s: neither python3 in PATH nor /usr/bin/python3 is a Python with NumPy; name one in "
                    "the environment variable THOMPSON_PYTHON",
                    setup->what);
}

#include "policy/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What it computes must not depend on where it runs: one thread, and sets in one order. */
static const char *const environment[][2] = {{"PYTHONHASHSEED", "0"},
                                             {"OMP_NUM_THREADS", "1"},
                                             {"OPENBLAS_NUM_THREADS", "1"},
                                             {"MKL_NUM_THREADS", "1"}};

static void become(const char *const *arguments, pid_t parent, int socket) {
  static const int ours[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) signal(ours[i], SIG_IGN);
  for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
    setenv(environment[i][0], environment[i][1], 0);
  dup2(socket, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  execvp(arguments[0], (char *const *)arguments);
  _exit(EXIT_FAILURE);
}

Status child_start(const char *const *arguments, Tick tick, Child *out) {
  int ends[2];
  *out = (Child){.socket = -1, .tick = tick};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return status_set(STATUS_INTERNAL, "cannot make a socket: %s", strerror(errno));
  const pid_t parent = getpid(), process = fork();
  if (process == 0) become(arguments, parent, ends[1]);
  const int error = errno;
  close(ends[1]);
  out->socket = ends[0];
  if (process < 0) return status_set(STATUS_INTERNAL, "cannot start a process: %s", strerror(error));
  out->process = process;
  return STATUS_OK;
}

/* Waits until there is something to read, or room to write; false when the tick gives up. */
static bool wait_for_socket(Child *child, short event) {
  enum { TICK_MS = 50 };
  struct pollfd end = {.fd = child->socket, .events = event};
  while (poll(&end, 1, TICK_MS) <= 0) {
    if (tick_goes_on(child->tick, child->done)) continue;
    child->given_up = true;
    return false;
  }
  return true;
}

bool child_send(Child *child, const void *bytes, size_t size) {
  for (const char *rest = bytes; size > 0;) {
    if (!wait_for_socket(child, POLLOUT)) return false;
    const ssize_t sent = send(child->socket, rest, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (sent > 0) rest += sent, size -= (size_t)sent;
  }
  return true;
}

bool child_receive(Child *child, void *bytes, size_t size) {
  for (char *rest = bytes; size > 0;) {
    if (!wait_for_socket(child, POLLIN)) return false;
    const ssize_t received = recv(child->socket, rest, size, 0);
    if (received == 0 || (received < 0 && errno != EINTR)) return false;
    if (received > 0) rest += received, size -= (size_t)received;
  }
  return true;
}

/* Returns whether a process that closed the socket has ended by itself: it then has a status of its own
 * within moments. */
static bool ends_by_itself(pid_t process, int *status) {
  enum { TRIES = 100 };
  for (int i = 0; i < TRIES; i++) {
    if (waitpid(process, status, WNOHANG) == process) return true;
    nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
  }
  return false;
}

void child_end(Child *child, size_t size, char *how) {
  int status = 0;
  const bool ended =
      child->process > 0 && size > 0 && !child->given_up && ends_by_itself(child->process, &status);
  if (child->process > 0 && !ended) {
    kill(child->process, SIGKILL);
    while (waitpid(child->process, NULL, 0) < 0 && errno == EINTR) continue;
  }
  if (child->socket >= 0) close(child->socket);
  child->process = 0, child->socket = -1;
  if (size == 0) return;
  if (!ended)
    snprintf(how, size, "closed its connection");
  else if (WIFSIGNALED(status))
    snprintf(how, size, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(how, size, "ended with status %d", WEXITSTATUS(status));
}

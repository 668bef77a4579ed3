#include "policy/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

Status child_start(const char *const *arguments, Child *out) {
  int ends[2];
  *out = (Child){.socket = -1};
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

bool child_send(const Child *child, const void *bytes, size_t size) {
  for (const char *rest = bytes; size > 0;) {
    const ssize_t sent = send(child->socket, rest, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) rest += sent, size -= (size_t)sent;
  }
  return true;
}

bool child_receive(const Child *child, void *bytes, size_t size) {
  for (char *rest = bytes; size > 0;) {
    const ssize_t received = recv(child->socket, rest, size, 0);
    if (received == 0 || (received < 0 && errno != EINTR)) return false;
    if (received > 0) rest += received, size -= (size_t)received;
  }
  return true;
}

void child_end(Child *child, size_t size, char *how) {
  int status = 0;
  if (child->process > 0) {
    kill(child->process, SIGKILL); /* a process that closed the socket by ending keeps its own status */
    while (waitpid(child->process, &status, 0) < 0 && errno == EINTR) continue;
  }
  if (child->socket >= 0) close(child->socket);
  *child = (Child){.socket = -1};
  if (size == 0) return;
  if (WIFSIGNALED(status))
    snprintf(how, size, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(how, size, "ended with status %d", WEXITSTATUS(status));
}

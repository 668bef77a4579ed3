#include "parallel/isolate.h"

#include "core/clock.h"
#include "parallel/journal.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 20 };

/* What the two processes share; the parts of the result follow. */
typedef struct {
  volatile double fraction;
  Status status;
  RunStatus run_status;
  char sentence[2048];
} Report;

/* Copies the parts of a result, with its message, to the bytes after the report, or back. */
static void isolated_task_copy_parts(const Study *study, bool to_report, Report *report, TaskResult *result) {
  JournalPart parts[JOURNAL_PARTS];
  char *at = (char *)(report + 1);
  journal_list_payload(study, RUN_FAILED, result, parts);
  for (int i = 0; i < JOURNAL_PARTS; at += parts[i++].size)
    memcpy(to_report ? at : parts[i].bytes, to_report ? parts[i].bytes : at, parts[i].size);
}

/* In the child. */

static bool isolated_task_put_fraction(void *context, double fraction) {
  Report *report = context;
  report->fraction = fraction;
  return true;
}

static void isolated_task_run_in_child(pid_t parent, const Study *study, const Task *task,
                                       const char *directory, Report *report, TaskResult *result) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  report->status = study_run_task(study, task, directory, (Tick){isolated_task_put_fraction, report}, result);
  snprintf(report->sentence, sizeof report->sentence, "%s", status_message());
  isolated_task_copy_parts(study, true, report, result);
  report->run_status = result->status;
  _exit(EXIT_SUCCESS);
}

/* In the rank. */

typedef enum { ENDED, STOPPED, LATE } Outcome;

/* Waits until the child closes its end of the pipe by ending, in whatever way, or until `tick` or the timeout
 * stops it. */
static Outcome isolated_task_wait(int pipe_end, const Report *report, double timeout, Tick tick) {
  double elapsed = 0, last = clock_wall();
  for (;;) {
    struct pollfd end = {.fd = pipe_end, .events = POLLIN};
    /* in short steps near the end: a timeout can be shorter than a tick */
    if (poll(&end, 1, (int)fmin(TICK_MS, 1 + 1000 * (timeout - elapsed))) > 0) return ENDED;
    double now = clock_wall();
    elapsed += fmin(now - last, 1); /* a longer gap: this process was suspended, and the child with it */
    last = now;
    if (!core_tick_goes_on(tick, report->fraction)) return STOPPED;
    if (elapsed > timeout) return LATE;
  }
}

static int isolated_task_reap(pid_t process) {
  int how = 0;
  while (waitpid(process, &how, 0) < 0 && errno == EINTR) continue;
  return how;
}

static Status isolated_task_conclude(const Study *study, Report *report, Outcome outcome, int how,
                                     double timeout, TaskResult *result) {
  char message[256] = "";
  if (outcome == STOPPED) return status_set(STATUS_STOPPED, "stopped");
  if (outcome == LATE)
    snprintf(message, sizeof message,
             "not finished within the %g s of --task-timeout (%.0f%% of its rounds done)", timeout,
             100 * report->fraction);
  else if (WIFSIGNALED(how))
    snprintf(message, sizeof message, "its process was killed by signal %d (%s)", WTERMSIG(how),
             strsignal(WTERMSIG(how)));
  else if (WEXITSTATUS(how) != EXIT_SUCCESS)
    snprintf(message, sizeof message, "its process exited with status %d", WEXITSTATUS(how));
  if (message[0]) return study_result_fail(study, message, result);
  if (report->status != STATUS_OK) return status_set(report->status, "%s", report->sentence);
  isolated_task_copy_parts(study, false, report, result);
  result->status = report->run_status;
  return STATUS_OK;
}

static Status isolated_task_fork(const Study *study, const Task *task, const char *directory, double timeout,
                                 Tick tick, Report *report, TaskResult *result) {
  int ends[2];
  if (pipe(ends) != 0) return status_set(STATUS_INTERNAL, "cannot create a pipe: %s", strerror(errno));
  pid_t parent = getpid(), process = fork();
  if (process == 0) {
    close(ends[0]);
    isolated_task_run_in_child(parent, study, task, directory, report, result);
  }
  int error = errno;
  close(ends[1]);
  Status status;
  if (process < 0) {
    status = status_set(STATUS_INTERNAL, "cannot start a process for a task: %s", strerror(error));
  } else {
    Outcome outcome = isolated_task_wait(ends[0], report, timeout, tick);
    if (outcome != ENDED) kill(process, SIGKILL);
    status = isolated_task_conclude(study, report, outcome, isolated_task_reap(process), timeout, result);
  }
  close(ends[0]);
  return status;
}

Status isolate_run_task(const Study *study, const Task *task, const char *directory, double timeout,
                        Tick tick, TaskResult *result) {
  JournalPart parts[JOURNAL_PARTS];
  size_t size = sizeof(Report) + (size_t)journal_list_payload(study, RUN_FAILED, result, parts);
  Report *report = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (report == MAP_FAILED)
    return status_set(STATUS_INTERNAL, "out of memory: %zu bytes for a task: %s", size, strerror(errno));
  Status status = isolated_task_fork(study, task, directory, timeout, tick, report, result);
  munmap(report, size);
  return status;
}

/* A process beside this one, and a socket to it. */
#pragma once

#include "core/status.h"
#include "core/tick.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
  pid_t process; /* 0: none */
  int socket;
  Tick tick; /* asked while the process lets wait, with the share `done` */
  double done;
  bool given_up; /* the tick said so */
} Child;

/* Starts arguments[0], looked for in PATH, with arguments[] that end with NULL. Its standard input is the
 * socket, its standard output our standard error, and no other descriptor goes over to it. It ends when
 * the calling thread does; signals that ask a job to stop are for us. A program that cannot be started
 * closes the socket. STATUS_INTERNAL: there is no room for a process. The caller ends with child_end. */
Status child_start(const char *const *arguments, Tick tick, Child *out);
/* Returns false when the child has closed the socket, or the tick gave up. */
bool child_send(Child *child, const void *bytes, size_t size);
bool child_receive(Child *child, void *bytes, size_t size);
/* Ends the child, in whatever way, and writes how it had ended before that: "ended by signal 9 (Killed)", or
 * "closed its connection" if it had not. With size 0 nothing is written, and it is not waited for. */
void child_end(Child *child, size_t size, char *how);

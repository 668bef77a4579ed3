/* A user's own code in Python: a process beside this one, and the channel to it.
 *
 * The process runs analysis/thompson/worker.py, which imports a module and serves a callable in it: a sampler
 * (policy/python.c) or a denoising oracle (model/prior/prior_oracle_process.c). Every worker starts with
 * nothing in its memory, so what it answers depends on nothing but what it is asked. It is asked over a
 * socket; large arrays may lie in memory that both processes see. What it prints is passed on to our standard
 * error, and the end of it is part of the message if it fails. */
#pragma once

#include "core/core_tick.h"

#include <stddef.h>
#include <sys/types.h>

/* What is served, and what messages call it. */
typedef struct {
  const char *what; /* "policy python" */
  const char *kind; /* of the worker: "policy" or "oracle" */
  const char *module, *callable;
  int shared; /* descriptor of shared memory, which is the worker's descriptor 3; 0: none */
  double limit; /* seconds that an answer may take once the callable is found; 0: any number */
} WorkerSetup;

enum { WORKER_SAID = 160 /* bytes of its output that are kept */ };

/* A child process, and a socket to it. */
typedef struct {
  WorkerSetup setup;
  pid_t process; /* 0: none */
  int socket, output; /* where to ask it, and what it prints; -1: closed */
  Tick tick; /* called with the share `done` while we wait for the process */
  double done;
  double limit; /* seconds that an answer may take now */
  bool given_up, late; /* the tick said so; the limit has passed */
  char said[WORKER_SAID]; /* the end of what it has printed */
  size_t said_size;
} Worker;

/* Starts a worker under the interpreter of THOMPSON_PYTHON, or else under
 * the first usual one that is a Python with NumPy, and waits until the callable is found. Returns
 * STATUS_INPUT with one sentence if there is no interpreter or no callable, STATUS_STOPPED if the tick stops
 * the wait. The caller must call io_worker_end in any case. */
Status io_worker_start(const WorkerSetup *setup, Tick tick, Worker *out);
/* Sends bytes[size]. If the worker has ended, the next answer will say how. */
void io_worker_send(Worker *self, const void *bytes, size_t size);
/* Receives the answer to a request, bytes[size]. Returns STATUS_INPUT with one sentence, which contains
 * `where` (", round 3"), if there is none: the worker raised an exception, ended, sent something else, or
 * took too long. Returns STATUS_STOPPED if the tick stops the wait. */
Status io_worker_receive(Worker *self, const char *where, size_t size, void *bytes);
/* Ends the worker by force; allowed on a zeroed one and on one that has ended. */
void io_worker_end(Worker *self);

/* The ranks of a job. Only this folder calls MPI. */
#pragma once

#include "core/status.h"

#include <stddef.h>

typedef struct {
  int rank, size;
} Parallel;

/* Starts MPI (once), alone or under mpiexec or srun. Collective. */
Parallel parallel_begin(void);
/* Ends MPI, once this rank has written everything. All ranks wait for each other; a crash inside MPI_Finalize
 * does not change the `outcome` (parallel/crash.h). Collective. */
void parallel_end(Status outcome);

/* Agrees on an outcome: every rank brings its own, and all return that of the lowest rank that failed, with
 * its message. Collective. */
Status parallel_agree(const Parallel *parallel, Status mine);
/* Sends rank 0's bytes to all. Collective. */
void parallel_broadcast(void *bytes, size_t size);
/* Sends *text of rank 0 to all; the other ranks get an allocated copy to free(). Collective. */
Status parallel_broadcast_text(const Parallel *parallel, char **text);
/* Combines the bytes of all ranks by bitwise or, on every rank; exact where only one rank has non-zero bytes.
 * Collective. */
void parallel_collect(const Parallel *parallel, void *bytes, size_t size);
/* Sends bytes from one rank to another, or receives them; both call. */
void parallel_send(int to, const void *bytes, size_t size);
void parallel_receive(int from, void *bytes, size_t size);
/* Returns the sum over ranks, on every rank. Collective. */
double parallel_sum(double mine);
/* Sums n values likewise, in place. Collective. */
void parallel_sum_all(size_t n, double *values);
void parallel_barrier(void);
/* Writes the name of the MPI library: "Open MPI v4.1.4 ...". */
void parallel_library(size_t size, char *text);

/* What the files of this folder that call MPI share. */
#pragma once

#include "core/status.h"

#include <mpi.h>
#include <stddef.h>

/* Agrees on an outcome, or sums, or sends bytes of the first rank, as parallel.h says of all ranks, but over
 * those of a communicator. */
Status parallel_agree_over(MPI_Comm members, Status mine);
void parallel_sum_all_over(MPI_Comm members, size_t n, double *values);
void parallel_broadcast_over(MPI_Comm members, void *bytes, size_t size);

/* Returns the communicator of this rank's group (parallel/group.h). */
MPI_Comm group_communicator(void);

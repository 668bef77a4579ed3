/* Crashes that must not count: those of the MPI library at the end of a job whose work is done and written.
 */
#pragma once

#include "core/status.h"

/* Makes crashes count as `outcome` until crash_counts_again(): a segmentation fault or bus error in any
 * thread prints a message and its stack and ends this process with `outcome`. So does the passing of a
 * minute, with another message and no stack. Under mpiexec this also decides the job's status if
 * OMPI_MCA_orte_allowed_exit_without_sync is 1 (jobs/environment.sh); otherwise mpiexec may report 1, and
 * MPICH's kills the ranks that have not ended.
 *
 * Open MPI may crash while it stops its threads (its issue 10117: about once in a thousand jobs, on busy
 * machines). The launcher would otherwise report a job as failed although all its results are written, and a
 * rank that crashed may leave another one waiting in MPI_Finalize for ever. */
void crash_counts_as(Status outcome);
/* Makes crashes what they were before. */
void crash_counts_again(void);

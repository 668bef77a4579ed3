/* A crash that must not count. Open MPI may crash while it stops its threads (its issue 10117: once in about
 * a thousand jobs, on busy machines), and the launcher would then report as failed a job whose results are
 * all written; and a rank that crashed there can leave another one waiting in MPI_Finalize for ever. */
#pragma once

#include "core/status.h"

/* Makes crashes count as `outcome` until crash_counts_again(): a segmentation fault or bus error of any
 * thread prints a sentence and its stack and ends this process with `outcome`; so does a minute's time, with
 * a sentence. Under mpiexec that is the job's status too where OMPI_MCA_orte_allowed_exit_without_sync is 1
 * (jobs/environment.sh); otherwise mpiexec may report 1, and MPICH's kills the ranks that have not ended. */
void crash_counts_as(Status outcome);
void crash_counts_again(void);

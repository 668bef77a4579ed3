/* A table of tests on several ranks: only the first prints, and all leave with the same exit status. */
#pragma once

#include "harness.h"
#include "parallel/parallel.h"

/* Runs tests[] as harness_run does, on every rank, between parallel_begin and parallel_end; returns the exit
 * status. */
int mpi_harness_main(const char *suite, CU_TestInfo *tests);

/* When a job should end before its work is done: a signal of the scheduler, or a time limit. */
#pragma once

#include <stdbool.h>

/* Makes SIGTERM, SIGUSR1 and SIGUSR2 ask for an end from now on, and writing beyond a limit on file sizes
 * an error instead of a death. */
void shutdown_catch_signals(void);

/* Sets a limit: the work should be over `seconds` from now. The earliest of several limits counts. */
void shutdown_limit(double seconds);
/* Sets a limit a little before Slurm's end of the job (SLURM_JOB_END_TIME), when it names one. */
void shutdown_limit_of_scheduler(void);

/* Returns whether the work should end: no new one is begun. */
bool shutdown_asked(void);
/* Returns the seconds until the limit; INFINITY without one. */
double shutdown_time_left(void);

/* When a job should end before its work is done: a signal of the scheduler, or a time limit. */
#ifndef APP_SHUTDOWN_H
#define APP_SHUTDOWN_H

#include <stdbool.h>

/* From now on SIGTERM, SIGUSR1 and SIGUSR2 ask for an end, and writing beyond a limit on file sizes is an
 * error instead of a death. */
void shutdown_catch_signals(void);

/* The work should be over `seconds` from now. The earliest of several limits counts. */
void shutdown_limit(double seconds);
/* A little before Slurm's end of the job (SLURM_JOB_END_TIME), when it names one. */
void shutdown_limit_of_scheduler(void);

/* Whether the work should end: no new one is begun. */
bool shutdown_asked(void);
/* Seconds until the limit; INFINITY without one. */
double shutdown_time_left(void);

#endif

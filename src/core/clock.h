/* Clocks, in seconds. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

/* CPU time of this process. */
double clock_cpu(void);
/* A wall clock that never jumps. */
double clock_wall(void);

#endif

/* Clocks, in seconds. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

/* Returns the CPU time of this process. */
double clock_cpu(void);
/* Returns a wall clock that never jumps. */
double clock_wall(void);

#endif

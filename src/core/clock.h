/* Clocks, in seconds. */
#pragma once

/* Returns the CPU time of this process. */
double clock_cpu(void);
/* Returns the time since 1970. */
double clock_date(void);
/* Returns the time on a wall clock that never jumps. */
double clock_wall(void);

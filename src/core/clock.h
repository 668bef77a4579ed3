/* Clocks, in seconds. */
#pragma once

/* Returns the CPU time of this process; where that is limited (ulimit -t), of this thread, because Linux then
 * counts that of the process in ticks of milliseconds. */
double clock_cpu(void);
/* Returns the time since 1970. */
double clock_date(void);
/* Returns the time on a wall clock that never jumps. */
double clock_wall(void);

/* CPU time of what is done between calls of timer_start and timer_stop. */
typedef struct {
  double seconds; /* until the last stop */
  double since; /* clock_cpu at the last start */
} Timer;

void timer_start(Timer *timer);
void timer_stop(Timer *timer);

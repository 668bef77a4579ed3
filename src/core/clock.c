#include "core/clock.h"

#include <time.h>

static double clock_read_seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double clock_cpu(void) { return clock_read_seconds(CLOCK_PROCESS_CPUTIME_ID); }
double clock_date(void) { return clock_read_seconds(CLOCK_REALTIME); }
double clock_wall(void) { return clock_read_seconds(CLOCK_MONOTONIC); }

void timer_start(Timer *timer) { timer->since = clock_cpu(); }
void timer_stop(Timer *timer) { timer->seconds += clock_cpu() - timer->since; }

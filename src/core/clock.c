#include "core/clock.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

static double clock_read_seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static clockid_t cpu_clock = CLOCK_PROCESS_CPUTIME_ID;

static void clock_choose(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    cpu_clock = CLOCK_THREAD_CPUTIME_ID;
}

double clock_cpu(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, clock_choose);
  return clock_read_seconds(cpu_clock);
}
double clock_date(void) { return clock_read_seconds(CLOCK_REALTIME); }
double clock_wall(void) { return clock_read_seconds(CLOCK_MONOTONIC); }

void timer_start(Timer *timer) { timer->since = clock_cpu(); }
void timer_stop(Timer *timer) { timer->seconds += clock_cpu() - timer->since; }

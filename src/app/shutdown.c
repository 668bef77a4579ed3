#include "app/shutdown.h"

#include "core/clock.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static const double MARGIN = 15; /* seconds before the scheduler's end of the job: to write and to leave */

static volatile sig_atomic_t signalled;
static double deadline = INFINITY; /* by clock_wall */

static void on_signal(int number) { signalled = number; }

void shutdown_catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  signal(SIGXFSZ, SIG_IGN);
}

void shutdown_limit(double seconds) { deadline = fmin(deadline, clock_wall() + seconds); }

void shutdown_limit_of_scheduler(void) {
  const char *text = getenv("SLURM_JOB_END_TIME");
  double left = text ? strtod(text, NULL) - (double)time(NULL) : 0;
  if (left > 0) shutdown_limit(fmax(left - MARGIN, 0)); /* one in the past: the job was given more time */
}

bool shutdown_asked(void) { return signalled != 0 || shutdown_time_left() <= 0; }

double shutdown_time_left(void) { return deadline - clock_wall(); }

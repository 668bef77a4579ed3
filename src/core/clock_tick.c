#include "core/clock_tick.h"

static _Thread_local Tick of_thread;

Tick clock_tick_exchange(Tick tick) {
  const Tick before = of_thread;
  of_thread = tick;
  return before;
}

bool clock_tick_allows(void) { return clock_tick_goes_on(of_thread, 0); }

Status clock_tick_check(void) {
  return clock_tick_allows() ? STATUS_OK : status_set(STATUS_STOPPED, "stopped while fitting a prior");
}

#include "core/tick.h"

static _Thread_local Tick of_thread;

Tick tick_exchange(Tick tick) {
  const Tick before = of_thread;
  of_thread = tick;
  return before;
}

bool tick_allows(void) { return tick_goes_on(of_thread, 0); }

Status tick_check(void) {
  return tick_allows() ? STATUS_OK : status_set(STATUS_STOPPED, "stopped while fitting a prior");
}

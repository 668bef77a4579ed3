#include "core/core_tick.h"

static _Thread_local Tick of_thread;

Tick core_tick_exchange(Tick tick) {
  const Tick before = of_thread;
  of_thread = tick;
  return before;
}

bool core_tick_allows(double fraction_done) { return core_tick_goes_on(of_thread, fraction_done); }

Status core_tick_check(double fraction_done) {
  return core_tick_allows(fraction_done) ? STATUS_OK
                                         : status_set(STATUS_STOPPED, "stopped while fitting a prior");
}

/* In place of transport.cpp in a build without LEMON. */
#include "metric/transport.h"

#include <stddef.h>

bool transport_is_available(void) { return false; }

Status transport_create(int n, int m, Transport **out) {
  *out = NULL;
  return status_set(STATUS_INPUT,
                    "the earth mover's distance between %d and %d points needs LEMON, which this program was "
                    "built without",
                    n, m);
}

void transport_destroy(Transport *transport) { (void)transport; }

Status transport_solve(Transport *transport, const double *cost, int stride, double largest, double *mean,
                       double *v) {
  (void)transport, (void)cost, (void)stride, (void)largest, (void)mean, (void)v;
  ASSERT(transport_is_available());
  return STATUS_OK;
}

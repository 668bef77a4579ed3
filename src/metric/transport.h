/* The transportation problem between n and m points with equal weights at each end: LEMON's network simplex
 * (Dezso, Juttner and Kovacs 2011; Kovacs 2015) behind a C interface. */
#ifndef METRIC_TRANSPORT_H
#define METRIC_TRANSPORT_H

#ifdef __cplusplus
extern "C" {
#endif

#include "core/status.h"

#include <stdbool.h>

typedef struct Transport Transport;

/* False in a build without LEMON, in which transport_create is STATUS_INPUT. */
bool transport_is_available(void);

/* For n sources and m sinks; about 100 bytes for each pair. The caller ends with transport_destroy. */
Status transport_create(int n, int m, Transport **out);
void transport_destroy(Transport *transport);

/* The least mean cost, sum of flow times cost over n m, with costs cost[n, stride] in [0, largest], and the
 * dual variables v[m] of the sinks. Costs are rounded to integers below 2^60 / (n + m), for which the simplex
 * is exact; the mean is that of the costs themselves. */
Status transport_solve(Transport *transport, const double *cost, int stride, double largest, double *mean,
                       double *v);

#ifdef __cplusplus
}
#endif

#endif

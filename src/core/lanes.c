#include "core/lanes.h"

#include <stddef.h>
#include <string.h>

void lanes_gather(int rows, int lanes, int count, const int *lane, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int m = 0; m < count; m++) to[i * count + m] = from[i * lanes + lane[m]];
}

void lanes_scatter(int rows, int lanes, int count, const int *lane, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int m = 0; m < count; m++) to[i * lanes + lane[m]] = from[i * count + m];
}

void lanes_repeat(int rows, int lanes, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) to[(ptrdiff_t)i * lanes + n] = from[i];
}

void lanes_copy(int rows, int count, const double *from, int from_lanes, double *to, int to_lanes) {
  for (int i = 0; i < rows; i++)
    memcpy(to + (ptrdiff_t)i * to_lanes, from + (ptrdiff_t)i * from_lanes, (size_t)count * sizeof *to);
}

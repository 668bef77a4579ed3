#include "core/lanes.h"

void lanes_gather(int rows, int lanes, int count, const int *lane, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int m = 0; m < count; m++) to[i * count + m] = from[i * lanes + lane[m]];
}

void lanes_scatter(int rows, int lanes, int count, const int *lane, const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int m = 0; m < count; m++) to[i * lanes + lane[m]] = from[i * count + m];
}

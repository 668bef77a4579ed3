#include "parallel/schedule.h"

double schedule_speed(int count, const ScheduleLine *lines, int line) {
  double cost = lines[line].cost, seconds = lines[line].seconds;
  for (int i = 0; i < count && lines[line].cost == 0; i++) cost += lines[i].cost, seconds += lines[i].seconds;
  return cost > 0 ? seconds / cost : 0;
}

int schedule_choose(int count, const ScheduleLine *lines, int rank) {
  int longest = -1;
  double most = -1;
  for (int i = 0; i < count; i++) {
    const int line = (rank + i) % count;
    if (lines[line].next == 0) continue;
    if (!lines[line].begun) return line;
    const double speed = schedule_speed(count, lines, line);
    const double expected = lines[line].next * (speed > 0 ? speed : 1);
    if (expected > most) most = expected, longest = line;
  }
  return longest;
}

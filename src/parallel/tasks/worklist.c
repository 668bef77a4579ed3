#include "parallel/tasks/worklist.h"

#include <math.h>

enum { MOST_VISITS = 8 };
enum { GROUP = 1024 }; /* ranks, each of which visits some thirty counters a second */

static const double BATCH_SECONDS = 1;
/* The part of a rank's share of the remaining work that it takes at once, as in guided self-scheduling
 * (Polychronopoulos and Kuck, IEEE Trans. Computers C-36, 1987), where it is 1. A batch may then last twice
 * as long as expected before others wait for it. */
static const double BATCH_SHARE = 0.5;

int worklist_groups(int ranks) { return (ranks + GROUP - 1) / GROUP; }

int worklist_group_of_rank(int rank, int ranks, int groups) { return (int)((long)rank * groups / ranks); }

int worklist_visits(int groups) { return groups < MOST_VISITS ? groups : MOST_VISITS; }

int worklist_part(int count, int group, int groups) { return (count - group + groups - 1) / groups; }

double worklist_speed(int count, const WorkLine *lines, int line) {
  double size = lines[line].size, seconds = lines[line].seconds;
  for (int i = 0; i < count && lines[line].size == 0; i++) size += lines[i].size, seconds += lines[i].seconds;
  return size > 0 ? seconds / size : 0;
}

int worklist_choose(int count, const WorkLine *lines, int rank) {
  int longest = -1;
  double most = -1;
  for (int i = 0; i < count; i++) {
    const int line = (rank + i) % count;
    if (lines[line].left <= 0) continue;
    if (!lines[line].begun) return line;
    const double speed = worklist_speed(count, lines, line);
    const double expected = lines[line].next * (speed > 0 ? speed : 1);
    if (expected <= most) continue;
    most = expected;
    longest = line;
  }
  return longest;
}

int worklist_batch(int count, const WorkLine *lines, int line, double ranks) {
  if (lines[line].size == 0) return 1;
  double remaining = 0; /* seconds, an upper bound: no task of a line is longer than its next */
  for (int i = 0; i < count; i++)
    if (lines[i].left > 0) remaining += worklist_speed(count, lines, i) * lines[i].next * lines[i].left;
  const double expected = worklist_speed(count, lines, line) * lines[line].next;
  const double part =
      BATCH_SHARE * lines[line].left / ranks; /* for tasks too short for the counters' clock */
  const double batch = expected > 0 ? fmin(BATCH_SECONDS, BATCH_SHARE * remaining / ranks) / expected : part;
  return (int)fmax(1, fmin(batch, lines[line].left));
}

/* Groups of ranks that work side by side. A rank is in one group at most. Before group_begin, and after
 * group_end, all ranks are one group. */
#pragma once

#include "core/status.h"

#include <stddef.h>

/* Puts this rank into a group; number < 0: into none, where only group_end may follow. Ranks keep their
 * order. Collective over all ranks. */
void group_begin(int number);
/* Leaves the group. Collective over the group. */
void group_end(void);

/* Returns the place of this rank in its group, or how many ranks the group has. */
int group_rank(void);
int group_size(void);

/* Agrees on an outcome within the group, as parallel_agree does. Collective over the group, as are the next
 * two.
 */
Status group_agree(Status mine);
/* Sums n values over the group, in place. */
void group_sum_all(size_t n, double *values);
/* Sends bytes of the first rank to the others. */
void group_broadcast(void *bytes, size_t size);

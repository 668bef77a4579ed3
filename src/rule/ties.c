#include "rule/ties.h"

#include <math.h>

/* Returns the ticket of an arm, in (0, 1). */
static double ties_ticket(const RngLanes *ties, uint32_t lane, int arm) {
  Rng rng = rng_of_lane(ties, lane);
  double ticket;
  rng.position = (uint32_t)arm;
  rng_uniform(&rng, 1, &ticket);
  return ticket;
}

bool ties_arm_wins(const RngLanes *ties, uint32_t lane, int arm, int other) {
  return ties_ticket(ties, lane, arm) > ties_ticket(ties, lane, other);
}

int ties_best_arm(const RngLanes *ties, uint32_t lane, int arms, const double *index, size_t stride) {
  double top = -INFINITY;
  int best = 0;
  for (int k = 0; k < arms; k++, index += stride) {
    if (!(*index > top || (*index == top && ties_arm_wins(ties, lane, k, best)))) continue;
    top = *index;
    best = k;
  }
  return best;
}

void ties_share(int arms, const double *index, size_t stride, double *share) {
  double top = -INFINITY;
  int tied = 0;
  for (int k = 0; k < arms; k++) top = fmax(top, index[(size_t)k * stride]);
  for (int k = 0; k < arms; k++) tied += index[(size_t)k * stride] == top;
  for (int k = 0; k < arms; k++)
    share[k] = tied > 0 ? (index[(size_t)k * stride] == top) / (double)tied : 1.0 / arms;
}

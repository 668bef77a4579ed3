/* Arms that come and go: which of K arms each of several runs, agents or events has. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
  int count; /* K */
  const unsigned char *available; /* [runs, K], 0 for arms that a run does not have; NULL: each run has all */
} ArmSet;

static inline bool arms_has(ArmSet arms, int run, int arm) {
  return !arms.available || arms.available[(size_t)run * (size_t)arms.count + (size_t)arm];
}

/* Returns how many arms a run has. */
static inline int arms_number(ArmSet arms, int run) {
  int number = 0;
  if (!arms.available) return arms.count;
  for (int k = 0; k < arms.count; k++) number += arms_has(arms, run, k);
  return number;
}

/* Returns the arm that is number `place`, from 0, among those that a run has. */
static inline int arms_at(ArmSet arms, int run, int place) {
  int arm = 0;
  if (!arms.available) return place;
  while (place > 0 || !arms_has(arms, run, arm)) {
    place -= arms_has(arms, run, arm);
    arm++;
  }
  return arm;
}

/* Sets index[K], whose entries are `stride` apart, to NAN for the arms that a run does not have: no
 * comparison makes them the best. */
static inline void arms_withhold(ArmSet arms, int run, size_t stride, double *index) {
  if (!arms.available) return;
  for (int k = 0; k < arms.count; k++)
    if (!arms_has(arms, run, k)) index[(size_t)k * stride] = NAN;
}

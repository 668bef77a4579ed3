#include "policy/policy_network_arms.h"

#include "model/network/network_kernel.h"

/* Runs whose weights and features are gathered together: the number of values in a cache line. */
enum { TOGETHER = VECTOR_LANES };

Status policy_network_arms_create(Arena *memory, const NetworkShape *shape, int arms, NetworkArms *out) {
  const size_t d = (size_t)shape->width[0];
  *out = (NetworkArms){.shape = *shape, .lanes = (arms + NETWORK_GRAIN - 1) / NETWORK_GRAIN * NETWORK_GRAIN};
  ALLOCATE(memory, out->theta, TOGETHER * network_parameters(shape));
  ALLOCATE(memory, out->features, TOGETHER * d * (size_t)out->lanes);
  ALLOCATE(memory, out->score, out->lanes);
  ALLOCATE(memory, out->workspace, network_workspace(shape));
  return STATUS_OK;
}

/* Copies row[runs] of runs first .. first + count - 1 to to[count], whose entries are `apart` from each
 * other. */
static inline void policy_network_copy_runs(const double *row, size_t first, size_t count, size_t apart,
                                            float *to) {
  for (size_t r = 0; r < count; r++) to[r * apart] = (float)row[first + r];
}

void policy_network_arms_best(NetworkArms *arms, const World *world, const double *theta, int *arm) {
  const size_t d = (size_t)world->problem->d, runs = (size_t)world->runs, lanes = (size_t)arms->lanes;
  const size_t count = (size_t)world->problem->arms, parameters = network_parameters(&arms->shape);
  for (size_t first = 0; first < runs; first += TOGETHER) {
    const size_t together = runs - first < TOGETHER ? runs - first : TOGETHER;
    for (size_t i = 0; i < parameters; i++)
      policy_network_copy_runs(theta + i * runs, first, together, parameters, arms->theta + i);
    for (size_t k = 0; k < count; k++)
      for (size_t i = 0; i < d; i++)
        policy_network_copy_runs(world->features + (k * d + i) * runs, first, together, d * lanes,
                                 arms->features + i * lanes + k);
    for (size_t r = 0; r < together; r++) {
      int *best = &arm[first + r];
      network_forward(&arms->shape, arms->theta + r * parameters, arms->lanes, arms->features + r * d * lanes,
                      arms->score, arms->workspace);
      *best = 0;
      for (int k = 1; k < world->problem->arms; k++)
        if (arms->score[k] > arms->score[*best]) *best = k;
    }
  }
}

#include "policy/network_arms.h"

#include "core/arena.h"

#include <stdlib.h>

Status network_arms_create(Arena *memory, const NetworkShape *shape, int arms, NetworkArms *out) {
  const size_t d = (size_t)shape->width[0];
  *out = (NetworkArms){.shape = *shape, .lanes = (arms + NETWORK_GRAIN - 1) / NETWORK_GRAIN * NETWORK_GRAIN};
  ALLOCATE(memory, out->theta, network_parameters(shape));
  ALLOCATE(memory, out->features, d * (size_t)out->lanes);
  ALLOCATE(memory, out->score, out->lanes);
  ALLOCATE(memory, out->workspace, network_workspace(shape));
  return STATUS_OK;
}

void network_arms_best(NetworkArms *arms, const World *world, const double *theta, int *arm) {
  const size_t d = (size_t)world->problem->d, runs = (size_t)world->runs, lanes = (size_t)arms->lanes;
  const size_t count = (size_t)world->problem->arms, parameters = network_parameters(&arms->shape);
  for (size_t b = 0; b < runs; b++) {
    for (size_t i = 0; i < parameters; i++) arms->theta[i] = (float)theta[i * runs + b];
    for (size_t i = 0; i < d; i++)
      for (size_t k = 0; k < count; k++)
        arms->features[i * lanes + k] = (float)world->features[(k * d + i) * runs + b];
    network_forward(&arms->shape, arms->theta, arms->lanes, arms->features, arms->score, arms->workspace);
    arm[b] = 0;
    for (int k = 1; k < world->problem->arms; k++)
      if (arms->score[k] > arms->score[arm[b]]) arm[b] = k;
  }
}

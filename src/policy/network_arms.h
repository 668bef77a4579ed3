/* The Thompson rule where the mean reward is a network: the arm whose features give the largest output. */
#ifndef POLICY_NETWORK_ARMS_H
#define POLICY_NETWORK_ARMS_H

#include "model/network.h"
#include "problem/problem.h"

typedef struct {
  NetworkShape shape;
  int lanes; /* K rounded up to whole NETWORK_LANES */
  float *theta, *features, *score, *workspace; /* [p], [d, lanes], [lanes], network_workspace: of one run */
} NetworkArms;

/* Ends with network_arms_destroy, also after a failure. */
Status network_arms_create(const NetworkShape *shape, int arms, NetworkArms *out);
void network_arms_destroy(NetworkArms *arms);
/* arm[B], the first of equals; theta[p, B]. */
void network_arms_best(NetworkArms *arms, const World *world, const double *theta, int *arm);

#endif

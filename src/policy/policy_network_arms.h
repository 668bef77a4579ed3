/* The Thompson rule for a mean reward that is a network: the arm whose features give the largest output. */
#pragma once

#include "core/arena.h"
#include "model/network/network.h"
#include "problem/problem.h"

typedef struct {
  NetworkShape shape;
  int lanes; /* K rounded up to whole NETWORK_GRAINs */
  float *theta, *features; /* [p] and [d, lanes], of several runs one after the other */
  float *score, *workspace; /* [lanes], network_workspace: of one run */
} NetworkArms;

Status policy_network_arms_create(Arena *memory, const NetworkShape *shape, int arms, NetworkArms *out);
/* Finds the best arm of each run, arm[B], the first on ties; theta[p, B]. */
void policy_network_arms_best(NetworkArms *arms, const World *world, const double *theta, int *arm);

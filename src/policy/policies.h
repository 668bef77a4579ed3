/* Internal to src/policy: the members of the registry in policy.c. */
#ifndef POLICY_POLICIES_H
#define POLICY_POLICIES_H

#include "policy/policy.h"

/* Thompson sampling with any sampler (thompson.c); the sampler gives name and options. */
extern const PolicyOps policy_thompson;
/* The same with a posterior for each arm (per_arm.c). */
extern const PolicyOps policy_per_arm;

/* The policies that do not sample. */
extern const PolicyOps policy_linucb, policy_glm_ucb, policy_egreedy, policy_random, policy_oracle;

#endif

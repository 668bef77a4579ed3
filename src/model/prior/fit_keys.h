/* The settings of a prior's fit, read from keys. */
#pragma once

#include "model/prior/prior.h"

/* The keys of a fit, without the prefix that they have in a study file; the last name is NULL. */
extern const ConfigKey fit_keys[];

/* Returns the settings of a fit, from keys with this prefix ("prior." in a study, "" in `train`); settings
 * that are `auto` are left to the family (prior_settle). */
PriorFit fit_of_keys(const Config *config, const char *prefix, uint64_t seed, uint32_t replicate);

/* Reads the settings from key=value texts, with defaults for the rest; `what` names their source in
 * messages. */
Status fit_of_options(const char *what, int count, const char *const *texts, uint64_t seed, PriorFit *out);

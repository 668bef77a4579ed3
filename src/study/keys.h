/* The one table of keys of a study file: name, type, range, default, unit, help. */
#ifndef STUDY_KEYS_H
#define STUDY_KEYS_H

#include "io/config/config.h"
#include "model/prior.h"

/* The keys of a study file; ends with a NULL name. */
extern const ConfigKey study_keys[];
/* The schema of a study file: study_keys, and the registered policies with their options. */
extern const ConfigSchema study_schema;
/* The keys `prior.*` alone, without the prefix, for `train --option`. */
const ConfigKey *study_prior_keys(void);

/* The settings of a fit, from keys with this prefix ("prior." in a study, "" in `train`); what is `auto` is
 * left to the family (prior_settle). */
PriorFit study_prior_fit(const Config *config, const char *prefix, uint64_t seed, uint32_t replicate);

#endif

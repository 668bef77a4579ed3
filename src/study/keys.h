/* The one table of keys of a study file: name, type, range, default, unit, help. */
#pragma once

#include "io/config/config.h"

/* The keys of a study file; ends with a NULL name. */
extern const ConfigKey study_keys[];
/* The schema of a study file: study_keys, and the registered policies with their options. */
extern const ConfigSchema study_schema;

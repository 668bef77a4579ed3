/* Tables of keys as JSON: for `thompson list --json`, and as a JSON schema of study files, by which editors
 * complete and check them (JSON Schema, draft 2020-12). */
#pragma once

#include "io/config/config.h"

#include <jansson.h>

/* Makes a list of objects: name, type, default, help, and where there are any minimum, maximum, words,
 * unit, fixed. */
json_t *keys_json(const ConfigKey *keys);
/* Makes the schema of study files; names of policies and their options included. */
json_t *keys_schema(const ConfigSchema *study);

/* Tables of keys as JSON: for `thompson list --json`, and as a JSON schema with which editors complete and
 * check study files (JSON Schema, draft 2020-12). */
#pragma once

#include "io/config/config.h"

#include <jansson.h>

/* Makes a list of objects with name, type, default and help, and, if the key has them, minimum, maximum,
 * words, unit and fixed. */
json_t *app_keys_json(const ConfigKey *keys);
/* Makes the schema of study files, including the names of policies and their options. */
json_t *app_keys_schema(const ConfigSchema *study);

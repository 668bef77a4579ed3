/* A small table of keys and policies for the tests of study files: every type, every kind of limit. */
#pragma once

#include "io/config/config.h"

/* Keys of a study, options of the policy vits2, and both together. */
extern const ConfigKey toy_keys[], toy_vits_keys[];
extern const ConfigSchema toy_schema;

/* Return the names that a list of words has besides those of its key; NULL behind the last. */
const char *toy_theta(int index);
const char *toy_policy(int index);

/* Parses with up to three --set; NULL ends them. */
Status toy_parse(const char *text, const char *a, const char *b, const char *c, StudyFile **out);

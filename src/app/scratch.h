/* A temporary folder like that of a run, for priors that are fitted for a measurement. */
#pragma once

#include "core/status.h"

enum { SCRATCH_PATH = 2048 };

/* Makes it, with its folder of priors, in TMPDIR or /tmp. The caller ends with scratch_destroy, also after
 * an error: `folder` is empty where none was made, and nothing is removed. */
Status scratch_create(char folder[SCRATCH_PATH]);
void scratch_destroy(const char *folder);

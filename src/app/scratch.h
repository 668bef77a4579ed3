/* A temporary folder, laid out like the folder of a run, for priors that are fitted for a measurement. */
#pragma once

#include "core/status.h"

enum { SCRATCH_PATH = 2048 };

/* Makes the folder, with one for priors inside it, in TMPDIR or /tmp. The caller must call scratch_destroy,
 * even after an error: if none was made, `folder` is empty and nothing is removed. */
Status scratch_create(char folder[SCRATCH_PATH]);
void scratch_destroy(const char *folder);

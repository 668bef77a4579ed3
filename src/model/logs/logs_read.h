/* Logs of past tasks from a file that a user gives (io/logs_file.h). */
#pragma once

#include "io/digest.h"
#include "model/logs/logs.h"

/* Returns STATUS_INPUT, with the place, also where a reward is not one of the likelihood. progress(done,
 * total), NULL allowed, is called now and then. */
Status logs_read(Arena *memory, const char *path, const Likelihood *likelihood, bool estimate_noise,
                 void (*progress)(double done, double total), Logs *out);
/* Computes the digest of all that a fit depends on. */
Status logs_digest(const Logs *logs, char out[DIGEST_SIZE]);

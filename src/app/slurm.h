/* A Slurm batch script for a study, for `thompson plan --slurm`. */
#pragma once

#include "app/app.h"
#include "app/estimate.h"

/* Prints the script. `directory` NULL: the default. As many ranks as end in about an hour, but no more
 * than a tenth of the tasks, on nodes like this machine; half as much time and memory again as estimated. */
void slurm_print(const Study *study, const Estimate *estimate, const char *path, const char *directory,
                 const AppTexts *sets);

/* DIR/prior_samples.nc: samples of the true distribution of theta* and of the learned prior with a reverse
 * chain (the family diffusion), for the upper rows of the papers' figures. */
#pragma once

#include "study/study.h"

/* Writes theta(setting, source, sample, dim) with source = true, diffusion; NaN where a setting has no such
 * prior or fewer dimensions. A prior that cannot be read is reported on stderr and left out. STATUS_FILE when
 * the file cannot be written. One rank calls this. */
Status prior_samples_write(const Study *study, const char *directory);

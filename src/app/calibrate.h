/* A short measurement in place of an assumed speed: the priors of the first setting are fitted with a few
 * training steps in a temporary folder, and each policy runs its first block for a part of a few seconds. */
#pragma once

#include "app/app.h"
#include "app/estimate.h"

/* Measures the study that `text` and `sets` describe. A policy whose block fails keeps the assumed speed,
 * and stderr says so. Collective. The caller ends with speed_destroy. */
Status calibrate(const Parallel *parallel, const char *path, const char *text, const AppTexts *sets,
                 Speed *out);

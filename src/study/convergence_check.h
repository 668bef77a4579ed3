/* What a convergence study takes, and what it sets itself: everything else is refused, because it would
 * change nothing. */
#pragma once

#include "study/study.h"

/* Creates `options` of a policy with those that the study sets, so that `observe` is one step of size h =
 * step_size on the target as it is. */
Status convergence_options(Arena *memory, const Config *options, Config **out);

/* Returns STATUS_INPUT where the method does not step towards a target, or an option is neither at its
 * default nor what the study sets; where a key of the world or of priors is not at its default. */
Status convergence_check_policy(const PolicyMethod *method, const Config *options);
Status convergence_check_setting(const Study *study, const Config *setting, const Problem *problem);

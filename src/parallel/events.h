/* Event logs of a bandit study (the key event_log): what a policy met, took and got in a setting, in run
 * order, as DIR/events/SETTING-POLICY.nc. Features are those of the world, which is played again; arms,
 * rewards and probabilities are in the finished tasks. */
#pragma once

#include "parallel/finished.h"

/* Checks that each log of the study has a name that a folder takes: STATUS_INPUT otherwise. */
Status events_check(const Study *study);
/* Writes the logs of all runs that succeeded, of the first blocks[setting_count] of each setting. For one
 * rank. */
Status events_write(Finished *finished, const int *blocks);

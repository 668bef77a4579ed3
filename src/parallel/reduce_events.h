/* Event logs of a bandit study (the key event_log): the features, arms and rewards that a policy met in a
 * setting, in run order, as DIR/events/SETTING-POLICY.nc. Features are those of the world, which is replayed;
 * arms, rewards and probabilities come from the finished tasks. */
#pragma once

#include "parallel/finished.h"

/* Checks that the name of each log is short enough for a file: STATUS_INPUT otherwise. */
Status reduce_events_check(const Study *study);
/* Writes the logs of all successful runs in the first blocks[setting_count] blocks of each setting. Called on
 * one rank. */
Status reduce_events_write(Finished *finished, const int *blocks);

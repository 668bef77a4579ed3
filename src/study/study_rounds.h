/* Which rounds of a bandit are kept in its curves (the key rounds_kept): journals, results and all statistics
 * have these alone, whereas event logs and alarms see every round. They depend on problem.rounds and the key,
 * and on nothing else. */
#pragma once

#include "io/config/config.h"

/* Returns how many rounds of a setting are kept. */
int study_rounds_kept(const Config *setting);
/* Returns kept round number `point`, from 0 on. */
int study_rounds_kept_at(const Config *setting, int point);
/* Checks the key in a setting: STATUS_INPUT if its list does not increase, keeps none of the rounds, or has
 * one that no setting of the file has. */
Status study_rounds_check(const StudyFile *file, const Config *setting);

/* Keys that have another value than their default, but no effect on a study. */
#pragma once

#include "study/study.h"

/* Returns whether a key has no effect in a setting, and writes why: part of a sentence. */
bool study_key_is_unused(const Study *study, const Config *setting, const char *key, size_t size, char *why);
/* Calls `note` with one sentence for each such key: one that other kinds of studies or families of problems
 * use, but not those of this study in any setting, or that other keys rule out; and for each policy that the
 * sweep does not change in some settings. */
Status study_unused_note(const Study *study, void (*note)(const char *sentence));

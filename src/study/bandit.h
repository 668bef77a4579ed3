/* The bandit study: full simulations of a contextual bandit, cumulative regret by round (DiffTS paper,
 * Section 6). Listed by study.c. */
#ifndef STUDY_BANDIT_H
#define STUDY_BANDIT_H

#include "study/study.h"

extern const StudyOps study_bandit;

#endif

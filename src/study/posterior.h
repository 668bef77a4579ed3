/* The posterior study: how far every sampler's draws are from the exact posterior, with no bandit at all
 * (DiffTS paper, Appendix C.4 and Figure 7). Listed by study.c. */
#ifndef STUDY_POSTERIOR_H
#define STUDY_POSTERIOR_H

#include "study/study.h"

extern const StudyOps study_posterior;

#endif

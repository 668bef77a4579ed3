/* How many steps an iterative method takes to reach a Gaussian target (VITS paper, Appendices F and I).
 * Listed by study.c. */
#ifndef STUDY_CONVERGENCE_H
#define STUDY_CONVERGENCE_H

#include "study/study.h"

extern const StudyOps study_convergence;

#endif

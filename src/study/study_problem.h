/* The problem of a setting: which family of problems a kind of study has, and what it may ask of it. */
#pragma once

#include "study/study.h"

/* Returns the family: the study's own, or that of problem.family. */
const ProblemOps *study_problem_family(const Config *setting);
/* Returns whether the matrices of the setting are spread over the ranks. */
bool study_problem_is_distributed(const Config *setting);
/* Creates the problem. Returns STATUS_INPUT if the study cannot have it. The caller must call
 * problem_destroy. */
Status study_problem_create(const Config *setting, Problem *out);

/* Studies and problems from the text of a study file. */
#pragma once

#include "problem/problem.h"
#include "study/study.h"

/* Returns the study of a text that is right; the caller destroys it. */
Study study_text_study(const char *text);

/* Creates the problem of the first setting of a study whose text is right; returns what problem_create says.
 */
Status study_text_problem(const char *text, Problem *out);

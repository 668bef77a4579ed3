/* Cases: runs that are given by a file (io/io_cases.h). */
#pragma once

#include "io/io_cases.h"
#include "problem/problem.h"

/* Returns the file, if the runs of this problem are cases; else NULL. */
const CaseFile *problem_cases_file(const Problem *problem);
/* Returns the case that the problem is at. */
int problem_cases_number(const Problem *problem);

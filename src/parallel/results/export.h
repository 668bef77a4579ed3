/* The results of a study as rows of a table: one for each setting, policy, run that has ended and point that
 * is kept; in a study of estimates one for each setting, policy and estimator. */
#pragma once

#include "parallel/tasks/finished.h"

#include <stdio.h>

/* Writes the rows as CSV (RFC 4180), with a header. Numbers are read back as the same doubles, and a number
 * that is not known is an empty field. Records that cannot be read are reported on stderr. Memory: the runs
 * of one policy in one setting. */
Status export_csv(Finished *finished, FILE *out);

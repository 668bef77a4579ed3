/* The results of a study as rows of a table: one for each setting, policy, run that has ended and point that
 * is kept; in a study of estimates one for each setting, policy and estimator. */
#pragma once

#include "parallel/tasks/finished.h"

#include <stdio.h>

/* A table in CSV (RFC 4180) of the rows of a study, or of several. */
typedef struct {
  const Study *study;
  const char *folder; /* the first column of each row; NULL: there is no such column */
  FILE *out;
} ExportTable;

/* Writes the names of the columns. */
void export_header(const ExportTable *table);
/* Writes the rows of table->study. Numbers are read back as the same doubles, and a number that is not known
 * is an empty field. Records that cannot be read are reported on stderr. Memory: the runs of one policy in
 * one setting. */
Status export_rows(const ExportTable *table, Finished *finished);

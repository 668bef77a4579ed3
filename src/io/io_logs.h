/* Log files of past tasks: CSV with header task,x1,...,xd,y, or NetCDF task(observation), x(observation,
 * dim), y(observation). They are read in one pass, and only the names of the tasks are kept. */
#pragma once

#include "io/gzip.h"

/* The receiver of the observations. Tasks are numbered 0, 1, .. in the order in which they first appear. */
typedef struct {
  void *context;
  /* Called once, before the first row. */
  Status (*begin)(void *context, int d);
  /* Called with x[d] and y, finite and at most DATASET_MOST in magnitude. A STATUS_INPUT that it returns is
   * prefixed with the place of the row. */
  Status (*row)(void *context, int task, const double *x, double y);
  /* OPTIONAL. Told how much of the file has been read. */
  void (*progress)(double done, double total);
} LogsSink;

/* Reads a file. Returns STATUS_INPUT, with file, line and column (CSV) or element (NetCDF), for values that
 * are not finite or too large, lines with more or fewer values than the header, tasks that are missing or not
 * UTF-8, and files without observations. In CSV any text can name a task, by RFC 4180; in NetCDF an integer
 * does. */
Status io_logs_read(const char *path, const LogsSink *sink);
/* Reads only CSV, from an open file to its end. */
Status io_logs_read_csv(GzipFile *file, const LogsSink *sink);

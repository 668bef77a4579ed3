/* Files of logs of past tasks: CSV with header task,x1,...,xd,y, or NetCDF task(observation), x(observation,
 * dim), y(observation). They are read in one pass, and nothing of them is kept but the names of the tasks. */
#pragma once

#include "core/status.h"

#include <stdio.h>

/* Who gets the observations. Tasks are numbered 0, 1, .. in the order in which they first appear. */
typedef struct {
  void *context;
  /* Once, before all rows. */
  Status (*begin)(void *context, int d);
  /* x[d] and y, finite and at most DATASET_MOST in size. What is wrong with a row comes with its place. */
  Status (*row)(void *context, int task, const double *x, double y);
  /* OPTIONAL. How much of the file is read. */
  void (*progress)(void *context, double done, double total);
} LogsSink;

/* Returns STATUS_INPUT, with file, line and column (CSV) or element (NetCDF): values that are not finite
 * or too large, lines of more or fewer values than the header, tasks that are missing or no UTF-8, no
 * observations. In CSV any text can name a task, by RFC 4180; in NetCDF an integer does. */
Status logs_file_read(const char *path, const LogsSink *sink);
/* Reads the CSV part alone: a stream to its end, `name` stands for it in messages, `size` is that of the
 * file. */
Status logs_csv_read(FILE *stream, const char *name, double size, const LogsSink *sink);

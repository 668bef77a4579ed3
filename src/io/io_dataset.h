/* Arrays that users supply: samples of theta, histories, tables of rewards, and logs of events (NetCDF or
 * CSV). They live as long as the arena they are read into. */
#pragma once

#include "core/arena.h"
#include "core/arms.h"
#include "io/gzip.h"
#include "io/store.h"

/* n samples of theta in R^d, sample last: theta[d, n]. */
typedef struct {
  int d;
  int n;
  double *theta;
} Samples;

/* Reads NetCDF `theta(sample, dim)`, or CSV without a header, one sample per line. Values that are not finite
 * or too large (DATASET_MOST), ragged rows and empty files are STATUS_INPUT with the line (CSV) or the
 * element; so is a CSV file with the header or the index of a data frame, which has numbers too. Checks the
 * spread (io_dataset_check_spread). Here and below, CSV files may be compressed with gzip. */
Status io_dataset_read_samples(Arena *memory, const char *path, Samples *out);
/* Checks the spread: a coordinate that varies, but too little for its variance to be distinguished from zero,
 * is STATUS_INPUT. The message counts samples from 1, like lines. */
Status io_dataset_check_spread(const char *path, const Samples *samples);

/* Reads the matrix `name` of an open NetCDF file into (*values)[rows, columns]; its dimensions should have
 * the names axes[2], and it is refused if they have these in the other order. There must be at least one
 * column, and all values must be finite and at most DATASET_MOST in magnitude. */
Status io_dataset_read_matrix(Arena *memory, StoreFile *file, const char *name, const char *const *axes,
                              int *rows, int *columns, double **values);

/* Transposes: to[columns, rows] = from[rows, columns]', in tiles that stay in the cache. */
void io_dataset_transpose(int rows, int columns, const double *from, double *to);

/* rows observations: features[rows, d], rewards[rows]. */
typedef struct {
  int d;
  int rows;
  double *features, *rewards;
} Observations;

/* Reads CSV with header x1,...,xd,y, or NetCDF x(observation, dim), y(observation). A file without
 * observations is allowed. */
Status io_dataset_read_observations(Arena *memory, const char *path, Observations *out);

/* Reads the matrix of an inverse problem: NetCDF a(observation, dim), (*values)[rows, d]; at least one row.
 */
Status io_dataset_read_operator(Arena *memory, const char *path, int *rows, int *d, double **values);

/* Events of a log, in which one arm was played, with its reward and the probability with which it was chosen;
 * or of a table, which has the rewards of every arm. An event has either a context[rows, d], the same for all
 * arms, or, in a log, features[rows, arms, d] of each arm. */
typedef struct {
  int d, rows, arms;
  bool has_features;
  double *x; /* the context or the features */
  int *arm; /* [rows], from 0; in a log */
  double *reward, *propensity; /* [rows], in a log */
  /* [rows, target_columns]: with which probability another policy takes each arm, or only (1 column) the arm
   * that was played; NULL: the log does not have it */
  double *target;
  int target_columns;
  /* [rows, arms], 0 for arms that an event did not have, whose features are read as 0; NULL: the log does not
   * have it, and every event has all arms */
  unsigned char *available;
  double noise; /* standard deviation of a reward; 0: the file does not have it */
  double *rewards; /* [rows, arms], in a table */
  bool lacks_class_0; /* the table is one of classes, none of which is 0 */
} EventLog;

/* Returns the arms that each event has. */
static inline ArmSet io_dataset_arms(const EventLog *log) {
  return (ArmSet){.count = log->arms, .available = log->available};
}

/* Reads NetCDF context(event, dim), reward(event, arm), or CSV with header x1,...,xd,class. Classes are whole
 * numbers from 0: each is an arm, and the reward is 1 for the right one, else 0. At least one event and two
 * arms are required. */
Status io_dataset_read_table(Arena *memory, const char *path, EventLog *out);

/* Reads NetCDF context(event, dim) or features(event, arm, dim), arm(event), reward(event), propensity(event)
 * and, if present, target(event, arm) or target(event), available(event, arm) and the attribute noise; or CSV
 * with header x1,...,xd,arm,reward,propensity and possibly target and available0,available1,..., where x is a
 * context. With contexts, the largest arm in the file gives the number of arms, unless `target` or
 * `available` has all of them. Errors: STATUS_INPUT with the
 * file, the line or the index, the value and what is allowed. */
Status io_dataset_read_events(Arena *memory, const char *path, EventLog *out);

/* ---- tables of plain numbers in CSV files: for io_dataset.c, its tests and its fuzzer */

/* values[rows, columns] */
typedef struct {
  int rows, columns;
  int others, each; /* columns after x1,...,xd: those with a name, those with a number; 0 without a header */
  double *values;
} Table;

typedef enum {
  CSV_NO_HEADER, /* at least one row; the first one sets the number of columns */
  CSV_X_Y_HEADER, /* the header x1,...,xd,y, then any number of rows of d + 1 numbers */
  CSV_X_CLASS_HEADER, /* the same with x1,...,xd,class */
  /* the same with x1,...,xd,arm,reward,propensity, and possibly target and available0,available1,... */
  CSV_EVENT_HEADER
} CsvForm;

/* Reads an open file to its end. Fields are finite decimal numbers separated by commas,
 * with blanks around them ignored. Lines end with LF or CR LF and may have any length; blank lines may only
 * come at the end. Values are at most DATASET_MOST in magnitude. Everything else is STATUS_INPUT with line
 * and column. */
Status io_dataset_csv_parse(Arena *memory, GzipFile *file, CsvForm form, Table *table);

/* Internal to the reducer: what the layout of results.nc (reduce_layout.c), the values in it
 * (reduce_values.c) and the rest (reduce.c) share. */
#pragma once

#include "io/store.h"
#include "parallel/results/reduce.h"
#include "parallel/tasks/former.h"

typedef struct {
  Arena memory;
  const Study *study;
  const char *directory, *path; /* of the study, of results.nc */
  bool overwrite; /* results may be replaced by fewer ones */
  Former former; /* the results that are replaced, on rank 0 */
  int64_t lost; /* runs that these have but the tasks lack */
  ReduceCounts counts;
  Leaderboard *board; /* not owned */
  StoreFile *file; /* on rank 0 */
  Finished finished;
  int *blocks; /* [setting_count], number of blocks of each setting that count */
  int64_t runs; /* the most of any setting */
  int setting, policy, run, quantile, axis; /* dimensions */
  /* While values are moved: */
  Cell cells[2]; /* of the first policy of a setting, and of another one */
  Problem problem; /* of the setting `problem_of` */
  int problem_of;
  double *summary; /* [published, SUMMARY_ROWS, places], see reduce_cell_summarise */
} Reducer;

/* Begins results.nc: defines every dimension and variable, and writes what is known before the first cell,
 * the axes, labels and provenance. On rank 0. */
Status reduce_layout_define(Reducer *reducer);

/* Returns whether the results have this part of a curve. */
bool reduce_layout_has_part(const StudyCurve *curve, int part);
enum { PART_NAME = 64 };
/* Writes the name of the variable of a part, such as "regret_mean", and returns it. */
const char *reduce_layout_part_name(const StudyCurve *curve, int part, char name[PART_NAME]);
/* Writes the name of a swept key's variable, the key with underscores in place of dots, and returns it. */
enum { AXIS_NAME = 128 };
const char *reduce_layout_axis_name(const ConfigAxis *axis, char name[AXIS_NAME]);
/* The variables of a study of estimates: name and meaning. */
extern const char *const reduce_estimates[ESTIMATES_COUNT][2];

/* Moves every cell from the finished tasks to the file of rank 0, and counts the tasks there. Collective. */
Status reduce_values_put(Reducer *reducer);

/* Writes the event logs of a bandit study (reduce_events.c) of all successful runs in the first
 * blocks[setting_count] blocks of each setting. Called on one rank. */
Status reduce_events_write(Finished *finished, const int *blocks);

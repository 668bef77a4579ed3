/* How near draws, by whatever made them, are to draws of a reference, whatever made those: distances over the
 * floor that disjoint parts of the reference have between them, and what is wrong with mean, spread and
 * number. */
#pragma once

#include "core/status.h"

/* A distance between equally many points of the draws and of the reference, and between two disjoint parts of
 * the reference of that size: means over partitions. */
typedef struct {
  int points;
  double distance, floor;
} ScoreDistance;

enum { SCORE_PARTITIONS = 8 };

typedef struct {
  ScoreDistance sliced, emd;
  double mean_error; /* the largest of a coordinate, in its standard deviations */
  int mean_error_at; /* that coordinate, from 0 */
  double sd_low, sd_high; /* ratios of standard deviations, over coordinates */
  double distinct, reference_distinct; /* shares of points */
} ScoreReference;

/* Compares draws[d, n] with reference[d, m], n >= 2 and m >= 4, all finite. STATUS_INPUT where a coordinate
 * of the reference does not vary. */
Status score_reference(int d, int n, const double *draws, int m, const double *reference,
                       ScoreReference *out);

/* How close draws, from any source, are to reference draws, also from any source: distances over a floor,
 * which is the distance between disjoint parts of the reference, and errors of the mean, the spread and the
 * number of distinct draws. */
#pragma once

#include "core/status.h"

/* The distance between equal numbers of points of the draws and of the reference, and between two disjoint
 * parts of the reference of the same size: means over partitions. */
typedef struct {
  int points;
  double distance, floor;
} ScoreDistance;

enum { SCORE_PARTITIONS = 8 };

typedef struct {
  ScoreDistance sliced, emd;
  double mean_error; /* the largest over coordinates, in standard deviations of the coordinate */
  int mean_error_at; /* that coordinate, from 0 */
  double sd_low, sd_high; /* least and largest ratio of standard deviations, over coordinates */
  double distinct, reference_distinct; /* shares of points that are distinct */
} ScoreReference;

/* Compares draws[d, n] with reference[d, m], n >= 2 and m >= 4, all finite. Returns STATUS_INPUT if a
 * coordinate of the reference does not vary. */
Status score_reference(int d, int n, const double *draws, int m, const double *reference,
                       ScoreReference *out);

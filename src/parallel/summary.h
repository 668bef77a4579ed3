/* The statistics of one cell of the results, at every point of every curve. */
#ifndef PARALLEL_SUMMARY_H
#define PARALLEL_SUMMARY_H

#include "parallel/cell.h"

/* Those from DIFF_MEAN on are of the paired difference to the first policy of the setting; curves that all
 * policies share have none. */
enum {
  SUMMARY_MEAN,
  SUMMARY_SE,
  SUMMARY_REPLICATE_SE,
  SUMMARY_DIFF_MEAN,
  SUMMARY_DIFF_SE,
  SUMMARY_DIFF_REPLICATE_SE,
  SUMMARY_COUNT
};

typedef struct {
  double *values; /* [curve_count, SUMMARY_COUNT, points] */
  double *quantiles; /* [curve_count, STUDY_QUANTILES, points], of curves with tails */
  int *n; /* [curve_count, points], runs in the mean */
  int *n_scratch; /* [points] */
} Summary;

Status summary_create(const Study *study, Summary *out);
void summary_destroy(Summary *summary);
/* Summarises a cell. Curves of the world belong to `first`, the first policy's cell in the same setting. */
Status summary_compute(const Study *study, const Cell *cell, const Cell *first, Summary *out);
double *summary_quantiles(const Study *study, const Summary *summary, int curve);
double *summary_part(const Study *study, const Summary *summary, int curve, int part);
/* Sends a summary to another rank, or receives it. */
void summary_send(const Study *study, const Summary *summary, int to);
void summary_receive(const Study *study, Summary *summary, int from);

#endif

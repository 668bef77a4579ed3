/* How close draws of theta, from any source, are to the exact posteriors of a problem of the pack: distance
 * to exact draws over the Monte-Carlo floor, mode weights, and the rank of theta* (simulation-based
 * calibration, metric/metrics.h).
 *
 * For each history M draws x are compared with several sets of M exact draws, and these with each other,
 * which gives the floor. If x is exact it is like another such set, and the ratio of the mean distances is 1
 * up to its standard error. */
#pragma once

#include "study/study_pack.h"

/* Ranks of theta* among draws: in a random direction, of |theta*|, and of its likelihood. */
enum { SCORE_RANKS = 3 };
extern const char *const score_rank_names[SCORE_RANKS];

/* A mean over histories and its standard error. */
typedef struct {
  double mean, se;
} ScoreMean;

/* What is measured in a group of histories: the distance, its floor, and their ratio, with the standard error
 * by the delta method; the error of mode weights and its floor, NAN if theta* is not from a mixture of
 * Gaussians. */
enum { SCORE_DISTANCE, SCORE_FLOOR, SCORE_RATIO, SCORE_MODE_ERROR, SCORE_MODE_FLOOR, SCORE_MEANS };
extern const char *const score_mean_names[SCORE_MEANS];

typedef struct {
  ScoreMean (*means)[SCORE_MEANS]; /* [groups] */
  ScoreMean ratio; /* mean over groups */
  /* The probability that independent exact draws have a ratio as low as this one, from the spread of exact
   * draws among each other (assuming a normal distribution over histories). */
  double even_p;
  /* p-values of the chi-squared test that ranks are uniform, over all histories: for the draws, and for exact
   * ones, which share theta* with them. */
  double rank_p[SCORE_RANKS], rank_p_exact[SCORE_RANKS];
} Score;

/* Returns the distance that is used for a problem, as a word of the key `metrics`. */
const char *score_metric(const Pack *pack);
/* Returns how the problem's exact draws are made, in words. */
const char *score_exact(const Pack *pack);

/* If even_p is below this, the draws are more even than independent ones are. */
#define SCORE_TOO_EVEN 1e-3

/* Scores theta[histories, M, d], all finite; M = pack->draws. *out lives as long as `memory`. */
Status score_draws(Arena *memory, const Pack *pack, const double *theta, Score *out);

/* Returns the p-value of the chi-squared test that u[n], in (0, 1), are uniform; NAN if n is too small. */
double score_uniform_p(int n, const double *u);

/* ---- How close any draws are to reference draws: distances over a floor, which is the distance between
 * disjoint parts of the reference, and errors of the mean, the spread and the number of distinct draws. */

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

/* Copies of lanes: arrays x[rows, lanes] with the lane last. */
#pragma once

/* Computes to[rows, count] <- the chosen columns lane[count] of from[rows, lanes]. */
void lanes_gather(int rows, int lanes, int count, const int *lane, const double *from, double *to);
/* Writes the chosen columns lane[count] of to[rows, lanes] from from[rows, count]. */
void lanes_scatter(int rows, int lanes, int count, const int *lane, const double *from, double *to);
/* Computes to[rows, lanes] <- from[rows], the same in every lane. */
void lanes_repeat(int rows, int lanes, const double *from, double *to);
/* Copies the first `count` lanes of each row from one array to another with other lanes. */
void lanes_copy(int rows, int count, const double *from, int from_lanes, double *to, int to_lanes);
/* Replaces logarithms x[rows, lanes] by exp(x - top), with the largest of each lane, top[lanes], and their
 * sums, total[lanes]. */
void lanes_exponentiate(int rows, int lanes, double *x, double *top, double *total);

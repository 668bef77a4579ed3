/* Chosen lanes of a block, side by side: lane[count], rising. */
#pragma once

/* Computes to[rows, count] <- the chosen columns of from[rows, lanes]. */
void lanes_gather(int rows, int lanes, int count, const int *lane, const double *from, double *to);
/* Writes the chosen columns of to[rows, lanes] from from[rows, count]. */
void lanes_scatter(int rows, int lanes, int count, const int *lane, const double *from, double *to);

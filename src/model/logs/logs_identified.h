/* What logs can tell about the spread of theta, before a prior is fitted to them. */
#pragma once

#include "model/logs/logs.h"

/* Returns STATUS_INPUT if the logs do not identify the spread of theta at all: if the noise is to be learned,
 * but only its sum with the spread of theta shows; or if rewards are clicks, of which no task has two that
 * depend on the same coordinate. */
Status logs_check_identified(const Logs *logs);
/* Computes *out, the degrees of freedom that the noise of Gaussian rewards is learned from: the least of sum
 * over tasks |I - X M X'|^2 over symmetric M, which measures how well the noise's covariance I can pass for
 * that of theta, X M X'. It is 0 if only the sum of both
 * variances shows, and what counts where theta hardly varies; where it varies much, only the observations of
 * a task beyond its first ones in each direction tell of the noise, which are fewer. Stops at `enough`. */
Status logs_noise_freedom(const Logs *logs, double enough, double *out);
/* Sets seen_twice[d] for clicks: some task has two observations that depend on this coordinate; true for
 * coordinates on which nothing depends. */
Status logs_seen_twice(const Logs *logs, bool *seen_twice);

/* A history that forgets, so that its memory does not grow: assumed-density filtering (Maybeck 1982; Opper
 * 1998, A Bayesian approach to on-line learning), and windowed expectation propagation.
 *
 * The likelihood of a row that is forgotten stays as the Gaussian that expectation propagation (ep.h) has put
 * in its place: for each component c of a mixture that is the prior, as evidence (Lambda_c, b_c) and the
 * logarithm of the factor at which it stands for the likelihood, log s_c. With keep = 0 every row is
 * forgotten at once, by the posterior as it was before. Otherwise the last `keep` rows, and up to as many
 * again, are there as they came: whenever there are 2 keep of them, all of them together with what was
 * forgotten before give the older half the Gaussians that it leaves. */
#pragma once

#include "model/history/history.h"
#include "model/mixture/mixture.h"

/* Creates such a history, of a likelihood that is not conjugate, for the sampler of this prior, which it
 * copies. One in `share` runs has an observation in a round, as in history_create_per_arm; with keep > 0
 * every run has. It has room for any number of rounds. */
Status history_create_filtered(Arena *memory, const Mixture *prior, int keep, int runs, int share,
                               const Likelihood *likelihood, History *out);
bool history_is_filtered(const History *history);
/* Returns the rows that are not forgotten, as a history of rows; a view, empty with keep = 0. */
History history_retained(const History *history);
/* Finds what is forgotten, for component c and the runs of `view`, draws = 1 and no shift or scale: adds
 * Lambda_c to precision[d, d, lanes] and b_c to vector[d, lanes]; log_scale[lanes] = log s_c. */
void history_forgotten(const HistoryView *view, int c, double *precision, double *vector, double *log_scale);
/* Adds the numerical fallbacks of the last round to fallbacks[B]. */
void history_filtered_fallbacks(const History *history, int64_t *fallbacks);

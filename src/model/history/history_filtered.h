/* A history that forgets, so that its memory does not grow: assumed-density filtering (Maybeck 1982; Opper
 * 1998, A Bayesian approach to on-line learning), and windowed expectation propagation.
 *
 * The likelihood of a forgotten row is replaced by the Gaussian that expectation propagation (ep.h) found for
 * it: for each component c of the mixture prior, by evidence (Lambda_c, b_c) and log s_c, the logarithm of
 * its scale. With keep = 0 every row is forgotten at once, given the posterior before it. Otherwise at least
 * the last `keep` rows, and fewer than 2 keep, stay as they are: as soon as there are 2 keep rows, the older
 * half is replaced by Gaussians found from all of them together with what was forgotten before. */
#pragma once

#include "model/history/history.h"
#include "model/mixture/mixture.h"

/* Creates such a history for a likelihood that is not conjugate. The prior is that of the sampler and is
 * copied. One in `share` runs gets an observation in a round, as in a HistoryPlan; keep > 0 requires
 * share = 1. There is room for any number of rounds. */
Status history_create_filtered(Arena *memory, const Mixture *prior, int keep, int runs, int share,
                               const Likelihood *likelihood, History *out);
bool history_is_filtered(const History *history);
/* Returns the rows that are not forgotten, as a view that is a history of rows; empty with keep = 0. */
History history_retained(const History *history);
/* Finds what was forgotten, for component c and the runs of `view` (draws = 1, no shift or scale): adds
 * Lambda_c to precision[d, d, lanes] and b_c to vector[d, lanes], and sets log_scale[lanes] to log s_c. */
void history_forgotten(const HistoryView *view, int c, double *precision, double *vector, double *log_scale);
/* Adds the numerical fallbacks of the runs that forgot rows in the last round to fallbacks[B]. */
void history_filtered_fallbacks(const History *history, int64_t *fallbacks);

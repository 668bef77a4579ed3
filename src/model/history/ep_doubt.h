/* Whether the Gaussians that expectation propagation found (model/history/ep.h) are to be trusted: what is
 * asked after ep_solve, about its lanes. */
#pragma once

#include "model/history/ep.h"

/* Finds in which lanes the preceding ep_solve failed: it did not settle or, if the mode[d, lanes] is known
 * from a preceding irls_solve (NULL: it is not), its mean is further than three standard deviations from it.
 * With counts, whose likelihood is as steep as an exponential, propagation can settle on a point that is. */
void ep_find_failed(const Ep *ep, int lanes, const Irls *irls, const double *mode, bool *failed);
/* How far the Gaussian of a lane is to be trusted: its moments are those of the posterior; they may be off by
 * a fifth, but draws that are chosen among candidates are right; they are wrong. */
enum { EP_RIGHT, EP_DOUBTFUL, EP_NARROW };
/* Finds doubt[lanes] for the lanes of the preceding ep_solve, with the same prior and the evidence that it
 * found, and widens the Gaussians that are EP_NARROW. With many rows that all pull the same way, such as a
 * thousand clicks of 0 under a wide prior, the posterior is almost flat where the Gaussian has its mean, and
 * goes on far beyond it on one side: in some direction the curvature of the log posterior at the mean is less
 * than 0.8 or, EP_NARROW, 0.5 times the precision of the Gaussian. Lambda is then moved half of the way to
 * the curvature, and b so that the mean stays. As far as u is known to within 1
 * the curvature changes too slowly for that (self_concordance in likelihood.h), and nothing is computed. */
void ep_widen(Ep *ep, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence, int *doubt);

/* Finds the lanes of the preceding ep_solve, with the same prior and the evidence that it found, whose
 * moments may be off by more than a twentieth: the curvature at the mean is less than 0.9 times the precision
 * of the Gaussian in some direction. */
void ep_find_inexact(Ep *ep, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence,
                     bool *inexact);

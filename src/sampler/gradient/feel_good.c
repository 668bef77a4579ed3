#include "sampler/gradient/feel_good.h"

#include "sampler/chunk.h"

#include <float.h>
#include <math.h>
#include <string.h>

void feel_good_begin(const Potential *potential, double mu, double *pull) {
  const HistoryView *view = &potential->view;
  const History *history = view->history;
  const double weight = mu * potential->eta * history->temper;
  for (int n = 0, last = -1; n < view->lanes; n++) {
    const int run = (view->first + n) / view->draws;
    pull[n] = run == last ? pull[n - 1]
                          : weight * sqrt(history_observations(history, run) * history_squares(history, run));
    last = run;
  }
}

void feel_good_subtract(Potential *potential, const double *pull, const double *z, double *push,
                        double *gradient) {
  const int d = potential->d, lanes = potential->view.lanes;
  const double *theta = potential_theta(potential, lanes, z);
  double factor[CHUNK_LANES];
  ASSERT(lanes <= CHUNK_LANES);
  for (int n = 0; n < lanes; n++) {
    double square = 0;
    for (int i = 0; i < d; i++) square += theta[i * lanes + n] * theta[i * lanes + n];
    factor[n] = pull[n] / sqrt(fmax(square, DBL_MIN));
  }
  memcpy(push, theta, (size_t)(d * lanes) * sizeof *push);
  potential_to_gradient(potential, lanes, push);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) gradient[i * lanes + n] -= factor[n] * push[i * lanes + n];
}

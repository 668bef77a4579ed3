/* The log likelihood of runs at any points (history_density.h), for every form of a history and any view,
 * against sums over the observations by their definition. */
#include "model/network/network_plain.h"
#include "sampler_fixture.h"

#include "core/arena.h"
#include "model/history/history_density.h"

#include <math.h>
#include <string.h>

/* 37 runs are two tiles of runs and a part of one. WEIGHTS = 3 * 4 + 4 + 4 + 1 of the network. */
enum { D = 3, RUNS = 37, ROUNDS = 6, ARMS = 4, WEIGHTS = 21, LANES = 3 * RUNS };
static const int HIDDEN[] = {4};
static const double TEMPER = 0.7;

typedef struct {
  const char *likelihood;
  double noise;
  HistoryPlan plan;
  bool network;
} Form;
static const Form FORMS[] = {
    {.likelihood = "gaussian", .noise = 0.5},
    {.likelihood = "gaussian", .noise = 0.5, .plan = {.by_observation = true}},
    {.likelihood = "logistic"},
    {.likelihood = "poisson"},
    {.likelihood = "logistic", .plan = {.arms = ARMS}},
    {.likelihood = "gaussian", .noise = 0.5, .network = true},
};

/* Views of every kind: one lane for each run, from the first run or from within a tile; several lanes for
 * each run, from the first or from the middle of one; lanes of a single run. */
static const struct {
  int draws, first, lanes;
} VIEWS[] = {{1, 0, RUNS}, {1, 5, 30}, {1, 18, 1}, {3, 0, LANES}, {4, 10, 50}, {40, 7 * 40 + 3, 20}};

typedef struct {
  Likelihood likelihood;
  History history;
  int p; /* entries of theta */
  bool network;
  double phi[ROUNDS][D * RUNS], y[ROUNDS][RUNS];
  int arm[ROUNDS][RUNS];
} Case;

static void record(Case *self, int round) {
  history_record(&self->history, self->arm[round], self->phi[round], self->y[round]);
}

/* Creates a history without observations, and the observations, whose features depend on the arm alone. */
static void begin(Arena *memory, const Form *form, Case *self) {
  double features[D * ARMS];
  Rng rng = fixture_rng(0, 5100);
  *self = (Case){.likelihood = {.ops = likelihood_find(form->likelihood), .noise = form->noise},
                 .p = form->network ? WEIGHTS : D,
                 .network = form->network};
  if (form->network) self->likelihood.network = network_shape(D, 1, HIDDEN, 1);
  rng_normal(&rng, D * ARMS, features);
  for (int t = 0; t < ROUNDS; t++)
    for (int n = 0; n < RUNS; n++) {
      double uniform;
      rng_uniform(&rng, 1, &uniform);
      self->arm[t][n] = (int)(uniform * ARMS);
      for (int i = 0; i < D; i++) self->phi[t][i * RUNS + n] = (float)features[i * ARMS + self->arm[t][n]];
      rng_uniform(&rng, 1, &uniform);
      self->y[t][n] = uniform < 0.5 ? 0 : 1;
    }
  CHECK_OK(history_create_planned(memory, D, RUNS, form->plan, &self->likelihood, &self->history));
  CHECK_OK(history_reserve(&self->history, ROUNDS));
  self->history.temper = TEMPER;
}

/* Computes the tempered log likelihood of rounds first .. of a run, and its gradient with respect to theta[p]
 * unless that is NULL; not for the gradient of a network. */
static double definition(const Case *self, int run, int first, const double *theta, double *gradient) {
  const Likelihood *likelihood = &self->likelihood;
  double sum = 0;
  for (int i = 0; i < self->p && gradient; i++) gradient[i] = 0;
  for (int t = first; t < ROUNDS; t++) {
    double phi[D], u = 0, slope, curvature;
    for (int i = 0; i < D; i++) phi[i] = self->phi[t][i * RUNS + run];
    if (self->network)
      network_plain_forward(&likelihood->network, theta, phi, &u);
    else
      for (int i = 0; i < D; i++) u += phi[i] * theta[i];
    sum += TEMPER * likelihood->ops->log_likelihood(likelihood, self->y[t][run], u);
    if (!gradient) continue;
    likelihood->ops->derivatives(likelihood, 1, &self->y[t][run], &u, &slope, &curvature);
    for (int i = 0; i < D; i++) gradient[i] += TEMPER * slope * phi[i];
  }
  return sum;
}

/* Computes theta[p] of lane n of z[p, lanes], as the program rounds it. */
static void theta_of(const Case *self, const HistoryView *view, const double *z, int n, double *theta) {
  for (int i = 0; i < self->p; i++) {
    const double shift = view->shift ? view->shift[i] : 0, scale = view->scale ? view->scale[i] : 1;
    theta[i] = shift + scale * z[i * view->lanes + n];
    if (self->network) theta[i] = (float)theta[i];
  }
}

/* Checks differences of values between two sets of points, since values are up to a constant of the run, and
 * the gradients at the second; and that a lane gets the same bits in a view of its own. A network computes in
 * float32. */
static void check_view(Arena *memory, const Case *self, const HistoryView *view) {
  const int p = self->p, lanes = view->lanes;
  const double tolerance = self->network ? 1e-4 : 1e-11;
  double z[2][WEIGHTS * LANES], value[2][LANES], gradient[WEIGHTS * LANES];
  int64_t fallbacks[RUNS] = {0};
  Rng rng = fixture_rng(1, 5100);
  HistoryDensity density, alone;
  CHECK_OK(history_density_create(memory, D, RUNS, &self->likelihood, &density));
  CHECK_OK(history_density_create(memory, D, 1, &self->likelihood, &alone));
  history_density_at(&density, view, fallbacks);
  for (int k = 0; k < 2; k++) {
    rng_normal(&rng, p * lanes, z[k]);
    history_density(&density, z[k], value[k], k > 0 ? gradient : NULL);
  }
  for (int n = 0; n < lanes; n++) {
    const int run = (view->first + n) / view->draws;
    double first[WEIGHTS], second[WEIGHTS], expected[WEIGHTS], one[WEIGHTS], slope[WEIGHTS], own;
    theta_of(self, view, z[0], n, first);
    theta_of(self, view, z[1], n, second);
    const double before = definition(self, run, 0, first, NULL),
                 after = definition(self, run, 0, second, self->network ? NULL : expected);
    CHECK_NEAR(value[1][n] - value[0][n], after - before, tolerance * (1 + fabs(after)));
    for (int i = 0; i < D && !self->network; i++)
      CHECK_NEAR(gradient[i * lanes + n], expected[i] * (view->scale ? view->scale[i] : 1),
                 tolerance * (1 + fabs(expected[i])));
    const HistoryView of_lane =
        history_view_in(history_points(&self->history, run, 1), view->shift, view->scale);
    history_density_at(&alone, &of_lane, NULL);
    for (int i = 0; i < p; i++) one[i] = z[1][i * lanes + n];
    history_density(&alone, one, &own, slope);
    CU_ASSERT_EQUAL(own, value[1][n]);
    for (int i = 0; i < p; i++) CU_ASSERT_EQUAL(slope[i], gradient[i * lanes + n]);
    CU_ASSERT(value[1][n] <= density.most);
  }
  for (int n = 0; n < RUNS; n++) CU_ASSERT_EQUAL(fallbacks[n], 0);
}

static void test_every_form_and_view(void) {
  static const double shift[D] = {0.3, -1, 0.2}, scale[D] = {2, 0.5, 1.5};
  for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS; f++) {
    SCRATCH_ARENA(memory);
    static Case self;
    begin(&memory, &FORMS[f], &self);
    for (int t = 0; t < ROUNDS; t++) record(&self, t);
    for (size_t v = 0; v < sizeof VIEWS / sizeof *VIEWS; v++) {
      const HistoryView view = history_view(&self.history, VIEWS[v].draws, VIEWS[v].first, VIEWS[v].lanes);
      const HistoryView mapped = history_view_in(view, shift, scale);
      check_view(&memory, &self, &view);
      if (!self.network) check_view(&memory, &self, &mapped);
    }
  }
}

/* Checks the gradient of a network against finite differences of the definition, in double precision. */
static void test_network_gradient(void) {
  enum { N = 2 };
  SCRATCH_ARENA(memory);
  static Case self;
  double z[WEIGHTS * N], gradient[WEIGHTS * N], value[N];
  HistoryDensity density;
  Rng rng = fixture_rng(2, 5100);
  begin(&memory, &FORMS[sizeof FORMS / sizeof *FORMS - 1], &self);
  for (int t = 0; t < ROUNDS; t++) record(&self, t);
  const HistoryView view = history_view(&self.history, 1, 3, N);
  CHECK_OK(history_density_create(&memory, D, N, &self.likelihood, &density));
  history_density_at(&density, &view, NULL);
  rng_normal(&rng, WEIGHTS * N, z);
  history_density(&density, z, value, gradient);
  for (int n = 0; n < N; n++)
    for (int i = 0; i < WEIGHTS; i++) {
      const double step = 1e-6;
      double theta[WEIGHTS];
      theta_of(&self, &view, z, n, theta);
      theta[i] += step;
      const double high = definition(&self, 3 + n, 0, theta, NULL);
      theta[i] -= 2 * step;
      const double low = definition(&self, 3 + n, 0, theta, NULL);
      CHECK_NEAR(gradient[i * N + n], (high - low) / (2 * step), 1e-4 * (1 + fabs(gradient[i * N + n])));
    }
}

/* Checks that nothing cancels close to the peak, however precise the evidence: with noise 1e-8 the value at u
 * standard deviations from it is -u^2 / 2 although b' theta is about 1e16. */
static void test_precise(void) {
  enum { POINTS = 9 };
  SCRATCH_ARENA(memory);
  const Likelihood likelihood = {.ops = likelihood_find("gaussian"), .noise = 1e-8};
  static const double phi[2][2] = {{1, 0}, {0, 1}}, y[2] = {0.7, -1.3};
  History history;
  HistoryDensity density;
  double x[2 * POINTS], value[POINTS];
  int64_t fallbacks = 0;
  CHECK_OK(history_create(&memory, 2, 1, &likelihood, &history));
  CHECK_OK(history_density_create(&memory, 2, 1, &likelihood, &density));
  for (int t = 0; t < 2; t++) history_record(&history, NULL, phi[t], &y[t]);
  for (int k = 0; k < POINTS; k++) {
    x[k] = y[0] + 0x1p-27 * (k - POINTS / 2);
    x[POINTS + k] = y[1];
  }
  const HistoryView view = history_points(&history, 0, POINTS);
  history_density_at(&density, &view, &fallbacks);
  history_density(&density, x, value, NULL);
  for (int k = 0; k < POINTS; k++) {
    const double u = (x[k] - y[0]) / likelihood.noise; /* the centre is off by 1e-10 of theta, 1e-2 u */
    CHECK_NEAR(value[k] - value[POINTS / 2], -0.5 * u * u, 1e-6);
  }
}

/* Checks that after a mark only what is new counts, in the forms that allow it. */
static void test_since(void) {
  enum { POINTS = 5, SEEN = 4, RUN = 20 };
  for (int f = 0; f < 4; f++) {
    SCRATCH_ARENA(memory);
    static Case self;
    HistoryDensity density;
    HistoryMarks marks;
    double z[D * POINTS], all[POINTS], value[POINTS];
    Rng rng = fixture_rng(3, 5100);
    begin(&memory, &FORMS[f], &self);
    CHECK_OK(history_density_create(&memory, D, 1, &self.likelihood, &density));
    CHECK_OK(history_marks_create(&memory, D, RUNS, &marks));
    rng_normal(&rng, D * POINTS, z);
    for (int turn = 0; turn < 2; turn++) {
      history_clear(&self.history);
      history_marks_clear(&marks, RUNS);
      for (int t = 0; t < SEEN; t++) record(&self, t);
      history_density_since(&density, &self.history, RUN, POINTS, &marks);
      for (int t = SEEN; t < ROUNDS; t++) record(&self, t);
      history_density_since(&density, &self.history, RUN, POINTS, &marks);
      history_density(&density, z, value, NULL);
      for (int k = 0; k < POINTS; k++) {
        double theta[D];
        for (int i = 0; i < D; i++) theta[i] = z[i * POINTS + k];
        all[k] = definition(&self, RUN, SEEN, theta, NULL);
        CHECK_NEAR(value[k] - value[0], all[k] - all[0], 1e-12 * (1 + fabs(all[k])));
      }
    }
  }
}

int main(void) {
  CU_TestInfo tests[] = {{"every form of a history, and any view", test_every_form_and_view},
                         {"gradient of a network", test_network_gradient},
                         {"evidence of a noise of 1e-8", test_precise},
                         {"what is new since a mark", test_since},
                         CU_TEST_INFO_NULL};
  return harness_run("density", tests);
}

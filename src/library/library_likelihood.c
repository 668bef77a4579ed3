/* A user's likelihood: its functions are asked about theta row by row, and what they answer is checked. The
 * first wrong answer is kept, and they are not asked again before the call of the library has ended. */
#include "io/io_dataset.h"
#include "library/library.h"

#include <math.h>

struct thompson_likelihood {
  thompson_likelihood_functions functions;
};

struct LibraryLikelihood {
  LikelihoodFunctions form; /* its context is this struct */
  thompson_likelihood_functions functions;
  int d;
  double *theta, *gradient; /* [n, d] for as many points as are asked about at once */
  double *lost; /* [n]: NAN if theta was not finite, else 0 */
  double largest; /* of all values since the last library_likelihood_begin */
  bool failed;
  char sentence[320]; /* what was wrong */
};

thompson_status thompson_likelihood_from_functions(const thompson_likelihood_functions *functions,
                                                   thompson_likelihood **out) {
  *out = NULL;
  if (!functions->log_density) return status_set(STATUS_INPUT, "a likelihood needs the function log_density");
  NEW(*out, 1);
  (*out)->functions = *functions;
  return THOMPSON_OK;
}

void thompson_likelihood_free(thompson_likelihood *self) { free(self); }

/* Keeps the sentence about an answer that is wrong at theta[d]. */
static void likelihood_refuse(LibraryLikelihood *self, const char *what, double value, const double *theta) {
  enum { SHOWN = 4 };
  const int shown = self->d < SHOWN ? self->d : SHOWN;
  char point[128] = "";
  size_t used = 0;
  for (int i = 0; i < shown; i++)
    used += (size_t)snprintf(point + used, sizeof point - used, "%s%.6g", i > 0 ? ", " : "", theta[i]);
  snprintf(self->sentence, sizeof self->sentence, "%s is %g at theta = (%s%s)", what, value, point,
           shown < self->d ? ", ..." : "");
  self->failed = true;
}

/* Keeps the sentence about a function that has not returned 0. */
static void likelihood_note_failure(LibraryLikelihood *self, const char *function, int returned) {
  if (returned == 0) return;
  snprintf(self->sentence, sizeof self->sentence, "the function %s of the likelihood failed: it returned %d",
           function, returned);
  self->failed = true;
}

/* Sets rows of theta that are not finite to 0, and notes which these are: a chain that has left the range of
 * numbers is nothing to ask the user about. */
static void likelihood_mark_lost(LibraryLikelihood *self, int n) {
  double *lost = self->lost;
  for (int k = 0; k < n; k++) {
    double *row = self->theta + (ptrdiff_t)k * self->d;
    lost[k] = 0;
    for (int i = 0; i < self->d; i++) lost[k] += 0 * row[i];
    for (int i = 0; i < self->d; i++) row[i] = isnan(lost[k]) ? 0 : row[i];
  }
}

/* Checks values of points. */
static void likelihood_check_values(LibraryLikelihood *self, int n, const double *value) {
  for (int k = 0; k < n; k++) {
    if (isnan(value[k]) || value[k] == INFINITY) {
      likelihood_refuse(self, "log_density", value[k], self->theta + (ptrdiff_t)k * self->d);
      return;
    }
    self->largest = fmax(self->largest, value[k]);
  }
}

/* Checks gradients, and sets those of points without a likelihood to 0. */
static void likelihood_check_gradients(LibraryLikelihood *self, int n, const double *value) {
  for (int k = 0; k < n; k++) {
    double *row = self->gradient + (ptrdiff_t)k * self->d;
    for (int i = 0; i < self->d; i++) {
      row[i] = value[k] == -INFINITY ? 0 : row[i];
      if (isfinite(row[i])) continue;
      likelihood_refuse(self, "an entry of the gradient", row[i], self->theta + (ptrdiff_t)k * self->d);
      return;
    }
  }
}

/* Asks the functions about the points in self->theta. */
static void likelihood_ask(LibraryLikelihood *self, int n, double *value, bool gradient) {
  const thompson_likelihood_functions *functions = &self->functions;
  if (self->failed) return;
  likelihood_note_failure(self, "log_density",
                          functions->log_density(functions->context, n, self->d, self->theta, value));
  if (!self->failed) likelihood_check_values(self, n, value);
  if (!gradient || self->failed) return;
  likelihood_note_failure(self, "gradient",
                          functions->gradient(functions->context, n, self->d, self->theta, self->gradient));
  if (!self->failed) likelihood_check_gradients(self, n, value);
}

/* Does the work of LikelihoodFunctions.density: 0 once an answer was wrong. */
static void likelihood_density(void *context, int run, int n, const double *theta, double *value,
                               double *gradient) {
  LibraryLikelihood *self = context;
  (void)run;
  io_dataset_transpose(self->d, n, theta, self->theta);
  likelihood_mark_lost(self, n);
  likelihood_ask(self, n, value, gradient != NULL);
  for (int k = 0; k < n; k++) {
    const bool lost = isnan(self->lost[k]);
    value[k] = self->failed ? 0 : lost ? -INFINITY : value[k];
    for (int i = 0; i < self->d; i++)
      if (self->failed || lost) self->gradient[(ptrdiff_t)k * self->d + i] = 0;
  }
  if (gradient) io_dataset_transpose(n, self->d, self->gradient, gradient);
}

Status library_likelihood_create(Arena *memory, int d, const thompson_likelihood_functions *functions,
                                 LibraryLikelihood **out, Likelihood *likelihood) {
  const size_t most = (size_t)likelihood_most_points(d);
  LibraryLikelihood *self;
  ALLOCATE(memory, self, 1);
  ALLOCATE_ARRAYS(memory, most * (size_t)d, &self->theta, &self->gradient);
  ALLOCATE(memory, self->lost, most);
  self->functions = *functions;
  self->d = d;
  self->form = (LikelihoodFunctions){
      .density = likelihood_density, .context = self, .has_gradient = functions->gradient != NULL};
  *likelihood = (Likelihood){.ops = &likelihood_functions, .functions = &self->form};
  *out = self;
  return STATUS_OK;
}

void library_likelihood_begin(LibraryLikelihood *self) {
  if (!self) return;
  self->failed = false;
  self->largest = -INFINITY;
}

Status library_likelihood_end(const LibraryLikelihood *self, const SamplerOps *method) {
  if (!self) return STATUS_OK;
  if (self->failed) return status_set(STATUS_INPUT, "%s", self->sentence);
  if (method->functions == FUNCTIONS_DEVIANCE && self->largest > 0)
    return status_set(
        STATUS_INPUT,
        "log_density reaches %g, but sampler %s takes -2 log_density for a sum of squares, which "
        "is at least 0: leave out constants, or use a sampler that needs none",
        self->largest, method->name);
  return STATUS_OK;
}

const thompson_likelihood_functions *library_likelihood_functions(const LibraryLikelihood *self) {
  return &self->functions;
}

thompson_status thompson_posterior_from_likelihood(const thompson_prior *prior, const char *sampler,
                                                   const thompson_likelihood *likelihood, const char *options,
                                                   uint64_t seed, thompson_posterior **out) {
  const thompson_arguments arguments = {
      .sampler = sampler, .likelihood = likelihood_functions.name, .options = options, .seed = seed};
  return library_posterior_new(prior, &arguments, &likelihood->functions, 1, out);
}

/* What a history stores, and the evidence of a block of runs under a conjugate likelihood (DiffTS paper,
 * equation 3). */
#include "model/history.h"

#include "core/memory.h"
#include "core/simd.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static Status allocate(History *history) {
  size_t vectors = (size_t)history->d * (size_t)history->runs;
  if (!likelihood_is_conjugate(history->likelihood)) return STATUS_OK;
  NEW(history->precision, vectors * (size_t)history->d);
  NEW(history->vector, vectors);
  NEW(history->reward_squares, history->runs);
  return STATUS_OK;
}

Status history_create(int d, int runs, const Likelihood *likelihood, History *out) {
  ASSERT(d >= 1 && runs >= 1);
  *out = (History){.d = d, .runs = runs, .each_round = runs, .likelihood = likelihood, .temper = 1};
  return allocate(out);
}

Status history_create_uneven(int d, int runs, int each_round, const Likelihood *likelihood, History *out) {
  ASSERT(d >= 1 && each_round >= 1 && runs >= each_round && !likelihood_has_network(likelihood));
  *out = (History){.d = d, .runs = runs, .each_round = each_round, .likelihood = likelihood, .temper = 1};
  NEW(out->observations, runs);
  NEW(out->latest, each_round);
  return allocate(out);
}

Status history_create_by_arm(int d, int runs, int arms, const Likelihood *likelihood, History *out) {
  ASSERT(arms >= 1);
  TRY(history_create(d, runs, likelihood, out));
  if (likelihood_is_conjugate(likelihood) || likelihood_has_network(likelihood)) return STATUS_OK;
  out->arms = arms;
  NEW(out->arm_rows, runs);
  NEW(out->arm_row, (size_t)runs * (size_t)arms);
  NEW(out->excess, runs);
  return STATUS_OK;
}

static void free_rows(History *history) {
  free(history->page);
  free(history->filled);
  free(history->features);
  free(history->rewards);
  free(history->counts);
  free(history->longest);
  free(history->inputs);
  free(history->responses);
  history->page = history->filled = NULL;
  history->features = history->rewards = history->counts = history->longest = history->responses = NULL;
  history->inputs = NULL;
}

static int strips(const History *history) { return (history->runs + HISTORY_STRIP - 1) / HISTORY_STRIP; }

/* Rows of each run by themselves. */
static Status reserve_inputs(History *history, int rounds) {
  const size_t runs = (size_t)history->runs;
  history->width = (rounds + NETWORK_LANES - 1) / NETWORK_LANES * NETWORK_LANES;
  NEW(history->inputs, runs * (size_t)history->d * (size_t)history->width);
  NEW(history->responses, runs * (size_t)history->width);
  history->capacity = rounds;
  return STATUS_OK;
}

/* A strip has as many rows as its longest run, so all of them together have no more than there are
 * observations; and each can waste most of one page. */
Status history_reserve(History *history, int rounds) {
  const int rows = history->arms && history->arms < rounds ? history->arms : rounds;
  history_clear(history);
  if (likelihood_is_conjugate(history->likelihood)) return STATUS_OK;
  free_rows(history);
  history->capacity = 0;
  if (likelihood_has_network(history->likelihood)) return reserve_inputs(history, rounds);
  const int count = strips(history);
  const int64_t strip_pages = ((int64_t)rows + HISTORY_PAGE - 1) / HISTORY_PAGE;
  const int64_t observations = (int64_t)rows * history->each_round;
  int64_t pages = observations / HISTORY_PAGE + count;
  if (pages > count * strip_pages) pages = count * strip_pages;
  if (pages > INT_MAX)
    return status_set(STATUS_INPUT, "%d rounds of %d runs are too many for one block", rounds, history->runs);
  const size_t cells = (size_t)pages * HISTORY_PAGE * HISTORY_STRIP;
  NEW(history->page, (size_t)count * (size_t)strip_pages);
  NEW(history->filled, count);
  NEW(history->features, cells * (size_t)history->d);
  NEW(history->rewards, cells);
  NEW(history->counts, cells);
  NEW(history->longest, history->runs);
  history->capacity = rows;
  history->strip_pages = (int)strip_pages;
  history->pages = (int)pages;
  return STATUS_OK;
}

void history_destroy(History *history) {
  free(history->observations);
  free(history->latest);
  free(history->precision);
  free(history->vector);
  free(history->reward_squares);
  free(history->arm_rows);
  free(history->arm_row);
  free(history->excess);
  free_rows(history);
  *history = (History){0};
}

static void clear_rows(History *history) {
  const size_t responses = (size_t)history->runs * (size_t)history->width;
  if (history->inputs) {
    memset(history->inputs, 0, responses * (size_t)history->d * sizeof *history->inputs);
    memset(history->responses, 0, responses * sizeof *history->responses);
  }
  if (!history->page) return;
  const size_t cells = (size_t)history->used * HISTORY_PAGE * HISTORY_STRIP;
  memset(history->filled, 0, (size_t)strips(history) * sizeof *history->filled);
  memset(history->features, 0, cells * (size_t)history->d * sizeof *history->features);
  memset(history->rewards, 0, cells * sizeof *history->rewards);
  memset(history->counts, 0, cells * sizeof *history->counts);
  memset(history->longest, 0, (size_t)history->runs * sizeof *history->longest);
  history->used = 0;
}

void history_clear(History *history) {
  size_t runs = (size_t)history->runs, vectors = (size_t)history->d * runs;
  history->rounds = 0;
  if (history->observations) memset(history->observations, 0, runs * sizeof *history->observations);
  if (history->arms) {
    memset(history->arm_rows, 0, runs * sizeof *history->arm_rows);
    memset(history->arm_row, 0, runs * (size_t)history->arms * sizeof *history->arm_row);
    memset(history->excess, 0, runs * sizeof *history->excess);
  }
  clear_rows(history);
  if (!likelihood_is_conjugate(history->likelihood)) return;
  memset(history->precision, 0, vectors * (size_t)history->d * sizeof *history->precision);
  memset(history->vector, 0, vectors * sizeof *history->vector);
  memset(history->reward_squares, 0, runs * sizeof *history->reward_squares);
}

/* sum[n] += factor a[n] b[n]. */
static inline void add_product(int count, double factor, const double *restrict a, const double *restrict b,
                               double *restrict sum) {
  for (int n = 0; n < count; n++) sum[n] += factor * a[n] * b[n];
}

/* Both triangles meet the same factors in the same order: the precision stays symmetric to the last bit. */
SIMD_CLONES
static void append(int d, int runs, double inverse_variance, const double *phi, const double *y,
                   double *precision, double *vector, double *reward_squares) {
  size_t stride = (size_t)runs;
  for (int i = 0; i < d; i++) {
    for (int j = 0; j < d; j++) {
      int low = i < j ? i : j, high = i < j ? j : i;
      add_product(runs, inverse_variance, phi + (size_t)low * stride, phi + (size_t)high * stride,
                  precision + (size_t)(i * d + j) * stride);
    }
    add_product(runs, inverse_variance, phi + (size_t)i * stride, y, vector + (size_t)i * stride);
  }
  for (int n = 0; n < runs; n++) reward_squares[n] += inverse_variance * y[n] * y[n];
}

/* The same for some runs. */
static void append_to(History *history, const int *run, double inverse_variance, const double *phi,
                      const double *y) {
  const size_t d = (size_t)history->d, runs = (size_t)history->runs, count = (size_t)history->each_round;
  for (size_t m = 0; m < count; m++) {
    const size_t n = (size_t)run[m];
    for (size_t i = 0; i < d; i++) {
      for (size_t j = 0; j < d; j++) {
        size_t low = i < j ? i : j, high = i < j ? j : i;
        history->precision[(i * d + j) * runs + n] +=
            inverse_variance * phi[low * count + m] * phi[high * count + m];
      }
      history->vector[i * runs + n] += inverse_variance * phi[i * count + m] * y[m];
    }
    history->reward_squares[n] += inverse_variance * y[m] * y[m];
  }
}

/* Row l of a run can be written: its strip has the page. */
static void open_row(History *history, int run, int l) {
  const int strip = run / HISTORY_STRIP;
  ASSERT(l < history->capacity);
  if (l < history->filled[strip]) return;
  ASSERT(l == history->filled[strip]);
  if (l % HISTORY_PAGE == 0) {
    ASSERT(history->used < history->pages);
    history->page[(size_t)strip * (size_t)history->strip_pages + (size_t)(l / HISTORY_PAGE)] =
        history->used++;
  }
  history->filled[strip]++;
}

/* The next row of every run: phi[d, B], y[B]. */
static void append_inputs(History *history, const double *phi, const double *y) {
  const size_t d = (size_t)history->d, runs = (size_t)history->runs, width = (size_t)history->width;
  const size_t l = (size_t)history->rounds;
  ASSERT(history->rounds < history->capacity);
  for (size_t n = 0; n < runs; n++) {
    for (size_t i = 0; i < d; i++) history->inputs[(n * d + i) * width + l] = (float)phi[i * runs + n];
    history->responses[n * width + l] = y[n];
  }
}

/* The next row of a run: phi[d] with a stride. */
static void append_row(History *history, int run, const double *phi, size_t stride, double y) {
  const size_t d = (size_t)history->d, lane = (size_t)(run % HISTORY_STRIP);
  const int l = history_rows(history, run);
  double square = 0;
  open_row(history, run, l);
  const size_t row = history_row(history, run / HISTORY_STRIP, l);
  for (size_t i = 0; i < d; i++) {
    double x = history->features[(row * d + i) * HISTORY_STRIP + lane] = phi[i * stride];
    square += x * x;
  }
  history->rewards[row * HISTORY_STRIP + lane] = y;
  history->counts[row * HISTORY_STRIP + lane] = 1;
  history->longest[run] = fmax(history->longest[run], sqrt(square));
}

/* Deviance of a reward, of which only the part that does not depend on theta is of interest. */
static double deviance_of(const Likelihood *likelihood, double y) {
  double deviance, nothing = 0;
  likelihood->ops->deviance(likelihood, 1, &y, &nothing, &deviance);
  return deviance;
}

/* One more observation of a row. The log likelihood is linear in the reward but for terms without theta. */
static void repeat_row(History *history, int run, int l, double y) {
  const size_t lane = (size_t)(run % HISTORY_STRIP);
  const size_t cell = history_row(history, run / HISTORY_STRIP, l) * HISTORY_STRIP + lane;
  const double count = history->counts[cell]++, before = history->rewards[cell];
  const double mean = history->rewards[cell] += (y - before) / (count + 1);
  history->excess[run] += deviance_of(history->likelihood, y) +
                          count * deviance_of(history->likelihood, before) -
                          (count + 1) * deviance_of(history->likelihood, mean);
}

static double inverse_variance(const History *history) {
  return 1 / (history->likelihood->noise * history->likelihood->noise);
}

void history_append(History *history, const double *phi, const double *y) {
  const int runs = history->runs;
  ASSERT(!history->observations && !history->arms);
  if (likelihood_is_conjugate(history->likelihood))
    append(history->d, runs, inverse_variance(history), phi, y, history->precision, history->vector,
           history->reward_squares);
  else if (likelihood_has_network(history->likelihood))
    append_inputs(history, phi, y);
  else
    for (int n = 0; n < runs; n++) append_row(history, n, phi + n, (size_t)runs, y[n]);
  history->rounds++;
}

void history_append_to(History *history, const int *run, const double *phi, const double *y) {
  const int count = history->each_round;
  ASSERT(history->observations);
  if (likelihood_is_conjugate(history->likelihood))
    append_to(history, run, inverse_variance(history), phi, y);
  else
    for (int m = 0; m < count; m++) append_row(history, run[m], phi + m, (size_t)count, y[m]);
  for (int m = 0; m < count; m++) history->observations[run[m]]++;
  memcpy(history->latest, run, (size_t)count * sizeof *run);
  history->rounds++;
}

void history_append_arms(History *history, const int *arm, const double *phi, const double *y) {
  const int runs = history->runs;
  ASSERT(history->arms);
  for (int n = 0; n < runs; n++) {
    int *row = &history->arm_row[(size_t)n * (size_t)history->arms + (size_t)arm[n]];
    if (*row) {
      repeat_row(history, n, *row - 1, y[n]);
    } else {
      append_row(history, n, phi + n, (size_t)runs, y[n]);
      *row = ++history->arm_rows[n];
    }
  }
  history->rounds++;
}

/* to[rows, to_runs] of run n <- from[rows, from_runs] of run m. */
static void copy_run(int rows, const double *from, int from_runs, int m, double *to, int to_runs, int n) {
  for (int i = 0; i < rows; i++) to[i * to_runs + n] = from[i * from_runs + m];
}

static void copy_rows(const History *from, int m, History *to, int n) {
  const size_t d = (size_t)from->d, lane = (size_t)(m % HISTORY_STRIP);
  const int count = history_observations(from, m);
  for (int l = 0; l < count; l++) {
    const size_t row = history_row(from, m / HISTORY_STRIP, l);
    append_row(to, n, from->features + row * d * HISTORY_STRIP + lane, HISTORY_STRIP,
               from->rewards[row * HISTORY_STRIP + lane]);
    to->observations[n]++;
  }
}

void history_gather(const History *from, const int *run, History *to) {
  const int d = from->d;
  ASSERT(to->observations && !from->arms && to->d == d && to->likelihood == from->likelihood);
  history_clear(to);
  to->temper = from->temper;
  to->rounds = from->rounds;
  for (int n = 0; n < to->runs; n++) {
    if (likelihood_is_conjugate(from->likelihood)) {
      copy_run(d * d, from->precision, from->runs, run[n], to->precision, to->runs, n);
      copy_run(d, from->vector, from->runs, run[n], to->vector, to->runs, n);
      to->reward_squares[n] = from->reward_squares[run[n]];
      to->observations[n] = history_observations(from, run[n]);
    } else {
      copy_rows(from, run[n], to, n);
    }
  }
}

enum { CHUNK = 64 };

/* One chunk of lanes: lane n belongs to run[n]. In z the log likelihood is -1/2 z' S A S z + z' S (b - A
 * shift). */
SIMD_CLONES
static void evidence_chunk(const History *history, int count, const int *restrict run, size_t stride,
                           const double *shift, const double *scale, double *restrict precision,
                           double *restrict vector) {
  const size_t d = (size_t)history->d, runs = (size_t)history->runs;
  const double temper = history->temper;
  for (size_t i = 0; i < d; i++) {
    double s_i = scale ? scale[i] : 1;
    const double *b = history->vector + i * runs;
    double *restrict b_z = vector + i * stride;
    for (int n = 0; n < count; n++) b_z[n] = b[run[n]];
    for (size_t j = 0; j < d; j++) {
      double s_ij = temper * s_i * (scale ? scale[j] : 1), m_j = shift ? shift[j] : 0;
      const double *a = history->precision + (i * d + j) * runs;
      double *restrict a_z = precision + (i * d + j) * stride;
      for (int n = 0; n < count; n++) {
        a_z[n] = s_ij * a[run[n]];
        b_z[n] -= m_j * a[run[n]];
      }
    }
    for (int n = 0; n < count; n++) b_z[n] *= temper * s_i;
  }
}

void history_evidence(const History *history, int draws, int first, int lanes, const double *shift,
                      const double *scale, double *precision, double *vector) {
  ASSERT(draws >= 1 && first >= 0 && first + lanes <= history->runs * draws);
  ASSERT(likelihood_is_conjugate(history->likelihood));
  for (int from = 0; from < lanes; from += CHUNK) {
    int run[CHUNK], count = lanes - from < CHUNK ? lanes - from : CHUNK;
    for (int n = 0; n < count; n++) run[n] = (first + from + n) / draws;
    evidence_chunk(history, count, run, (size_t)lanes, shift, scale, precision + from, vector + from);
  }
}

/* The evidence of runs in square-root form (Bierman 1977, Factorization Methods for Discrete Sequential
 * Estimation), which only the form `evidence` of a history knows about.
 *
 * If the evidence is 10^16 times as precise in one direction as prior and evidence are in another, the sum of
 * their precisions keeps no digit of the latter. The root, whose entries are square roots, keeps half of
 * them. It is an upper triangular R[d + 1, d + 1] with R'R = sum of (phi, y)(phi, y)' / sigma^2, so its rows
 * are like observations: with (Lambda, b) = (R'R, R'z), the first d rows are (R, z), and the last one is (0,
 * root of what no theta explains). */
#pragma once

#include "model/history/history.h"

/* Runs get a root when the trace of Lambda exceeds this: far below where Lambda would lose digits of a prior,
 * whose variances are at most 1e6. */
#define ROOT_FROM 1e6

typedef struct {
  int d;
  size_t columns; /* B, as of the history */
  double *root; /* [d + 1, d + 1, B] */
  double *from; /* [B]: the trace of Lambda when the root was computed from it; negative: there is no root */
  /* Scratch, for one run: */
  double *row; /* [d + 1] */
  double *sums; /* [d + 1, d + 1]: (Lambda, b; b', sum of squared rewards) */
  double *own; /* [d + 1, d + 1]: its root, tempered */
  double *conditioned; /* [d + 1, d + 1]: (T, t) */
  double *inverse; /* [d, d]: A^-1 */
} EvidenceRoots;

Status history_root_create(Arena *memory, int d, int columns, EvidenceRoots *out);
/* Forgets the roots of the first `runs` runs. */
void history_root_clear(const EvidenceRoots *self, int runs);
static inline bool history_root_has(const EvidenceRoots *self, int run) { return self->from[run] >= 0; }
/* Returns whether any of these runs has a root: hardly ever, so this is asked in every draw. */
static inline bool history_root_any(const EvidenceRoots *self, int first, int runs) {
  for (int run = first; run < first + runs; run++)
    if (history_root_has(self, run)) return true;
  return false;
}
/* Computes the root of a run from self->sums, which have this trace of Lambda. */
void history_root_start(const EvidenceRoots *self, int run, double trace);
/* Adds an observation, self->row[d + 1] = (phi, y) / sigma, which becomes zeros. */
void history_root_add(const EvidenceRoots *self, int run);
void history_root_copy(const EvidenceRoots *from, int m, const EvidenceRoots *to, int n);
/* Multiplies the evidence of the first `runs` runs by this factor. */
void history_root_discount(const EvidenceRoots *self, int runs, double factor);

/* Does the work of history_condition for one lane, whose entries in `out` are `stride` apart. */
void history_root_condition(const EvidenceRoots *self, double temper, int run, const Mixture *mixture, int c,
                            int stride, const Conditioned *out);
/* Does the work of history_digits for a run with a root; *outweighs is the ratio of which that speaks. */
PriorDigits history_root_digits(const EvidenceRoots *self, double temper, int run, const Mixture *mixture,
                                double *outweighs);

/* How the number of components of a fitted mixture was chosen: the candidates and the mean log density of
 * samples that they were not fitted to. Kept in the prior file. */
#pragma once

#include "io/store.h"

#include <stdio.h>

enum { MIXTURE_MOST_CANDIDATES = 16 };

typedef struct {
  int count; /* 0: there was no choice */
  int components[MIXTURE_MOST_CANDIDATES]; /* rising */
  double held_out[MIXTURE_MOST_CANDIDATES]; /* mean log density */
  double
      error[MIXTURE_MOST_CANDIDATES]; /* standard error of its difference to the highest, sample by sample */
  double shared[MIXTURE_MOST_CANDIDATES]; /* EmPlan.shared_items of its fit */
  int chosen;
  int most; /* number of components that was tried and is not above the last candidate's, or was no better */
} MixtureChoice;

/* Chooses the fewest components whose mean is below the highest by no more than one standard error of the
 * difference (Breiman et al. 1984). `density` of each candidate is the log density of the same n samples. */
void mixture_choice_make(int n, int count, const int *components, const double *const *density,
                         MixtureChoice *out);

/* Returns whether more components than the chosen ones were not tried. */
bool mixture_choice_ends(const MixtureChoice *choice);

/* Saves the choice: nothing where there was none. Loads the choice: nothing where the file has none. */
Status mixture_choice_save(const MixtureChoice *choice, StoreFile *file);
Status mixture_choice_load(StoreFile *file, MixtureChoice *out);
/* Reports one line for each candidate. */
void mixture_choice_report(const MixtureChoice *choice, FILE *out);

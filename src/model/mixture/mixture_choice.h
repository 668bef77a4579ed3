/* How the number of components of a fitted mixture was chosen: the candidates and the mean log density of
 * samples that they were not fitted to. Kept in the prior file. */
#pragma once

#include "io/store.h"

#include <stdio.h>

enum { MIXTURE_MOST_CANDIDATES = 16 };

typedef struct {
  int count; /* 0: there was no choice */
  int components[MIXTURE_MOST_CANDIDATES]; /* ascending */
  double held_out[MIXTURE_MOST_CANDIDATES]; /* mean log density */
  double error[MIXTURE_MOST_CANDIDATES]; /* standard error of its paired difference to the highest */
  double shared[MIXTURE_MOST_CANDIDATES]; /* EmPlan.shared_items of its fit */
  int chosen;
  int most; /* most components that were tried: the last candidate's, or more that were no better */
} MixtureChoice;

/* Chooses the fewest components whose mean is below the highest by no more than one standard error of the
 * difference (Breiman et al. 1984). `density` of each candidate is the log density of the same n samples. */
void mixture_choice_make(int n, int count, const int *components, const double *const *density,
                         MixtureChoice *out);

/* Saves the choice, if there was one. mixture_choice_load reads it back; count is 0 if the file has none. */
Status mixture_choice_save(const MixtureChoice *choice, StoreFile *file);
Status mixture_choice_load(StoreFile *file, MixtureChoice *out);
/* Reports one line for each candidate. */
void mixture_choice_report(const MixtureChoice *choice, FILE *out);

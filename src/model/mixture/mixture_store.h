/* Mixtures in prior files, and what a mixture must satisfy to serve as a prior, whether somebody wrote it to
 * a file or it was fitted, so that what is saved can be read. */
#pragma once

#include "io/store.h"
#include "model/mixture/mixture.h"

/* Checks a mixture before it is prepared. Returns STATUS_INPUT, with `name` in the message, if weights do not
 * sum to 1, a covariance is not symmetric, or a value is not finite or so extreme that simple arithmetic on
 * it would not stay finite. Weights and covariances that are off by the rounding of a float are corrected. */
Status mixture_store_check(const char *name, Mixture *mixture);
/* Saves a mixture together with its dimensions, as weight(component), mean(component, dim),
 * covariance(component, dim, dim2); *dim is the id of the dimension of theta. Anyone can write one. */
Status mixture_store_save(const Mixture *mixture, StoreFile *file, int *dim);
/* Loads a mixture, which is not prepared. Returns STATUS_INPUT, with a message, if a number is out of
 * range. */
Status mixture_store_load(Arena *memory, StoreFile *file, Mixture *out);

/* What the files of the library share. Its interface is thompson.h, which is installed. */
#pragma once

#include "library/thompson.h"
#include "model/prior/prior.h"

#include <hdf5.h>

struct thompson_prior {
  Arena memory; /* of all that follows */
  Prior prior;
};

/* Checks that the values of an array that somebody gives are finite and at most DATASET_MOST in size;
 * `name` stands for it in the sentence of STATUS_INPUT. */
Status library_check(const char *name, size_t count, const double *values);

/* Creates a prior for the caller to fill. */
Status library_prior_new(thompson_prior **out);

/* How HDF5 complained before. */
typedef struct {
  H5E_auto2_t print;
  void *data;
} LibraryFiles;

/* Begins and ends the use of files. HDF5 is not made for threads, so they take turns; and in each of them it
 * prints what it does not find, unless it is told not to. */
LibraryFiles library_enter_files(void);
void library_leave_files(LibraryFiles before);

enum { LIBRARY_MOST_OPTIONS = 32 };

/* "noise=0.5,hidden=[64,64]", cut at the commas outside of brackets. */
typedef struct {
  int count;
  const char *text[LIBRARY_MOST_OPTIONS];
} LibraryOptions;

/* Splits `options`, which may be NULL. The texts live as long as `memory`. */
Status library_options(Arena *memory, const char *options, LibraryOptions *out);
/* Removes the option `name` and returns its value, or NULL where it is not given. */
const char *library_take_option(LibraryOptions *options, const char *name);

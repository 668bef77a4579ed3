/* Shared by the files of the library. Its interface is thompson.h, which is installed. A function there
 * returns a Status as it is: a thompson_status has the same values. */
#pragma once

#include "library/thompson.h"
#include "model/prior/prior.h"

#include <hdf5.h>

_Static_assert((int)THOMPSON_INTERNAL == STATUS_INTERNAL && (int)THOMPSON_INPUT == STATUS_INPUT &&
                   (int)THOMPSON_FILE == STATUS_FILE && (int)THOMPSON_STOPPED == STATUS_STOPPED,
               "the values of thompson_status are those of Status");

struct thompson_prior {
  Arena memory; /* of all that follows */
  Prior prior;
  pthread_mutex_t turn; /* prior.turn: the threads that share the prior */
};

/* Checks that the values of a caller's array are finite and at most DATASET_MOST in magnitude. The message of
 * STATUS_INPUT calls the array `name`. */
Status library_check(const char *name, size_t count, const double *values);

/* Creates a prior for the caller to fill. */
Status library_prior_new(thompson_prior **out);
/* Allows threads to share a prior that has been filled; a second call does nothing. Samplers that use the
 * prior are created after it. */
void library_prior_share(thompson_prior *self);
/* Finishes a call that makes a prior: shares it or, after a failure, frees it and sets *out to NULL. */
thompson_status library_finish_prior(Status status, thompson_prior **out);

/* How HDF5 reported errors before. */
typedef struct {
  H5E_auto2_t print;
  void *data;
} LibraryFiles;

/* Begins and ends the use of files. HDF5 is not thread-safe, so threads take turns; and in each of them it
 * prints an error whenever it does not find something, unless told not to. */
LibraryFiles library_enter_files(void);
void library_leave_files(LibraryFiles before);

enum { LIBRARY_MOST_OPTIONS = 32 };

/* "noise=0.5,hidden=[64,64]", split at the commas outside brackets. */
typedef struct {
  int count;
  const char *text[LIBRARY_MOST_OPTIONS];
} LibraryOptions;

/* Splits `options`, which may be NULL. The texts live as long as `memory`. */
Status library_options(Arena *memory, const char *options, LibraryOptions *out);
/* Removes the option `name` and returns its value, or NULL if it is not given. */
const char *library_take_option(LibraryOptions *options, const char *name);

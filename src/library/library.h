/* Shared by the files of the library. Its interface is thompson.h, which is installed. A function there
 * returns a Status as it is: a thompson_status has the same values. */
#pragma once

#include "core/core_tick.h"
#include "library/thompson.h"
#include "rule/rule.h"
#include "sampler/check/alarm.h"

#include <hdf5.h>
#include <stdatomic.h>

_Static_assert((int)THOMPSON_INTERNAL == STATUS_INTERNAL && (int)THOMPSON_INPUT == STATUS_INPUT &&
                   (int)THOMPSON_FILE == STATUS_FILE && (int)THOMPSON_STOPPED == STATUS_STOPPED,
               "the values of thompson_status are those of Status");

struct thompson_prior {
  Arena memory; /* of all that follows */
  Prior prior;
  pthread_mutex_t turn; /* prior.turn: the threads that share the prior */
  thompson_prior *self; /* for holders of a constant pointer */
  atomic_int holders; /* the caller, until thompson_prior_close, and each posterior */
  thompson_prior *before, *after; /* in the list of all priors */
};

/* Checks that the values of a caller's array are finite and at most DATASET_MOST in magnitude. The message of
 * STATUS_INPUT calls the array `name`. */
Status library_check(const char *name, size_t count, const double *values);

/* Creates a prior for the caller to fill. */
Status library_prior_new(thompson_prior **out);
/* Allows threads to share a prior that has been filled; a second call does nothing. Samplers that use the
 * prior are created after it. */
void library_prior_share(thompson_prior *self);
/* Returns the prior, which exists until its holder, too, has called thompson_prior_close. */
thompson_prior *library_prior_hold(const thompson_prior *prior);
/* Lets fits in this thread end once *stop is not 0 (NULL: never); returns the tick to give back to
 * core_tick_exchange afterwards. */
Tick library_until(const volatile int *stop);
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

/* Writes a file of what `put` puts into it. */
Status library_write(const char *path, Status (*put)(StoreFile *file, const void *what), const void *what);

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

/* ---- posteriors; agents are processed through a posterior of several runs, chunk by chunk */

/* A user's likelihood as a posterior holds it; NULL: a likelihood of the registry. */
typedef struct LibraryLikelihood LibraryLikelihood;

struct thompson_posterior {
  thompson_prior *held; /* whose member `prior` is */
  Arena memory; /* of the options; the other arenas hold what is made again when it grows */
  Arena x_memory, y_memory, share_memory, history_memory, sampler_memory;
  const Prior *prior;
  const SamplerOps *method;
  Likelihood likelihood;
  LibraryLikelihood *given;
  Config *options; /* of the sampler and the rule */
  const char *text; /* the options as they were given */
  uint64_t seed;
  RngKey key;
  uint32_t round; /* of the next draw */
  uint32_t lives; /* how often everything was forgotten; names the streams of samplers that observe */
  int choices; /* since the last thompson_forget */
  int d, runs; /* runs: B; 1, or the size of a chunk of agents */
  int64_t fallbacks;
  History history;
  Rule rule; /* includes the sampler, for at most setup.draws draws */
  bool propensity; /* the rule can compute probabilities */
  bool forgets; /* the history forgets observations, so they are not kept */
  /* All observations of a single run, for callers that ask for them, and to be replayed if the history or the
   * sampler cannot grow in place. */
  int room; /* number of observations that fit */
  double *x, *y; /* [room, d], [room] */
  double *share; /* [room]: what ageing has left of the evidence of each */
  double discount; /* the option: the factor by which a round of ageing multiplies evidence */
};

/* Creates what a posterior holds of a user's likelihood of theta[d], and the likelihood as samplers see it.
 * Both live as long as `memory`, and what the functions need must live as long. */
Status library_likelihood_create(Arena *memory, int d, const thompson_likelihood_functions *functions,
                                 LibraryLikelihood **out, Likelihood *likelihood);
/* Begins a call of the library that asks about the likelihood, and ends it: returns STATUS_INPUT with the
 * sentence about the first answer that was wrong. `self` may be NULL. */
void library_likelihood_begin(LibraryLikelihood *self);
Status library_likelihood_end(const LibraryLikelihood *self, const SamplerOps *method);
/* Returns the functions that it was created with. */
const thompson_likelihood_functions *library_likelihood_functions(const LibraryLikelihood *self);

/* Creates a posterior as thompson_posterior_new does, for a chunk of `runs` agents; with `functions`, which
 * may be NULL, as thompson_posterior_from_likelihood does. */
Status library_posterior_new(const thompson_prior *prior, const thompson_arguments *arguments,
                             const thompson_likelihood_functions *functions, int runs,
                             thompson_posterior **out);
/* Returns STATUS_INPUT if the likelihood is a user's, so that there is nothing of what a call needs. */
Status library_posterior_refuse_given(const thompson_posterior *self, const char *what);
/* Creates a new sampler for this many draws, and replays the observations so far to it if it carries a
 * state. */
Status library_posterior_begin_sampler(thompson_posterior *self, int draws);
/* Makes sure that the rule can compute the probabilities of arms. */
Status library_posterior_begin_propensity(thompson_posterior *self);
/* Checks arms[sets, k, d]; returns STATUS_INPUT with a message if they are refused. */
Status library_posterior_check_arms(const thompson_posterior *self, int sets, int k, const double *arms);
/* Checks new observations x[n, d], y[n]; returns STATUS_INPUT with a message if they are refused. With a
 * conjugate likelihood the evidence of each is small enough for that of any number of them to be saved. */
Status library_posterior_admit(const thompson_posterior *self, int n, const double *x, const double *y);
/* Adds observations that library_posterior_admit or, from a file, library_posterior_check has accepted.
 * Returns STATUS_INPUT if a history that forgets cannot represent one of them, and has then added none. */
Status library_posterior_observe(thompson_posterior *self, int n, const double *x, const double *y);
/* Returns STATUS_INPUT with the sentence about an observation that a history which forgets cannot
 * represent. */
Status library_posterior_refuse(const thompson_posterior *self, int row, double y);
/* Makes room for twice this many observations, and for 64 at least, keeping those so far. */
Status library_posterior_grow_history(thompson_posterior *self, int rounds);
/* Computes the factor by which ageing by `rounds` multiplies evidence; returns STATUS_INPUT with a message if
 * the posterior keeps more than evidence. */
Status library_posterior_age_factor(const thompson_posterior *self, int rounds, double *factor);
/* Checks that values of observations x[n, d], y[n] are allowed, whether new or from a file; returns
 * STATUS_INPUT with a message if they are not. */
Status library_posterior_check(const thompson_posterior *self, size_t n, const double *x, const double *y);

/* Creates what p-values of at most this many observations need (sampler/check/alarm.h), or returns
 * STATUS_INPUT with the sentence that says why there are none. */
Status library_posterior_alarm(Arena *memory, const thompson_posterior *self, int observations, Alarm **out);

/* ---- agents */

/* Few enough for the evidence of a chunk to stay in the second-level cache. */
enum { AGENTS_CHUNK = 16 };

typedef struct {
  int observations, choices; /* choices: since the last thompson_agents_forget */
  uint32_t round; /* of the next draw */
  uint64_t chunk; /* the last chunk that it was part of */
  Arena memory; /* of `rows` */
  int room;
  double *rows; /* [room, d + 1], phi and y, if the likelihood is not conjugate */
} Agent;

struct thompson_agents {
  thompson_posterior *posterior; /* of `width` runs */
  Arena agent_memory, evidence_memory, features_memory; /* of one array each, which grows */
  Arena note_memory; /* of `note` */
  const char *note; /* of the caller's, saved with the agents */
  int count, width, size; /* size: doubles of evidence per agent; 0: it has rows */
  Agent *agent; /* [count] */
  double *evidence; /* [count, size] */
  uint64_t chunk;
  size_t room; /* doubles allocated at `features` */
  double *features; /* [K, d, B] */
  double *probability; /* [B, K], stored after the features */
  uint32_t run[AGENTS_CHUNK], round[AGENTS_CHUNK]; /* they name the random streams */
  int64_t fallbacks[AGENTS_CHUNK];
};

/* Adds an observation to an agent whose likelihood is not conjugate. */
Status agents_add_row(thompson_agents *self, Agent *agent, const double *x, double y);

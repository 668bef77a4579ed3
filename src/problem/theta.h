/* Distributions of the unknown parameter theta*: the six two-dimensional priors of the DiffTS paper
 * (Section 6.2, Appendix C.1), and general ones; the configuration check, `list` and the tests walk their
 * list. */
#pragma once

#include "model/denoiser/isotropic.h"
#include "model/prior/prior.h"

typedef struct ThetaSource ThetaSource;

typedef struct {
  const char *name, *summary, *reference;
  int dimension; /* 0: any */
  /* A distribution is one of `sample`, `mixture`, `load`, `prior` and `set`. */
  /* OPTIONAL, in the plane (dimension 2). One sample theta[2] from its own stream. */
  void (*sample)(Rng *rng, double *theta);
  /* OPTIONAL. Its log density at theta[2], with all constants; -infinity outside of the support. */
  double (*log_density)(const double *theta);
  /* OPTIONAL. The exact density as a mixture of Gaussians in d dimensions, or that of a file. */
  Status (*mixture)(Arena *memory, int d, Mixture *out);
  Status (*load)(Arena *memory, const char *file, Mixture *out);
  /* OPTIONAL. The same without matrices, for large d. */
  Status (*isotropic)(Arena *memory, int d, Isotropic *out);
  /* OPTIONAL. The distribution as a prior with a chain of these settings. */
  Status (*prior)(Arena *memory, int d, const PriorFit *chain_settings, Prior *out);
  /* OPTIONAL. A finite set of theta from a file. */
  Status (*set)(Arena *memory, const char *file, Samples *out);
} ThetaOps;

extern const ThetaOps theta_distributions[]; /* distributions.c; one without a name ends */
const ThetaOps *theta_find(const char *name);
const char *theta_name(int index);

/* An instance. */
struct ThetaSource {
  Arena memory; /* of mixture, isotropic, prior and of a set that was read */
  const ThetaOps *ops;
  int d;
  bool has_mixture;
  Mixture mixture; /* when has_mixture */
  Isotropic isotropic; /* instead of `mixture`, for large d; else d = 0 */
  Prior prior; /* when ops->prior */
  Samples set; /* of a finite distribution, else n = 0 */
  double test_fraction; /* of a finite set: kept for theta*, split again for each replicate */
  int held_out; /* instead, of a finite set: its first members are kept, for all replicates; else 0 */
  uint64_t seed;
  uint32_t segment; /* how often theta* has changed: names the streams of theta_draw and theta_draw_each */
};

/* Creates the source; `dimension` 0 means the distribution's own. Errors: STATUS_INPUT when it has
 * another, or lacks its file. */
Status theta_create(const ThetaOps *ops, int dimension, const char *file, double test_fraction, uint64_t seed,
                    ThetaSource *out);
/* Creates the source of N(0, I). */
Status theta_create_gaussian(int d, uint64_t seed, ThetaSource *out);
/* Creates the distribution without d x d matrices; it can be drawn from, and that is all. STATUS_INPUT
 * where it has no such form. */
Status theta_create_large(const ThetaOps *ops, int d, uint64_t seed, ThetaSource *out);
/* Makes a zeroed source draw from a finite set that is in memory already and outlives it; `source` names it
 * in messages. */
Status theta_create_set(const Samples *set, const char *source, int dimension, double test_fraction,
                        uint64_t seed, ThetaSource *out);
void theta_destroy(ThetaSource *source);

/* Draws theta* of runs first_run .. first_run + runs - 1, from streams (THETA, run, segment): theta[d, runs].
 * A finite set gives members of the replicate's test part. */
void theta_draw(const ThetaSource *source, uint32_t replicate, uint32_t first_run, int runs, double *theta);
/* Draws others of the same distribution, which no run meets: theta[d, count], from streams (THETA_SHOWN,
 * sample). From a finite set they are members of the test part of replicate 0. */
void theta_draw_shown(const ThetaSource *source, int count, double *theta);
/* Draws several for each run: theta[d, runs * each], run n's at n each .. From streams (THETA, run, segment,
 * draw). Those of a finite set are different members; there must be enough (theta_test_size). */
void theta_draw_each(const ThetaSource *source, uint32_t replicate, uint32_t first_run, int runs, int each,
                     double *theta);
/* Returns how many members of a finite set are reserved as theta*: at least one, leaving at least one to
 * learn from; INT_MAX for any other distribution. */
int theta_test_size(const ThetaSource *source);
/* Copies these members of the replicate: theta[d, theta_test_size]. */
void theta_test_part(const ThetaSource *source, uint32_t replicate, double *theta);
/* Returns how many samples priors are fitted to: at most `limit`; limit < 0: 10 000, or all of a finite
 * set. */
int theta_training_count(const ThetaSource *source, int64_t limit);
/* Draws the training samples of this replicate, never a theta* of a finite set. */
Status theta_training_samples(Arena *memory, const ThetaSource *source, uint32_t replicate, int64_t limit,
                              Samples *out);

/* Returns whether there is a prior: mixtures and densities have one; finite sets do not. */
bool theta_has_prior(const ThetaSource *source);
/* Creates the exact distribution as a prior of the agent: a mixture as prior_from_mixture does, and a density
 * as a prior that samples and knows its density, and can do nothing else (no chain, no file, no fit). */
Status theta_prior(Arena *memory, const ThetaSource *source, const PriorFit *chain_settings, Prior *out);

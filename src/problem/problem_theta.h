/* Distributions of the unknown parameter theta*: the six two-dimensional priors of the DiffTS paper (Section
 * 6.2, Appendix C.1), and general ones. The configuration check, `list` and the tests walk through their
 * list. */
#pragma once

#include "model/denoiser/denoiser_isotropic.h"
#include "model/prior/prior.h"

typedef struct ThetaSource ThetaSource;

typedef struct {
  double weight, mean[2], covariance[4];
} PlanarMode;

typedef struct {
  const char *name, *summary, *reference;
  int dimension; /* 0: any */
  /* A distribution has exactly one of `inside`, `sample`, `planar`, `modes`, `mixture`, `load`, `prior` and
   * `set`. */
  /* OPTIONAL, in the plane (dimension 2): the distribution is uniform on the part of [-3, 3]^2 where this
   * holds. `area` is that of the part. */
  bool (*inside)(const double *theta);
  double area;
  /* OPTIONAL, in the plane (dimension 2). Draws one sample theta[2] from its own stream. */
  void (*sample)(Rng *rng, double *theta);
  /* REQUIRED with `sample`. Returns the log density at theta[2], with all constants; -infinity outside of
   * the support. */
  double (*log_density)(const double *theta);
  /* OPTIONAL, in the plane (dimension 2). A mixture of Gaussians; one of weight 0 ends the list. */
  const PlanarMode *planar;
  /* OPTIONAL. A mixture of so many Gaussians of equal weight, with this variance in all directions, in d
   * dimensions. `means` sets mean[modes, d], which are 0 before; NULL leaves them so. No more than
   * ISOTROPIC_COMPONENTS can do without matrices. */
  int modes;
  double variance;
  Status (*means)(int d, double *mean);
  /* OPTIONAL. Creates any other mixture of Gaussians in d dimensions, or reads it from a file. */
  Status (*mixture)(Arena *memory, int d, Mixture *out);
  Status (*load)(Arena *memory, const char *file, Mixture *out);
  /* OPTIONAL. Creates the distribution as a prior with a chain of these settings. */
  Status (*prior)(Arena *memory, int d, const PriorFit *chain_settings, Prior *out);
  /* OPTIONAL. Reads a finite set of theta from a file. */
  Status (*set)(Arena *memory, const char *file, Samples *out);
} ThetaOps;

extern const ThetaOps theta_distributions[]; /* distributions.c; an entry without a name ends the list */
const ThetaOps *problem_theta_find(const char *name);
/* Returns whether the distribution is a density in the plane that is no mixture. */
static inline bool problem_theta_is_planar(const ThetaOps *ops) { return ops->inside || ops->sample; }
const char *problem_theta_name(int index);

/* A distribution to draw theta* from. */
struct ThetaSource {
  Arena memory; /* holds mixture, isotropic, prior, and a set that was read */
  const ThetaOps *ops;
  int d;
  bool has_mixture;
  Mixture mixture; /* when has_mixture */
  Isotropic isotropic; /* instead of `mixture`, without matrices; else d = 0 */
  Prior prior; /* when ops->prior */
  Samples set; /* of a finite distribution, else n = 0 */
  double test_fraction; /* of a finite set: the share kept for theta*, split again for each replicate */
  int held_out; /* instead, of a finite set: so many of its first members are kept, for all replicates; else 0
                 */
  uint64_t seed;
  uint32_t segment; /* how often theta* has changed; part of the names of the streams of problem_theta_draw
                       and problem_theta_draw_each */
};

/* Creates the source; `dimension` 0 means the distribution's own. Errors: STATUS_INPUT if the distribution
 * has another dimension, or lacks its file. */
Status problem_theta_create(const ThetaOps *ops, int dimension, const char *file, double test_fraction,
                            uint64_t seed, ThetaSource *out);
/* Creates the source of N(0, I). */
Status problem_theta_create_gaussian(int d, uint64_t seed, ThetaSource *out);
/* Returns whether the distribution has a form without d x d matrices, and these would be large. */
bool problem_theta_is_wide(const ThetaOps *ops, int d);
/* Creates the distribution in that form. STATUS_INPUT if it has none. */
Status problem_theta_create_vectors(const ThetaOps *ops, int d, uint64_t seed, ThetaSource *out);
/* Makes a zeroed source draw from a finite set that is already in memory and outlives the source; `source`
 * names the set in messages. */
Status problem_theta_create_set(const Samples *set, const char *source, int dimension, double test_fraction,
                                uint64_t seed, ThetaSource *out);
void problem_theta_destroy(ThetaSource *source);

/* Draws theta* of runs first_run .. first_run + runs - 1, from streams (purpose, run, segment): theta[d,
 * runs]. A finite set gives members of the replicate's test part. The purpose is THETA, or THETA_SHOWN for
 * others from the same distribution, which no run meets. */
void problem_theta_draw(const ThetaSource *source, RngPurpose purpose, uint32_t replicate, uint32_t first_run,
                        int runs, double *theta);
/* Draws several theta* per run: theta[d, runs * each], those of run n from column n each on, from streams
 * (THETA, run, segment, draw). A finite set gives each run different members; there must be enough of them
 * (problem_theta_test_size). */
void problem_theta_draw_each(const ThetaSource *source, uint32_t replicate, uint32_t first_run, int runs,
                             int each, double *theta);
/* Returns how many members of a finite set are reserved as theta*: at least one, and at least one is left to
 * learn from; INT_MAX for any other distribution. */
int problem_theta_test_size(const ThetaSource *source);
/* Copies the reserved members of the replicate: theta[d, problem_theta_test_size]. */
void problem_theta_test_part(const ThetaSource *source, uint32_t replicate, double *theta);
/* Returns how many samples priors are fitted to: `limit`, or for a finite set at most what is left to learn
 * from; limit < 0: 10 000, or all of a finite set that are left. */
int problem_theta_training_count(const ThetaSource *source, int64_t limit);
/* Draws the training samples of this replicate; those of a finite set are never its theta*. */
Status problem_theta_training_samples(Arena *memory, const ThetaSource *source, uint32_t replicate,
                                      int64_t limit, Samples *out);

/* Returns whether there is an exact prior: mixtures and densities have one; finite sets do not. */
bool problem_theta_has_prior(const ThetaSource *source);
/* Creates the exact distribution as a prior for an agent: a mixture as prior_from_mixture does, and a density
 * as a prior that can be sampled and has its density, but nothing else (no chain, no file, no fit). */
Status problem_theta_prior(Arena *memory, const ThetaSource *source, const PriorFit *chain_settings,
                           Prior *out);

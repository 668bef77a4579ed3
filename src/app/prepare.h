/* thompson prepare: public data sets as embedding files (problem/embedding/embedding_file.h). Each data set
 * has its own source file; the verb (parallel_prepare.c) parses the command line and calls the set's function
 * on rank 0 alone, because it takes only seconds. */
#pragma once

#include "io/config/config.h"

/* What the user asked for. */
typedef struct {
  int input_count;
  const char *const *inputs;
  const char *output;
  uint64_t seed;
  const Config *options; /* --option KEY=VALUE, under the set's own table of keys */
} PrepareJob;

/* The tables of keys for --option; they end with a NULL name. */
extern const ConfigKey prepare_movielens_keys[];
extern const ConfigKey prepare_mnist_keys[];

/* Reads the inputs, learns the embedding, and writes its file. Convergence is reported on stderr, a final
 * summary on stdout. */
Status prepare_movielens(const PrepareJob *job);
Status prepare_mnist(const PrepareJob *job);

/* What agents are made of, for the files that they are saved in (saved.c). */
#pragma once

#include "library/posterior.h"

/* Few, so that the evidence of a chunk stays in the second-level cache. */
enum { AGENTS_CHUNK = 16 };

typedef struct {
  int observations, choices; /* choices: since the last thompson_agents_forget */
  uint32_t round; /* of the next draw */
  uint64_t chunk; /* the last one that it was part of */
  Arena memory; /* of its rows */
  int judged; /* observations at the last check of what follows */
  bool lost; /* the evidence is beyond the digits of the sampler (sampler/check/spread.h) */
  int room;
  double *rows; /* [room, d + 1], phi and y, where the likelihood is not conjugate */
} Agent;

struct thompson_agents {
  thompson_posterior *posterior; /* of `width` runs */
  Arena memory, features_memory; /* of what grows */
  int count, width, size; /* size: doubles of an agent's evidence; 0: it has rows */
  Agent *agent; /* [count] */
  double *evidence; /* [count, size] */
  uint64_t chunk;
  size_t room; /* doubles of `features` */
  double *features; /* [K, d, B] */
  double *probability; /* [B, K], behind them */
  uint32_t run[AGENTS_CHUNK], round[AGENTS_CHUNK]; /* names of the streams */
  int arm[AGENTS_CHUNK];
  int64_t fallbacks[AGENTS_CHUNK];
};

/* Adds an observation to an agent whose likelihood is not conjugate. */
Status agents_add_row(thompson_agents *self, Agent *agent, const double *x, double y);

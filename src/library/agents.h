/* The structure of agents, shared by agents.c, agents_learn.c, and saved.c, which saves them in files. */
#pragma once

#include "library/library_posterior.h"

/* Few enough for the evidence of a chunk to stay in the second-level cache. */
enum { AGENTS_CHUNK = 16 };

typedef struct {
  int observations, choices; /* choices: since the last thompson_agents_forget */
  uint32_t round; /* of the next draw */
  uint64_t chunk; /* the last chunk that it was part of */
  Arena memory; /* of `rows` */
  int judged; /* observations when `lost` was last computed */
  bool lost; /* the evidence is too precise for the sampler's arithmetic (sampler/check/spread.h) */
  int room;
  double *rows; /* [room, d + 1], phi and y, if the likelihood is not conjugate */
} Agent;

struct thompson_agents {
  thompson_posterior *posterior; /* of `width` runs */
  Arena agent_memory, evidence_memory, features_memory; /* of one array each, which grows */
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

/* How arrays of lanes are divided, in four terms (docs/notation.md): a *block* is the runs that advance
 * together, a *chunk* the lanes that one call takes at a time, a *tile* what stays in the first-level cache,
 * a *vector* what one instruction works on. The study chooses the block (key `block`); the rest is here. */
#pragma once

enum {
  CHUNK_LANES = 64, /* for which samplers, densities and networks have scratch */
  CHUNK_SAMPLES = 256, /* of a training set, in a pass of EM */
  CHUNK_WEIGHTS = 128, /* of a network, when it is initialised */
  TILE_LANES = 16, /* runs side by side: whole vectors at every instruction level */
  TILE_ROWS = 16, /* of a history, with those lanes */
  TILE_DOUBLES = 2048, /* matrices side by side in an eigendecomposition */
  VECTOR_LANES = 8 /* doubles: one register of AVX-512, two of AVX2 */
};

/* Names in order of first appearance: any bytes, each with a number of its own, 0, 1, .. */
#pragma once

#include "core/arena.h"

#include <stdint.h>

typedef struct {
  int count;
  size_t capacity; /* of the hash table; a power of 2 */
  uint64_t *hash; /* [capacity] of a name */
  int *number; /* [capacity]: a name's number + 1; 0: free */
  const char **text; /* [capacity]: its length, 2 bytes, and its bytes; many share a block */
  char *block;
  size_t left; /* bytes of the present block */
  Arena texts, table;
} Names;

enum { NAMES_LONGEST = 0xffff };

/* Returns *number of text[length], a new one where it was not met before; length at most NAMES_LONGEST. A
 * zeroed Names is empty. Returns STATUS_INPUT beyond INT32_MAX of them. */
Status names_number(Names *names, const char *text, size_t length, int *number);
void names_free(Names *names);

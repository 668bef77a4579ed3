/* Numbers names 0, 1, .. in order of first appearance. A name may be any sequence of bytes. */
#pragma once

#include "core/arena.h"

#include <stdint.h>

typedef struct {
  int count;
  size_t capacity; /* of the hash table; a power of 2 */
  uint64_t *hash; /* [capacity]: hash of a name */
  int *number; /* [capacity]: a name's number + 1; 0: free */
  const char **text; /* [capacity]: length in 2 bytes, then the bytes; many share a block */
  char *block;
  size_t left; /* bytes left in the current block */
  Arena texts, table;
} Names;

enum { NAMES_LONGEST = 0xffff };

/* Finds the *number of text[length], or assigns the next one to a name that is new; length is at most
 * NAMES_LONGEST. A zeroed Names is empty. Returns STATUS_INPUT beyond INT_MAX names. */
Status names_number(Names *names, const char *text, size_t length, int *number);
void names_free(Names *names);

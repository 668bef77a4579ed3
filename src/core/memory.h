/* Allocation with a Status. Blocks are zeroed and aligned to 64 bytes (one cache line, one AVX-512
 * register). */
#pragma once

#include "core/status.h"

#include <stddef.h>
#include <stdlib.h>

enum { MEMORY_ALIGNMENT = 64 };

/* Allocates count zeroed elements of `size` bytes into *out; the caller frees it with free(). Zero
 * elements give a valid pointer. Errors: STATUS_INTERNAL when memory is short or count * size overflows. */
Status memory_new(void **out, size_t count, size_t size);

/* NEW(pointer, count): TRY to allocate `count` zeroed elements of the type that `pointer` points to. */
#define NEW(pointer, count) TRY(memory_new((void **)&(pointer), (size_t)(count), sizeof *(pointer)))

/* Frees a text that a function returned, for SCOPED (core/arena.h). */
static inline void memory_free_text(char **text) { free(*text); }

#include "core/arena.h"

#include "core/numeral.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* Precedes each array; its size is the alignment, so that the array is aligned too. */
typedef struct ArenaBlock {
  _Alignas(MEMORY_ALIGNMENT) struct ArenaBlock *before;
  void (*release)(void *block); /* OPTIONAL */
} ArenaBlock;

/* Allocates `before` bytes, a multiple of the alignment, and after them count zeroed elements; the block ends
 * with them, up to the alignment. */
static Status memory_new_after(size_t before, void **out, size_t count, size_t size) {
  *out = NULL;
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - 2 * MEMORY_ALIGNMENT)
    return status_set(STATUS_INTERNAL, "cannot allocate %zu elements of %zu bytes: too large", count, size);
  size_t rounded = before + (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
  if (rounded == 0) rounded = MEMORY_ALIGNMENT; /* zero elements give a valid pointer too */
  *out = aligned_alloc(MEMORY_ALIGNMENT, rounded);
  if (!*out) return status_set(STATUS_INTERNAL, "out of memory: %zu bytes were requested", bytes);
  memset(*out, 0, rounded);
  return STATUS_OK;
}

Status memory_new(void **out, size_t count, size_t size) { return memory_new_after(0, out, count, size); }

Status arena_new(Arena *arena, void **out, size_t count, size_t size) {
  *out = NULL;
  ArenaBlock *block;
  TRY(memory_new_after(sizeof *block, (void **)&block, count, size));
  block->before = arena->last;
  arena->last = block;
  *out = block + 1;
  return STATUS_OK;
}

Status arena_new_arrays(Arena *arena, size_t count, size_t size, void **const *outs) {
  for (; *outs; outs++) TRY(arena_new(arena, *outs, count, size));
  return STATUS_OK;
}

Status arena_grow(Arena *arena, void **array, size_t count, size_t size) {
  void *larger;
  if ((count & (count - 1)) != 0) return STATUS_OK;
  TRY(arena_new(arena, &larger, count > 0 ? 2 * count : 1, size));
  if (count > 0) memcpy(larger, *array, count * size);
  *array = larger;
  return STATUS_OK;
}

Status arena_resize(Arena *arena, void **array, size_t kept, size_t count, size_t size) {
  Arena larger = {0};
  void *moved;
  TRY(arena_new(&larger, &moved, count, size));
  if (kept > 0) memcpy(moved, *array, kept * size);
  arena_free(arena);
  *arena = larger;
  *array = moved;
  return STATUS_OK;
}

Status arena_print(Arena *arena, const char **out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = numeral_print(NULL, 0, format, arguments);
  va_end(arguments);
  ASSERT(length >= 0);
  char *text;
  ALLOCATE(arena, text, length + 1);
  va_start(arguments, format);
  numeral_print(text, (size_t)length + 1, format, arguments);
  va_end(arguments);
  *out = text;
  return STATUS_OK;
}

void arena_release_with(void *block, void (*release)(void *block)) {
  ((ArenaBlock *)block - 1)->release = release;
}

void arena_free(Arena *arena) {
  while (arena->last) {
    ArenaBlock *before = arena->last->before;
    if (arena->last->release) arena->last->release(arena->last + 1);
    free(arena->last);
    arena->last = before;
  }
}

#include "core/arena.h"

#include "core/numeral.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* From this many bytes on, memory comes from calloc, which gets it zeroed from the system without touching
 * it: of a large array only that counts which is used. */
enum { LARGE = 1 << 20 };

/* Precedes each array; its size is the alignment, so that the array is aligned too. */
typedef struct ArenaBlock {
  _Alignas(MEMORY_ALIGNMENT) struct ArenaBlock *before;
  void (*release)(void *block); /* OPTIONAL */
  void *whole; /* for free() */
} ArenaBlock;

/* Finds the bytes of count elements and of `before` bytes in front of them, rounded up to the alignment; zero
 * elements need memory too. */
static Status memory_find_size(size_t before, size_t count, size_t size, size_t *out) {
  size_t bytes;
  *out = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - 4 * MEMORY_ALIGNMENT)
    return status_set(STATUS_INTERNAL, "cannot allocate %zu elements of %zu bytes: too large", count, size);
  *out = before + (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
  if (*out == 0) *out = MEMORY_ALIGNMENT;
  return STATUS_OK;
}

static Status memory_check(const void *memory, size_t bytes) {
  return memory ? STATUS_OK : status_set(STATUS_INTERNAL, "out of memory: %zu bytes were requested", bytes);
}

Status memory_new(void **out, size_t count, size_t size) {
  size_t bytes = 0;
  *out = NULL;
  TRY(memory_find_size(0, count, size, &bytes));
  *out = aligned_alloc(MEMORY_ALIGNMENT, bytes);
  TRY(memory_check(*out, bytes));
  memset(*out, 0, bytes);
  return STATUS_OK;
}

/* Allocates a block of zeros whose contents may begin up to the alignment later. */
static Status arena_block_new_large(size_t bytes, ArenaBlock **out) {
  char *whole = calloc(1, bytes + MEMORY_ALIGNMENT);
  TRY(memory_check(whole, bytes));
  *out = (ArenaBlock *)(whole + MEMORY_ALIGNMENT - (uintptr_t)whole % MEMORY_ALIGNMENT);
  (*out)->whole = whole;
  return STATUS_OK;
}

/* Allocates a block of zeros that ends with the array, up to the alignment. */
static Status arena_block_new(size_t bytes, ArenaBlock **out) {
  *out = aligned_alloc(MEMORY_ALIGNMENT, bytes);
  TRY(memory_check(*out, bytes));
  memset(*out, 0, bytes);
  (*out)->whole = *out;
  return STATUS_OK;
}

Status arena_new(Arena *arena, void **out, size_t count, size_t size) {
  *out = NULL;
  ArenaBlock *block = NULL;
  size_t bytes = 0;
  TRY(memory_find_size(sizeof *block, count, size, &bytes));
  TRY(bytes < LARGE ? arena_block_new(bytes, &block) : arena_block_new_large(bytes, &block));
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
    free(arena->last->whole);
    arena->last = before;
  }
}

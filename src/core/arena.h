/* Memory that is freed all at once. A function that creates something takes an `Arena *memory`, allocates
 * everything there, and leaves it there even after a failure; the owner of the arena frees it as a whole, and
 * nothing is freed one by one. A zeroed Arena is empty.
 *
 * Each array is a separate block, zeroed and aligned to 64 bytes (one cache line, one AVX-512 register), so
 * that the sanitizers see where it ends, up to the alignment. */
#pragma once

#include "core/status.h"

#include <stddef.h>
#include <stdlib.h>

enum { MEMORY_ALIGNMENT = 64 };

typedef struct {
  struct ArenaBlock *last;
} Arena;

/* Allocates count zeroed elements of `size` bytes, aligned to MEMORY_ALIGNMENT, into *out; they live as
 * long as the arena. Zero elements give a valid pointer. Errors: STATUS_INTERNAL when memory is short or
 * count * size overflows. */
Status arena_new(Arena *arena, void **out, size_t count, size_t size);

/* Does the same for each of the pointers that `outs` points to, up to a NULL. */
Status arena_new_arrays(Arena *arena, size_t count, size_t size, void **const *outs);

/* Makes room for one more element after the first `count` of an array that only this function has ever grown:
 * when count is 0 or a power of two, the array moves to a block with room for twice as many. */
Status arena_grow(Arena *arena, void **array, size_t count, size_t size);

/* Moves the only array of an arena to a new block of `count` zeroed elements, which keeps the first `kept`,
 * and frees the old block. Errors: as arena_new; nothing has changed then. */
Status arena_resize(Arena *arena, void **array, size_t kept, size_t count, size_t size);

/* Formats a string, as printf does, that lives as long as the arena. Errors: as arena_new. */
Status arena_print(Arena *arena, const char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes arena_free call release(block) before it frees this block, a result of arena_new: for what is not
 * memory. */
void arena_release_with(void *block, void (*release)(void *block));

/* Frees all blocks, the last one first; the arena is empty again. */
void arena_free(Arena *arena);

/* ALLOCATE(arena, pointer, count): TRY to allocate `count` zeroed elements of the type that `pointer` points
 * to. */
#define ALLOCATE(arena, pointer, count)                                                                      \
  TRY(arena_new((arena), (void **)&(pointer), (size_t)(count), sizeof *(pointer)))

/* ALLOCATE_ARRAYS(arena, count, &one, &other, ..): the same for several pointers of one type. */
#define ALLOCATE_ARRAYS(arena, count, one, ...)                                                              \
  TRY(arena_new_arrays((arena), (size_t)(count), sizeof **(one),                                             \
                       (void **const *)(__typeof__(one)[]){(one), __VA_ARGS__, NULL}))

/* GROW(arena, pointer, count): TRY to arena_grow the array that `pointer` points to. */
#define GROW(arena, pointer, count)                                                                          \
  TRY(arena_grow((arena), (void **)&(pointer), (size_t)(count), sizeof *(pointer)))

/* RESIZE(arena, pointer, kept, count): TRY to arena_resize the array that `pointer` points to. */
#define RESIZE(arena, pointer, kept, count)                                                                  \
  TRY(arena_resize((arena), (void **)&(pointer), (size_t)(kept), (size_t)(count), sizeof *(pointer)))

/* Allocates such an array without an arena; the caller frees it with free(). */
Status memory_new(void **out, size_t count, size_t size);

/* NEW(pointer, count): TRY to allocate `count` zeroed elements of the type that `pointer` points to. */
#define NEW(pointer, count) TRY(memory_new((void **)&(pointer), (size_t)(count), sizeof *(pointer)))

/* Frees a text that a function returned, for SCOPED (below). */
static inline void memory_free_text(char **text) { free(*text); }

/* Declares a local arena for a function's scratch memory; it is freed wherever the function returns. */
#define SCRATCH_ARENA(name) SCOPED(Arena, name, arena_free)

/* Declares a zeroed local variable that is passed to `destroy` wherever the function returns, the last
 * declared first; `destroy` must accept a variable that is still zeroed, and one whose creation failed. */
#define SCOPED(type, name, destroy) __attribute__((cleanup(destroy))) type name = {0}

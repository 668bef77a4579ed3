/* Memory that is freed all at once. A function that makes something takes `Arena *memory`, where all that it
 * makes stays, also after a failure; whoever has the arena frees it whole, and nothing is freed by name. A
 * zeroed Arena is an empty one.
 *
 * Each array is a block of its own, so that the sanitizers see where it ends. */
#pragma once

#include "core/memory.h"

typedef struct {
  struct ArenaBlock *last;
} Arena;

/* Allocates count zeroed elements of `size` bytes, aligned to MEMORY_ALIGNMENT, into *out; they live as
 * long as the arena. Zero elements give a valid pointer. Errors: STATUS_INTERNAL when memory is short or
 * count * size overflows. */
Status arena_new(Arena *arena, void **out, size_t count, size_t size);

/* An array to allocate: where its address goes, and the size of an element. */
typedef struct {
  void **out;
  size_t size;
} ArenaArray;

/* Does the same for all of `arrays`, behind the last of which `out` is NULL. */
Status arena_new_arrays(Arena *arena, size_t count, const ArenaArray *arrays);

/* Makes room for one more element behind the `count` of an array that grew by such calls alone: at powers of
 * two it moves to twice the room. */
Status arena_grow(Arena *arena, void **array, size_t count, size_t size);

/* Prints in printf style into a text that lives as long as the arena. Errors: as arena_new. */
Status arena_print(Arena *arena, const char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Frees all blocks; the arena is empty again. */
void arena_free(Arena *arena);

/* ALLOCATE(arena, pointer, count): TRY to allocate `count` zeroed elements of the type that `pointer` points
 * to. */
#define ALLOCATE(arena, pointer, count)                                                                      \
  TRY(arena_new((arena), (void **)&(pointer), (size_t)(count), sizeof *(pointer)))

/* ALLOCATE_ARRAYS(arena, count, one, other, ..): the same for up to 16 pointers, of any types. */
#define ALLOCATE_ARRAYS(arena, count, ...)                                                                   \
  TRY(arena_new_arrays((arena), (size_t)(count), (const ArenaArray[]){ARENA_EACH(__VA_ARGS__){NULL, 0}}))
/* The preprocessor has no loops: each time that it scans the text it writes one more row. */
#define ARENA_EACH(...) ARENA_SCAN(ARENA_SCAN(ARENA_SCAN(ARENA_SCAN(ARENA_ROWS(__VA_ARGS__)))))
#define ARENA_SCAN(...) ARENA_TEXT(ARENA_TEXT(ARENA_TEXT(ARENA_TEXT(__VA_ARGS__))))
#define ARENA_TEXT(...) __VA_ARGS__
#define ARENA_ROWS(one, ...) {(void **)&(one), sizeof *(one)}, __VA_OPT__(ARENA_AGAIN ARENA_NONE(__VA_ARGS__))
#define ARENA_AGAIN() ARENA_ROWS
#define ARENA_NONE ()

/* GROW(arena, pointer, count): TRY to arena_grow the array that `pointer` points to. */
#define GROW(arena, pointer, count)                                                                          \
  TRY(arena_grow((arena), (void **)&(pointer), (size_t)(count), sizeof *(pointer)))

/* Declares a local arena, for what a function needs for itself: freed wherever the function is left. */
#define SCRATCH_ARENA(name) SCOPED(Arena, name, arena_free)

/* Declares a zeroed local that `destroy` ends wherever the function is left, the last declared first;
 * `destroy` takes one that is still zeroed, and one whose making has failed. */
#define SCOPED(type, name, destroy) __attribute__((cleanup(destroy))) type name = {0}

#include "io/names.h"

#include <limits.h>
#include <string.h>

/* Returns the FNV-1a hash (Fowler, Noll and Vo), its upper bits mixed into the lower ones, since the size of
 * the table is a power of 2. */
static uint64_t names_hash_text(const char *text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
  return hash ^ hash >> 32;
}

/* Returns the place of a name in the table, or the free place where it belongs. */
static size_t names_place_of(const Names *names, uint64_t hash, const char *text, size_t length) {
  size_t at = hash & (names->capacity - 1);
  for (; names->number[at]; at = (at + 1) & (names->capacity - 1)) {
    uint16_t other;
    if (names->hash[at] != hash) continue;
    memcpy(&other, names->text[at], sizeof other);
    if (other == length && memcmp(names->text[at] + sizeof other, text, length) == 0) break;
  }
  return at;
}

/* Doubles the size of the hash table. */
static Status names_grow_table(Names *names) {
  enum { FIRST = 1024 };
  Names larger = *names;
  larger.capacity = names->capacity > 0 ? 2 * names->capacity : FIRST;
  larger.table = (Arena){0};
  Status status = arena_new(&larger.table, (void **)&larger.hash, larger.capacity, sizeof *larger.hash);
  if (status == STATUS_OK)
    status = arena_new(&larger.table, (void **)&larger.number, larger.capacity, sizeof *larger.number);
  if (status == STATUS_OK)
    status = arena_new(&larger.table, (void **)&larger.text, larger.capacity, sizeof *larger.text);
  for (size_t i = 0; i < names->capacity && status == STATUS_OK; i++) {
    if (!names->number[i]) continue;
    size_t at = names->hash[i] & (larger.capacity - 1);
    while (larger.number[at]) at = (at + 1) & (larger.capacity - 1);
    larger.hash[at] = names->hash[i];
    larger.number[at] = names->number[i];
    larger.text[at] = names->text[i];
  }
  arena_free(status == STATUS_OK ? &names->table : &larger.table);
  if (status == STATUS_OK) *names = larger;
  return status;
}

static Status keep_text(Names *names, const char *text, size_t length, const char **out) {
  enum { BLOCK = 1 << 18 };
  const uint16_t prefix = (uint16_t)length;
  if (names->left < sizeof prefix + length) {
    ALLOCATE(&names->texts, names->block, BLOCK);
    names->left = BLOCK;
  }
  memcpy(names->block, &prefix, sizeof prefix);
  memcpy(names->block + sizeof prefix, text, length);
  *out = names->block;
  names->block += sizeof prefix + length;
  names->left -= sizeof prefix + length;
  return STATUS_OK;
}

Status names_number(Names *names, const char *text, size_t length, int *number) {
  ASSERT(length <= NAMES_LONGEST);
  const uint64_t hash = names_hash_text(text, length);
  if (2 * (size_t)names->count >= names->capacity) TRY(names_grow_table(names));
  const size_t at = names_place_of(names, hash, text, length);
  if (!names->number[at]) {
    if (names->count == INT_MAX) return status_set(STATUS_INPUT, "more than %d names", INT_MAX);
    TRY(keep_text(names, text, length, &names->text[at]));
    names->hash[at] = hash;
    names->number[at] = ++names->count;
  }
  *number = names->number[at] - 1;
  return STATUS_OK;
}

void names_free(Names *names) {
  arena_free(&names->texts);
  arena_free(&names->table);
  *names = (Names){0};
}

/* Memory that is freed all at once, and sentences that say where. */
#include "io/config/config_internal.h"

#include "core/memory.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct ConfigBlock {
  struct ConfigBlock *next;
  max_align_t data[];
};

Status config_pool_new(ConfigPool *pool, void **out, size_t count, size_t size) {
  size_t bytes;
  *out = NULL;
  bool fits =
      !__builtin_mul_overflow(count, size, &bytes) && bytes < PTRDIFF_MAX - sizeof(struct ConfigBlock);
  struct ConfigBlock *block = fits ? calloc(1, sizeof *block + bytes) : NULL;
  if (!block)
    return status_set(STATUS_INTERNAL, "out of memory: %zu elements of %zu bytes were asked for", count,
                      size);
  block->next = pool->blocks;
  pool->blocks = block;
  *out = block->data;
  return STATUS_OK;
}

Status config_pool_print(ConfigPool *pool, const char **out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  ASSERT(length >= 0);
  char *text;
  POOL_NEW(pool, text, length + 1);
  va_start(arguments, format);
  vsnprintf(text, (size_t)length + 1, format, arguments);
  va_end(arguments);
  *out = text;
  return STATUS_OK;
}

void config_pool_free(ConfigPool *pool) {
  while (pool->blocks) {
    struct ConfigBlock *next = pool->blocks->next;
    free(pool->blocks);
    pool->blocks = next;
  }
}

Status config_refuse(ConfigPlace place, const char *format, ...) {
  char sentence[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  if (place.line == 0) return status_set(STATUS_INPUT, "%s: %s", place.source, sentence);
  return status_set(STATUS_INPUT, "%s:%d:%d: %s", place.source, place.line, place.column, sentence);
}

ConfigShown config_shown(const char *text) {
  ConfigShown shown;
  size_t length = strlen(text), limit = sizeof shown.text - 4;
  if (length > limit) {
    length = limit;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  }
  for (size_t i = 0; i < length; i++) shown.text[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
  strcpy(shown.text + length, text[length] ? "..." : "");
  return shown;
}

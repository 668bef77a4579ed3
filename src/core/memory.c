#include "core/memory.h"

#include <stdint.h>
#include <string.h>

Status memory_new(void **out, size_t count, size_t size) {
  *out = NULL;
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - MEMORY_ALIGNMENT)
    return status_set(STATUS_INTERNAL, "cannot allocate %zu elements of %zu bytes: too large", count, size);
  size_t rounded = (bytes + MEMORY_ALIGNMENT) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
  void *block = aligned_alloc(MEMORY_ALIGNMENT, rounded);
  if (!block) return status_set(STATUS_INTERNAL, "out of memory: %zu bytes were requested", bytes);
  memset(block, 0, rounded);
  *out = block;
  return STATUS_OK;
}

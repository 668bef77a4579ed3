/* SHA-256, through libmd and the processor's own instructions: names of cached priors, and what histories and
 * samples a result came from. */
#ifndef IO_DIGEST_H
#define IO_DIGEST_H

#include "core/status.h"

#include <sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { DIGEST_SIZE = 65 }; /* 64 hexadecimal digits and the terminator */

/* The digest of one block of memory, in lower case. */
void digest_hex(const void *data, size_t size, char out[DIGEST_SIZE]);

/* The same in parts: begin, add any number of times, end. */
typedef struct {
  SHA2_CTX context;
  bool fast; /* the processor has instructions for it */
} Digest;

void digest_begin(Digest *digest);
void digest_add(Digest *digest, const void *data, size_t size);
void digest_end(Digest *digest, char out[DIGEST_SIZE]);

/* The digest of a regular file, read in small parts. STATUS_FILE when it cannot be read. */
Status digest_file(const char *path, char out[DIGEST_SIZE]);

#endif

/* SHA-256 by libcrypto, which uses the processor's instructions for it. Digests name cached priors, and
 * identify the histories and samples that a result came from. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { DIGEST_SIZE = 65 }; /* 64 hexadecimal digits and the terminator */

/* Computes the digest of one block of memory, in lower case. Errors: as digest_end. */
Status digest_hex(const void *data, size_t size, char out[DIGEST_SIZE]);

/* The same in parts: digest_begin, digest_add any number of times, and digest_end, which frees what
 * digest_begin allocated. */
typedef struct {
  struct evp_md_ctx_st *context; /* EVP_MD_CTX */
  bool failed; /* which digest_end reports */
} Digest;

void digest_begin(Digest *digest);
void digest_add(Digest *digest, const void *data, size_t size);
/* Writes the digest. Returns STATUS_INTERNAL if out of memory, or if the system does not allow libcrypto this
 * hash. */
Status digest_end(Digest *digest, char out[DIGEST_SIZE]);

/* Computes the digest of the next `size` bytes of a stream, fewer if it ends or fails earlier; *left is how
 * many it lacks. Errors: as digest_end. */
Status digest_stream(FILE *stream, uint64_t size, char out[DIGEST_SIZE], uint64_t *left);
/* Computes the digest of a regular file, read in small parts. A file that has not changed since one of the
 * last calls is not read again. Returns STATUS_FILE if it cannot be read. */
Status digest_file(const char *path, char out[DIGEST_SIZE]);

/* SHA-256 by libcrypto, which knows the processor's own instructions for it: names of cached priors, and what
 * histories and samples a result came from. */
#pragma once

#include "core/status.h"

#include <openssl/evp.h>
#include <stddef.h>

enum { DIGEST_SIZE = 65 }; /* 64 hexadecimal digits and the terminator */

/* Computes the digest of one block of memory, in lower case. Returns STATUS_INTERNAL as digest_end. */
Status digest_hex(const void *data, size_t size, char out[DIGEST_SIZE]);

/* The same in parts: begin, add any number of times, and end, which frees what begin has allocated. */
typedef struct {
  EVP_MD_CTX *context; /* NULL after a failure, which the end tells */
} Digest;

void digest_begin(Digest *digest);
void digest_add(Digest *digest, const void *data, size_t size);
/* Returns STATUS_INTERNAL without memory, or where the system's settings deny libcrypto this hash. */
Status digest_end(Digest *digest, char out[DIGEST_SIZE]);

/* Computes the digest of a regular file, read in small parts. Returns STATUS_FILE when it cannot be read. */
Status digest_file(const char *path, char out[DIGEST_SIZE]);

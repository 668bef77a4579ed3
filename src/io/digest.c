#include "io/digest.h"

void digest_hex(const void *data, size_t size, char out[DIGEST_SIZE]) {
  Digest digest;
  digest_begin(&digest);
  digest_add(&digest, data, size);
  digest_end(&digest, out);
}

void digest_begin(Digest *digest) { SHA256Init(&digest->context); }

void digest_add(Digest *digest, const void *data, size_t size) {
  if (size > 0) SHA256Update(&digest->context, data, size);
}

void digest_end(Digest *digest, char out[DIGEST_SIZE]) { SHA256End(&digest->context, out); }

#include "io/digest.h"

#include "core/arena.h"
#include "io/input.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

Status digest_hex(const void *data, size_t size, char out[DIGEST_SIZE]) {
  Digest digest;
  digest_begin(&digest);
  digest_add(&digest, data, size);
  return digest_end(&digest, out);
}

void digest_begin(Digest *digest) {
  digest->context = EVP_MD_CTX_new();
  digest->failed = !digest->context || !EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL);
}

void digest_add(Digest *digest, const void *data, size_t size) {
  digest->failed = digest->failed || !EVP_DigestUpdate(digest->context, data, size);
}

Status digest_end(Digest *digest, char out[DIGEST_SIZE]) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  const bool good = !digest->failed && EVP_DigestFinal_ex(digest->context, bytes, NULL);
  EVP_MD_CTX_free(digest->context);
  if (!good)
    return status_set(STATUS_INTERNAL, "libcrypto cannot compute SHA-256: out of memory, or disabled");
  for (int i = 0; i < DIGEST_SIZE / 2; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return STATUS_OK;
}

Status digest_stream(FILE *stream, uint64_t size, char out[DIGEST_SIZE], uint64_t *left) {
  char block[1 << 16];
  Digest digest;
  digest_begin(&digest);
  for (*left = size; *left > 0;) {
    const size_t n = fread(block, 1, *left < sizeof block ? (size_t)*left : sizeof block, stream);
    if (n == 0) break;
    digest_add(&digest, block, n);
    *left -= n;
  }
  return digest_end(&digest, out);
}

Status digest_file(const char *path, char out[DIGEST_SIZE]) {
  SCOPED(FILE *, stream, input_close);
  uint64_t left;
  TRY(input_stream(path, &stream));
  TRY(digest_stream(stream, UINT64_MAX, out, &left));
  return ferror(stream) ? status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(errno)) : STATUS_OK;
}

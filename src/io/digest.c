#include "io/digest.h"

#include "io/digest_sha.h"
#include "io/input.h"

#include <errno.h>
#include <string.h>

void digest_hex(const void *data, size_t size, char out[DIGEST_SIZE]) {
  Digest digest;
  digest_begin(&digest);
  digest_add(&digest, data, size);
  digest_end(&digest, out);
}

void digest_begin(Digest *digest) {
  SHA256Init(&digest->context);
  digest->fast = digest_sha_is_there();
}

enum { BLOCK = SHA256_BLOCK_LENGTH };

/* Bytes that are missing in a block which has begun. */
static size_t missing(const Digest *digest) {
  const size_t held = digest->context.bitcount[0] / 8 % BLOCK;
  return held > 0 ? BLOCK - held : 0;
}

/* Whole blocks by the processor's instructions, and what is before and behind them by libmd. */
void digest_add(Digest *digest, const void *data, size_t size) {
  const unsigned char *at = data;
  const size_t before = missing(digest), blocks = size > before ? (size - before) / BLOCK : 0;
  if (digest->fast && blocks > 0) {
    if (before > 0) SHA256Update(&digest->context, at, before);
    digest_sha_add(digest->context.state.st32, at + before, blocks);
    digest->context.bitcount[0] += (uint64_t)blocks * BLOCK * 8;
    at += before + blocks * BLOCK, size -= before + blocks * BLOCK;
  }
  if (size > 0) SHA256Update(&digest->context, at, size);
}

void digest_end(Digest *digest, char out[DIGEST_SIZE]) { SHA256End(&digest->context, out); }

Status digest_file(const char *path, char out[DIGEST_SIZE]) {
  char block[1 << 16];
  FILE *stream;
  Digest digest;
  TRY(input_stream(path, &stream));
  digest_begin(&digest);
  size_t count;
  while ((count = fread(block, 1, sizeof block, stream)) > 0) digest_add(&digest, block, count);
  digest_end(&digest, out);
  int error = ferror(stream) ? errno : 0;
  fclose(stream);
  return error ? status_set(STATUS_FILE, "cannot read %s: %s", path, strerror(error)) : STATUS_OK;
}

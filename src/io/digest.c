#include "io/digest.h"

#include "io/input.h"

#include <errno.h>
#include <string.h>

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

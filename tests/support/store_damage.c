#include "store_damage.h"

#include "classic.h"
#include "core/arena.h"
#include "io/store_internal.h"
#include "model/prior/prior.h"
#include "store_readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAMAGE_SEAL = 72, DAMAGE_FILES = 3 };

typedef struct {
  char *bytes;
  size_t size;
  bool classic;
} DamageFile;

/* Fills in results of four runs. */
static Status damage_fill_runs(StoreFile *file) {
  enum { RUNS = 4, ROUNDS = 20 };
  int axes[2];
  double values[RUNS * ROUNDS];
  for (int i = 0; i < RUNS * ROUNDS; i++) values[i] = 0.25 * i;
  TRY(store_dimension(file, "run", RUNS, &axes[0]));
  TRY(store_dimension(file, "round", ROUNDS, &axes[1]));
  TRY(store_int_attribute(file, "task", 2));
  TRY(store_text_attribute(file, NULL, "message", ""));
  TRY(store_write(file, "seconds", STORE_DOUBLE, 1, axes, NULL, "s", values));
  return store_write(file, "regret", STORE_DOUBLE, 2, axes, NULL, "1", values);
}

static Status damage_write_runs(const char *path) {
  StoreFile *file;
  TRY(store_create(path, &file));
  TRY(store_finish(file, damage_fill_runs(file)));
  return classic_convert(path);
}

static Status damage_write_prior(const char *path) {
  SCRATCH_ARENA(memory);
  static const PriorFit settings = {.schedule.stages = 3, .schedule.alpha = 0.8};
  Prior prior;
  TRY(prior_standard(&memory, 2, &settings, &prior));
  return prior_save(&prior, path);
}

/* Fills in a history, like a user's file with a checksum of ours. */
static Status damage_fill_history(StoreFile *file) {
  int axes[2];
  TRY(store_dimension(file, "observation", 3, &axes[0]));
  TRY(store_dimension(file, "dim", 2, &axes[1]));
  TRY(store_write(file, "x", STORE_DOUBLE, 2, axes, NULL, NULL, (double[]){1, 2, 3, 4, 5, 6}));
  return store_write(file, "y", STORE_DOUBLE, 1, axes, NULL, NULL, (double[]){1, 0, 1});
}

static Status damage_write_history(const char *path) {
  StoreFile *file;
  TRY(store_create(path, &file));
  TRY(store_finish(file, damage_fill_history(file)));
  return classic_convert(path);
}

/* Returns the undamaged files, written once in the folder of `path`. */
static const DamageFile *damage_files(const char *path) {
  static Status (*const writers[DAMAGE_FILES])(const char *) = {damage_write_runs, damage_write_prior,
                                                                damage_write_history};
  static DamageFile files[DAMAGE_FILES];
  for (int i = 0; i < DAMAGE_FILES && !files[i].bytes; i++) {
    if (writers[i](path) != STATUS_OK ||
        store_read_text(path, SIZE_MAX, &files[i].bytes, &files[i].size) != STATUS_OK)
      abort();
    files[i].classic = memcmp(files[i].bytes, "CDF", 3) == 0;
    remove(path);
  }
  return files;
}

void damage_step(const uint8_t step[4], size_t whole, char *bytes, size_t *size) {
  size_t place = (size_t)step[1] << 8 | step[2], behind = *size > 0 ? place % *size + 1 : 0;
  switch (step[0] % 4) {
  case 0:
    if (behind > 0) bytes[*size - behind] ^= (char)(step[3] ? step[3] : 1);
    break;
  case 1: memset(bytes + *size - behind, step[3], behind); break;
  case 2: *size -= behind; break;
  default:
    for (size_t n = place % 64; n > 0 && *size < whole + DAMAGE_MOST_APPENDED; n--)
      bytes[(*size)++] = (char)step[3];
  }
}

/* Tells whether the openers keep their promises for this file: NULL, or the promise that was broken. An HDF5
 * file whose data are damaged is passed only to store_open_own: without a checksum the library reads it, and
 * HDF5 1.10 is known to crash. */
static const char *damage_check(const char *path, const DamageFile *whole, const char *bytes, size_t size) {
  StoreFile *file;
  const size_t data = whole->size - DAMAGE_SEAL;
  const bool same = size == whole->size && memcmp(bytes, whole->bytes, size) == 0;
  const bool same_data = size >= data && memcmp(bytes, whole->bytes, data) == 0;
  Status status = store_open_own(path, &file);
  if (status == STATUS_OK) store_abandon(file);
  if ((status == STATUS_OK) != same) return "store_open_own takes what is whole, and nothing else";
  if (!same && !refused_well(status, path)) return "a refusal is a sentence about the file";
  if (!whole->classic && !same_data) return NULL;
  status = store_open(path, &file);
  if (status == STATUS_OK) store_abandon(file);
  /* the rest of a checksum, or a checksum with further bytes behind it */
  const bool rest = size > data && (size <= whole->size || memcmp(bytes + data, "thompson", 8) == 0);
  if (same_data && (status == STATUS_OK) != (same || !rest))
    return "store_open takes data with their checksum, or without the rest of one";
  return broken_reader(path);
}

const char *damage_run(const char *path, const uint8_t *data, size_t length) {
  const int which = length > 0 ? data[0] % DAMAGE_FILES : 0;
  const DamageFile *whole = &damage_files(path)[which];
  size_t size = whole->size;
  char *bytes = malloc(size + DAMAGE_MOST_APPENDED);
  if (!bytes) abort();
  memcpy(bytes, whole->bytes, size);
  for (int s = 0; s < DAMAGE_MOST_STEPS && 1 + 4 * (size_t)s + 4 <= length; s++)
    damage_step(data + 1 + 4 * s, whole->size, bytes, &size);
  FILE *stream = fopen(path, "wb");
  if (!stream || fwrite(bytes, 1, size, stream) != size || fclose(stream) != 0) abort();
  const char *broken = damage_check(path, whole, bytes, size);
  free(bytes);
  return broken;
}

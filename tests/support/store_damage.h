/* Damage to a file with a checksum, described by a few bytes: for fuzz_store_seal.c, and for
 * test_store_corpus.c, which walks its corpus.
 *
 * The bytes, followed by zeros: the file, then steps of four bytes: the kind of damage, two for a place (from
 * the end of the file, modulo its length), and a value. Kinds: flip a byte, fill everything behind the place,
 * cut it off, append. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DAMAGE_MOST_STEPS = 8, DAMAGE_MOST_APPENDED = 256 };

/* Applies one step of damage to bytes[size + DAMAGE_MOST_APPENDED]. */
void damage_step(const uint8_t step[4], size_t whole, char *bytes, size_t *size);

/* Damages a file as the bytes say, writes it to `path`, and checks it; returns NULL, or the promise of the
 * openers that was broken. */
const char *damage_run(const char *path, const uint8_t *data, size_t length);

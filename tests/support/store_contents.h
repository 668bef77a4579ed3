/* A NetCDF file described by a few bytes: dimensions, variables, types, attributes and values, valid for the
 * format but as odd as the bytes make them. For fuzz_store_contents.c, and for test_store_corpus.c, which
 * walks its corpus.
 *
 * The bytes, each modulo the number of its choices, followed by zeros:
 *   format, seal, D, D times (name, length), V, V times (name, type, rank, dimensions[rank], A, A
 * attributes), A, A global attributes, V times the values. An attribute is name, type, length, values. What
 * the library refuses to write is left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the file; false when the library cannot. *sealed tells whether it has a seal. */
bool store_contents_write(const char *path, const uint8_t *data, size_t size, bool *sealed);

/* The promises of the readers of NetCDF files, checked on one file with any contents: shared by the fuzz
 * targets fuzz_store_classic.c and fuzz_store_contents.c and by test_store_corpus.c, which walks their
 * corpora.
 *
 * What is accepted is finite and agrees with its shape; a refusal leaves nothing behind and its sentence
 * names the file. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

/* Tells whether this is a proper refusal of a file's contents: bad input, or a file that the library cannot
 * read. */
bool refused_well(Status status, const char *path);

/* Reads the file as a prior, as samples, as a history, as a table of rewards, as a log of events, as
 * cases, as a matrix and as an embedding; returns NULL, or the kind whose promise was broken. */
const char *broken_reader(const char *path);

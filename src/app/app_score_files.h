/* The files of `thompson score`: what a problem of the pack gives to samplers, and the draws it gets back. */
#pragma once

#include "study/study_pack.h"

/* Makes the folder `directory`, or accepts it if it exists and is empty (otherwise returns STATUS_FILE), and
 * writes its README.md, which says what is to be drawn for these problems. */
Status app_score_files_begin(const char *directory, int count, const Pack *packs);
/* Exports DIRECTORY/NAME: prior and histories as NetCDF and CSV, without theta*. */
Status app_score_files_export(const Pack *pack, const char *directory);

/* Reads theta(history, draw, dim) from the file `path` into theta[histories, M, d], the first M = pack->draws
 * of each history. Returns STATUS_INPUT with a message if they are not what the problem asks for. */
Status app_score_files_read_draws(Arena *memory, const Pack *pack, const char *path, double **theta);

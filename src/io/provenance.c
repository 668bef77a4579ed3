#include "io/provenance.h"

#include "core/arena.h"
#include "core/clock.h"
#include "io/io_shell.h"
#include "io/version.h"

#ifdef THOMPSON_OPENBLAS
#include <cblas.h>
#endif
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The papers, under the names by which methods refer to them. */
static const struct {
  const char *name, *citation;
} papers[] = {{"DiffTS paper", "Kveton, Oreshkin, Park, Deshmukh, Song: Online Posterior Sampling "
                               "with a Diffusion Prior (NeurIPS 2024, arXiv:2410.03919)"},
              {"VITS paper", "Clavier, Huix, Durmus: VITS: Variational Inference Thompson Sampling "
                             "for contextual bandits (ICML 2024, arXiv:2307.10167)"},
              {"Tilted transport", "Bruna, Han: Provable Posterior Sampling with Denoising Oracles "
                                   "via Tilted Transport (NeurIPS 2024, arXiv:2407.00745)"}};

static char *command;
static double start; /* by clock_wall */
static char library[256] = "none";
static int ranks = 1;

void provenance_set_command(int argc, char *const *argv) {
  size_t size;
  start = clock_wall();
  free(command);
  command = NULL;
  FILE *out = open_memstream(&command, &size);
  if (!out) return;
  for (int i = 0; i < argc; i++) {
    if (i > 0) fputc(' ', out);
    io_shell_print(out, argv[i]);
  }
  fclose(out);
}

double provenance_elapsed(void) { return clock_wall() - start; }

void provenance_set_mpi(int mpi_ranks, const char *mpi_library) {
  ranks = mpi_ranks;
  snprintf(library, sizeof library, "%s", mpi_library);
  /* The version texts of MPI libraries contain line ends and NUL padding. */
  for (char *c = library; *c; c++)
    if (*c == '\n' || *c == '\t') *c = ' ';
}

const char *provenance_source(void) {
  return "thompson " VERSION_NUMBER " (commit " VERSION_COMMIT
#if VERSION_DIRTY
         ", modified"
#endif
         ")";
}

Status provenance_write(StoreFile *file, const char *title, const char *references) {
  SCRATCH_ARENA(scratch);
  char host[256] = "unknown", when[32];
  const time_t now = time(NULL);
  struct tm utc;
  const char *cited = references ? references : "", *history;
  for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
    if (!references || strstr(references, papers[i].name))
      TRY(arena_print(&scratch, &cited, "%s%s%s", cited, *cited ? "; " : "", papers[i].citation));
  strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  TRY(arena_print(&scratch, &history, "%s: %s", when, command ? command : "thompson"));
  TRY(store_text_attribute(file, NULL, "Conventions", "CF-1.10"));
  TRY(store_text_attribute(file, NULL, "title", title));
  TRY(store_text_attribute(file, NULL, "references", cited));
  TRY(store_text_attribute(file, NULL, "source", provenance_source()));
  TRY(store_text_attribute(file, NULL, "history", history));
  gethostname(host, sizeof host - 1);
  TRY(store_text_attribute(file, NULL, "hostname", host));
  TRY(store_int_attribute(file, "mpi_ranks", ranks));
  TRY(store_text_attribute(file, NULL, "mpi_library", library));
  TRY(store_text_attribute(file, NULL, "compiler", VERSION_COMPILER));
  TRY(store_text_attribute(file, NULL, "compiler_flags", VERSION_FLAGS));
#ifdef THOMPSON_OPENBLAS
  return store_text_attribute(file, NULL, "blas", openblas_get_config());
#else
  return store_text_attribute(file, NULL, "blas", VERSION_BLAS);
#endif
}

#include "app/app_score_files.h"

#include "io/provenance.h"
#include "model/mixture/mixture_store.h"
#include "model/prior/prior.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

static Status app_score_make_folder(const char *path) {
  if (mkdir(path, 0777) == 0) return STATUS_OK;
  return status_set(STATUS_FILE, "cannot make the folder %s: %s", path, strerror(errno));
}

/* ---- text files */

typedef struct {
  FILE *out;
  char *text;
  size_t size;
} Text;

static Status app_score_text_begin(Text *self) {
  *self = (Text){0};
  self->out = open_memstream(&self->text, &self->size);
  return self->out ? STATUS_OK : status_set(STATUS_INTERNAL, "out of memory");
}

static Status app_score_text_write(Text *self, const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const bool whole = fclose(self->out) == 0;
  Status status =
      whole ? store_write_text(path, self->text, false) : status_set(STATUS_INTERNAL, "out of memory");
  free(self->text);
  return status;
}

static const char README[] =
    "\n"
    "\n"
    "Written by `%s`.\n"
    "Each folder is one problem: a prior, and histories of observations of an unknown theta that was drawn "
    "from it.\n"
    "For every history, draw theta from its posterior, and let the program score the draws:\n"
    "\n"
    "    thompson score --problem NAME --draws draws.nc\n"
    "\n"
    "| file | content |\n"
    "|---|---|\n"
    "| `prior.nc` | a mixture of Gaussians: `weight(component)`, `mean(component, dim)`, "
    "`covariance(component, dim, dim2)` |\n"
    "| `prior.csv` | the same, one component per row, the covariance row by row |\n"
    "| `histories.nc` | all histories: `x(history, observation, dim)`, `y(history, observation)`, NaN after "
    "the first `observations(history)` of a history; attributes `likelihood`, `noise` |\n"
    "| `history_000.csv` | history 0 alone, one observation per row, as `thompson sample --data` expects it "
    "|\n"
    "\n"
    "With likelihood `gaussian` y is N(x' theta, noise^2); with `logistic` it is 1 with probability 1 / (1 + "
    "exp(-x' theta)) and 0 otherwise.\n"
    "If covariances are 0 (attribute `prior` is `ising`), the components are points.\n"
    "\n"
    "`draws.nc` is a NetCDF file with `theta(history, draw, dim)`: histories in the order of `histories.nc`, "
    "with the number of independent draws that the table lists; if there are more, the first are scored.\n"
    "\n"
    "| problem | d | likelihood | noise | histories | draws | what it is |\n"
    "|---|---|---|---|---|---|---|\n";

/* Closes the folder and returns whether it was empty. */
static bool app_score_close_empty(DIR *folder) {
  bool empty = true;
  for (const struct dirent *entry; (entry = readdir(folder));)
    empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
  closedir(folder);
  return empty;
}

Status app_score_files_begin(const char *directory, int count, const Pack *packs) {
  Text text;
  DIR *folder = opendir(directory);
  if (!folder && errno != ENOENT)
    return status_set(STATUS_FILE, "cannot read the folder %s: %s", directory, strerror(errno));
  if (!folder) TRY(app_score_make_folder(directory));
  if (folder && !app_score_close_empty(folder))
    return status_set(STATUS_FILE, "%s is not empty; an export needs a new or empty folder", directory);
  TRY(app_score_text_begin(&text));
  fprintf(text.out, README, provenance_source());
  for (int i = 0; i < count; i++)
    fprintf(text.out, "| %s | %d | %s | %g | %d | %d | %s |\n", packs[i].name, packs[i].problem.d,
            packs[i].problem.likelihood.ops->name, packs[i].problem.likelihood.noise, packs[i].histories,
            packs[i].draws, packs[i].summary);
  return app_score_text_write(&text, directory, "README.md");
}

static void print_header(FILE *out, const char *letter, int d) {
  for (int i = 1; i <= d; i++) fprintf(out, "%s%d,", letter, i);
}

static void print_row(FILE *out, size_t n, const double *x) {
  for (size_t i = 0; i < n; i++) fprintf(out, "%.17g,", x[i]);
}

/* ---- NetCDF */

static Status app_score_fill_prior(const Pack *pack, const Mixture *prior, StoreFile *file) {
  int dim;
  TRY(provenance_write(file, "prior of a problem for posterior samplers", NULL));
  TRY(store_text_attribute(file, NULL, "prior", pack->prior.ops->name));
  TRY(store_text_attribute(file, NULL, "pack", PACK_NAME));
  TRY(store_text_attribute(file, NULL, "problem", pack->name));
  return mixture_store_save(prior, file, &dim);
}

/* Writes prior.csv and prior.nc, a mixture; corners of a hypercube become components of covariance 0. */
static Status app_score_export_prior(const Pack *pack, const char *folder) {
  SCRATCH_ARENA(scratch);
  const char *path;
  Mixture prior;
  StoreFile *file;
  Text text;
  if (pack->prior.mixture) {
    prior = *pack->prior.mixture;
  } else {
    ASSERT(pack->prior.hypercube);
    const int corners = 1 << pack->problem.d;
    TRY(mixture_create(&scratch, pack->problem.d, corners, &prior));
    for (int c = 0; c < corners; c++) {
      prior.weight[c] = 1.0 / corners;
      for (int i = 0; i < prior.d; i++) prior.mean[c * prior.d + i] = c >> i & 1 ? 1 : -1;
    }
  }
  const size_t d = (size_t)prior.d;
  TRY(app_score_text_begin(&text));
  print_header(text.out, "mean", prior.d);
  for (int i = 1; i <= prior.d; i++)
    for (int j = 1; j <= prior.d; j++) fprintf(text.out, "covariance%d_%d,", i, j);
  fprintf(text.out, "weight\n");
  for (size_t c = 0; c < (size_t)prior.components; c++) {
    print_row(text.out, d, prior.mean + c * d);
    print_row(text.out, d * d, prior.covariance + c * d * d);
    fprintf(text.out, "%.17g\n", prior.weight[c]);
  }
  TRY(app_score_text_write(&text, folder, "prior.csv"));
  TRY(arena_print(&scratch, &path, "%s/prior.nc", folder));
  TRY(store_create(path, &file));
  return store_finish(file, app_score_fill_prior(pack, &prior, file));
}

static Status app_score_fill_histories(const Pack *pack, StoreFile *file) {
  int axis[3];
  TRY(provenance_write(file, "histories of a problem for posterior samplers", NULL));
  TRY(store_text_attribute(file, NULL, "pack", PACK_NAME));
  TRY(store_text_attribute(file, NULL, "problem", pack->name));
  TRY(store_text_attribute(file, NULL, "likelihood", pack->problem.likelihood.ops->name));
  TRY(store_real_attribute(file, "noise", pack->problem.likelihood.noise));
  TRY(store_int_attribute(file, "draws", pack->draws));
  TRY(store_dimension(file, "history", (size_t)pack->histories, &axis[0]));
  TRY(store_dimension(file, "observation", (size_t)pack->longest, &axis[1]));
  TRY(store_dimension(file, "dim", (size_t)pack->problem.d, &axis[2]));
  TRY(store_write(file, "x", STORE_DOUBLE, 3, axis, "features", "1", pack->x));
  TRY(store_write(file, "y", STORE_DOUBLE, 2, axis, "reward", "1", pack->y));
  return store_write(file, "observations", STORE_INT, 1, axis, "observations of the history", "1",
                     pack->observations);
}

/* Writes each history as history_000.csv, and all of them as histories.nc. */
static Status app_score_export_histories(const Pack *pack, const char *folder) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)pack->problem.d;
  const char *path;
  StoreFile *file;
  for (int h = 0; h < pack->histories; h++) {
    const double *y = pack->y + h * pack->longest, *x = pack->x + (size_t)h * (size_t)pack->longest * d;
    char name[32];
    Text text;
    snprintf(name, sizeof name, "history_%03d.csv", h);
    TRY(app_score_text_begin(&text));
    print_header(text.out, "x", pack->problem.d);
    fprintf(text.out, "y\n");
    for (int n = 0; n < pack->observations[h]; n++) {
      print_row(text.out, d, x + (size_t)n * d);
      fprintf(text.out, "%.17g\n", y[n]);
    }
    TRY(app_score_text_write(&text, folder, name));
  }
  TRY(arena_print(&scratch, &path, "%s/histories.nc", folder));
  TRY(store_create(path, &file));
  return store_finish(file, app_score_fill_histories(pack, file));
}

Status app_score_files_export(const Pack *pack, const char *directory) {
  SCRATCH_ARENA(scratch);
  const char *folder;
  TRY(arena_print(&scratch, &folder, "%s/%s", directory, pack->name));
  TRY(app_score_make_folder(folder));
  TRY(app_score_export_prior(pack, folder));
  return app_score_export_histories(pack, folder);
}

/* ---- draws */

Status app_score_files_read_draws(Arena *memory, const Pack *pack, const char *path, double **theta) {
  SCRATCH_ARENA(scratch);
  SCOPED(StoreFile *, file, store_close);
  const size_t m = (size_t)pack->draws, d = (size_t)pack->problem.d;
  size_t shape[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, histories = (size_t)pack->histories;
  int64_t *number;
  double *all;
  TRY(store_open(path, &file));
  TRY(store_shape(file, "theta", 3, shape));
  TRY(store_axes(file, "theta", 3, (const char *[]){"history", "draw", "dim"}));
  if (shape[0] != histories)
    return status_set(STATUS_INPUT, "%s: 'theta' has %zu histories; problem %s has %d", path, shape[0],
                      pack->name, pack->histories);
  if (shape[1] < m)
    return status_set(STATUS_INPUT, "%s: 'theta' has %zu draws per history; %d are needed", path, shape[1],
                      pack->draws);
  if (shape[2] != d)
    return status_set(STATUS_INPUT, "%s: 'theta' has %zu dimensions; problem %s has %d", path, shape[2],
                      pack->name, pack->problem.d);
  if (store_has_variable(file, "history")) { /* a coordinate: it must follow the order of the export */
    ALLOCATE(&scratch, number, histories);
    TRY(store_shape(file, "history", 1, &histories));
    TRY(store_get_int64s(file, "history", number));
    for (int h = 0; h < pack->histories; h++)
      if (number[h] != h)
        return status_set(STATUS_INPUT,
                          "%s: 'history' is %lld at position %d; draws must be in the order of the export",
                          path, (long long)number[h], h);
  }
  ALLOCATE(&scratch, all, shape[0] * shape[1] * d);
  TRY(store_get_doubles(file, "theta", all));
  ALLOCATE(memory, *theta, histories * m * d);
  for (size_t h = 0; h < histories; h++)
    for (size_t n = 0; n < m; n++)
      for (size_t i = 0; i < d; i++) {
        const double value = all[(h * shape[1] + n) * d + i];
        if (!isfinite(value))
          return status_set(STATUS_INPUT, "%s: history %zu, draw %zu: theta[%zu] is %g, which is not finite",
                            path, h, n, i, value);
        (*theta)[(h * m + n) * d + i] = value;
      }
  return STATUS_OK;
}

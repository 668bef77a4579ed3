/* thompson export: the results of one study or several as a table with one row for each run and point. */
#include "parallel/results/export.h"
#include "app/app.h"
#include "io/durable.h"

#include <errno.h>
#include <unistd.h>

static struct {
  AppTexts folders;
  const char *output;
} arguments;

static const AppOption options[] = {{"output", 'o', "FILE.csv",
                                     "the table; it must not exist yet (default: standard output)",
                                     .output = &arguments.output},
                                    {0}};

static bool export_has_ending(const char *path, const char *ending) {
  const size_t length = strlen(path), tail = strlen(ending);
  return length > tail && strcmp(path + length - tail, ending) == 0;
}

static void export_take_folder(struct argp_state *state, const char *text) {
  app_texts_add(state, &arguments.folders, text);
}

static void export_check(struct argp_state *state) {
  const char *output = arguments.output;
  if (arguments.folders.count == 0) argp_error(state, "no results folder given");
  if (output && export_has_ending(output, ".parquet"))
    argp_error(state,
               "-o: %s: Parquet is written by Python with pandas and pyarrow, from the table as .csv: "
               "pandas.read_csv(\"FILE.csv\").to_parquet(\"FILE.parquet\")",
               output);
  if (output && !export_has_ending(output, ".csv"))
    argp_error(state, "-o: '%s' does not end in .csv", output);
}

/* Returns what stands in the column `folder` for a folder; NULL: there is no such column. */
static const char *export_folder_label(int i) {
  return arguments.folders.count > 1 ? arguments.folders.texts[i] : NULL;
}

/* Reads the names of the columns of a folder's table; *header belongs to the caller. */
static Status export_read_header(int i, char **header) {
  SCOPED(Study, study, study_destroy);
  size_t size;
  TRY(app_study_of_folder(arguments.folders.texts[i], &study));
  FILE *out = open_memstream(header, &size);
  if (!out) return status_set(STATUS_INTERNAL, "out of memory");
  export_header(&(ExportTable){.study = &study, .folder = export_folder_label(i), .out = out});
  fclose(out);
  return STATUS_OK;
}

/* Checks that the tables of all folders have the columns `header`, those of the first. */
static Status export_check_columns(const char *header) {
  for (int i = 1; i < arguments.folders.count; i++) {
    SCOPED(char *, own, memory_free_text);
    TRY(export_read_header(i, &own));
    if (strcmp(own, header) == 0) continue;
    size_t at = 0;
    while (own[at] == header[at]) at++;
    while (own[at - 1] != ',') at--;
    return status_set(STATUS_INPUT,
                      "%s has a column '%.*s' where %s has '%.*s'; folders of one table have the same swept "
                      "keys and the same curves",
                      arguments.folders.texts[i], (int)strcspn(own + at, ",\n"), own + at,
                      arguments.folders.texts[0], (int)strcspn(header + at, ",\n"), header + at);
  }
  return STATUS_OK;
}

/* Writes the rows of a folder. */
static Status export_folder(int i, FILE *out) {
  SCRATCH_ARENA(scratch);
  SCOPED(Study, study, study_destroy);
  SCOPED(Finished, finished, finished_close);
  const ExportTable table = {.study = &study, .folder = export_folder_label(i), .out = out};
  TRY(app_study_of_folder(arguments.folders.texts[i], &study));
  TRY(finished_open(&scratch, arguments.folders.texts[i], &study, false, &finished));
  return export_rows(&table, &finished);
}

static Status export_folders(FILE *out) {
  SCOPED(char *, header, memory_free_text);
  TRY(export_read_header(0, &header));
  TRY(export_check_columns(header));
  fputs(header, out);
  for (int i = 0; i < arguments.folders.count; i++) TRY(export_folder(i, out));
  return STATUS_OK;
}

/* Writes the table to a temporary file. */
static Status export_write(const char *temporary) {
  FILE *file = fopen(temporary, "we");
  if (!file) return status_set(STATUS_FILE, "cannot write %s: %s", temporary, strerror(errno));
  Status status = export_folders(file);
  const bool lost = ferror(file) != 0;
  if ((fclose(file) != 0 || lost) && status == STATUS_OK)
    status = status_set(STATUS_FILE, "cannot write %s: %s", arguments.output, strerror(errno));
  return status;
}

/* Writes the table to the file that was asked for, which must be new. */
static Status export_to_file(void) {
  SCOPED(char *, temporary, memory_free_text);
  if (access(arguments.output, F_OK) == 0)
    return status_set(STATUS_FILE, "%s exists; remove it, or use another name", arguments.output);
  TRY(durable_begin(arguments.output, &temporary));
  const Status status = export_write(temporary);
  if (status != STATUS_OK) unlink(temporary);
  TRY(status);
  return durable_publish(temporary, arguments.output, false);
}

static Status export_run(void) { return arguments.output ? export_to_file() : export_folders(stdout); }

const AppVerb app_export = {
    .options = options,
    .take = export_take_folder,
    .check = export_check,
    .usage = "DIR [DIR ...]",
    .help = "Write the finished runs of a study as CSV: one row for each setting, policy, run and point that "
            "is kept, with the swept keys as columns; for a replay study, one for each estimate. Several "
            "studies with the same columns make one table, in which each row begins with its folder. Works "
            "while a job runs.",
    .on_first = export_run};

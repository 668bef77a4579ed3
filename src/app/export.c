/* thompson export: the results of a study as a table with one row for each run and point. */
#include "parallel/results/export.h"
#include "app/app.h"
#include "io/durable.h"

#include <errno.h>
#include <unistd.h>

static struct { const char *directory, *output; } arguments;

static const AppOption options[] = {{"output", 'o', "FILE.csv",
                                     "the table; it must not exist yet (default: standard output)",
                                     .output = &arguments.output},
                                    {0}};

static bool export_has_ending(const char *path, const char *ending) {
  const size_t length = strlen(path), tail = strlen(ending);
  return length > tail && strcmp(path + length - tail, ending) == 0;
}

static void export_check(struct argp_state *state) {
  const char *output = arguments.output;
  if (output && export_has_ending(output, ".parquet"))
    argp_error(state,
               "-o: %s: Parquet is written by Python with pandas and pyarrow, from the table as .csv: "
               "pandas.read_csv(\"FILE.csv\").to_parquet(\"FILE.parquet\")",
               output);
  if (output && !export_has_ending(output, ".csv"))
    argp_error(state, "-o: '%s' does not end in .csv", output);
}

/* Writes the table to a temporary file. */
static Status export_write(Finished *finished, const char *temporary) {
  FILE *file = fopen(temporary, "we");
  if (!file) return status_set(STATUS_FILE, "cannot write %s: %s", temporary, strerror(errno));
  Status status = export_csv(finished, file);
  const bool lost = ferror(file) != 0;
  if ((fclose(file) != 0 || lost) && status == STATUS_OK)
    status = status_set(STATUS_FILE, "cannot write %s: %s", arguments.output, strerror(errno));
  return status;
}

/* Writes the table to the file that was asked for, which must be new. */
static Status export_to_file(Finished *finished) {
  SCOPED(char *, temporary, memory_free_text);
  if (access(arguments.output, F_OK) == 0)
    return status_set(STATUS_FILE, "%s exists; remove it, or use another name", arguments.output);
  TRY(durable_begin(arguments.output, &temporary));
  const Status status = export_write(finished, temporary);
  if (status != STATUS_OK) unlink(temporary);
  TRY(status);
  return durable_publish(temporary, arguments.output, false);
}

static Status export_folder(void) {
  SCRATCH_ARENA(scratch);
  SCOPED(Study, study, study_destroy);
  SCOPED(Finished, finished, finished_close);
  TRY(app_study_of_folder(arguments.directory, &study));
  TRY(finished_open(&scratch, arguments.directory, &study, false, &finished));
  return arguments.output ? export_to_file(&finished) : export_csv(&finished, stdout);
}

const AppVerb app_export = {
    .options = options,
    .argument = &arguments.directory,
    .what = "results folder",
    .check = export_check,
    .usage = "DIR",
    .help =
        "Write the finished runs of a study as CSV: one row for each setting, policy, run and point that is "
        "kept, with the swept keys as columns; for a replay study, one for each estimate. Works while a "
        "job runs.",
    .on_first = export_folder};

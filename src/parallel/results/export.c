#include "parallel/results/export.h"

#include "parallel/results/reduce_internal.h"
#include "parallel/tasks/adaptive.h"

/* Prints a text as one field. */
static void export_text(FILE *out, const char *text) {
  if (!strpbrk(text, ",\"\n\r")) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

/* Prints a comma, and a number in as few digits as it is read back from exactly. */
static void export_number(FILE *out, double x) {
  enum { ALWAYS_EXACT = 17 };
  char text[40];
  fputc(',', out);
  if (isnan(x)) return;
  for (int digits = ALWAYS_EXACT - 2; digits <= ALWAYS_EXACT; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  fputs(text, out);
}

/* Prints what every row begins with: folder, setting, swept keys, policy. */
static void export_labels(const ExportTable *table, int setting, int policy) {
  const StudyFile *file = table->study->file;
  FILE *out = table->out;
  if (table->folder) {
    export_text(out, table->folder);
    fputc(',', out);
  }
  export_text(out, file->setting_labels[setting]);
  for (int a = 0; a < file->axis_count; a++) {
    const ConfigAxis *axis = &file->axes[a];
    if (axis->numeric) {
      export_number(out, axis->numbers[setting]);
    } else {
      fputc(',', out);
      export_text(out, axis->texts[setting]);
    }
  }
  fputc(',', out);
  export_text(out, file->policies[policy].label);
}

void export_header(const ExportTable *table) {
  const Study *study = table->study;
  FILE *out = table->out;
  fputs(table->folder ? "folder,setting" : "setting", out);
  for (int a = 0; a < study->file->axis_count; a++) {
    char name[AXIS_NAME];
    fprintf(out, ",%s", reduce_layout_axis_name(&study->file->axes[a], name));
  }
  fputs(",policy", out);
  if (study->ops->estimates) {
    fprintf(out, ",%s", study->ops->axis);
    for (int i = 0; i < ESTIMATES_COUNT; i++) fprintf(out, ",%s", reduce_estimates[i][0]);
    fputs(",doubt\n", out);
    return;
  }
  fprintf(out, ",run,replicate,status,%s", study->ops->axis);
  for (int c = 0; c < study->published; c++) fprintf(out, ",%s", study->curves[c]->name);
  for (int c = 0; c < COLUMN_KINDS; c++) fprintf(out, ",%s", column_kinds[c].name);
  fputc('\n', out);
}

/* Prints the rows of one run. */
static void export_run(const ExportTable *table, int setting, int policy, const Cell *cell, int64_t run) {
  const Study *study = table->study;
  FILE *out = table->out;
  const size_t runs = (size_t)cell->runs, places = (size_t)study->places;
  for (int i = 0; i < study->ops->points(study->file->settings[setting]); i++) {
    const size_t place = (size_t)study_place(study, setting, i);
    export_labels(table, setting, policy);
    fprintf(out, ",%lld,%u,%s", (long long)run, study_runs_replicate(&study->runs, run),
            cell->status[run] == RUN_OK ? "ok" : "failed");
    export_number(out, study_axis_value(study, setting, i));
    for (int c = 0; c < study->published; c++)
      export_number(out, cell->curves[((size_t)c * runs + (size_t)run) * places + place]);
    for (int c = 0; c < COLUMN_KINDS; c++) {
      const void *values = columns_values(&cell->columns, c);
      if (column_kinds[c].counts)
        fprintf(out, ",%lld", (long long)((const int64_t *)values)[run]);
      else
        export_number(out, ((const double *)values)[run]);
    }
    fputc('\n', out);
  }
}

/* Prints the rows of a cell of a study of estimates. */
static void export_estimates(const ExportTable *table, int setting, int policy, const Cell *cell) {
  const Study *study = table->study;
  FILE *out = table->out;
  for (int c = 0; c < study->curve_count; c++) {
    CellEstimate estimate;
    const char *doubt = ESTIMATES_DOUBTS;
    reduce_cell_estimate(cell, c, &estimate);
    export_labels(table, setting, policy);
    fprintf(out, ",%s", study->curves[c]->name);
    for (int i = 0; i < ESTIMATES_COUNT; i++) export_number(out, estimate.value[i]);
    for (int d = 0; d < (int)estimate.doubt; d++) doubt += strcspn(doubt, " ") + 1;
    fprintf(out, ",%.*s\n", (int)strcspn(doubt, " "), doubt);
  }
}

static void export_cell(const ExportTable *table, int setting, int policy, const Cell *cell) {
  if (table->study->ops->estimates) {
    export_estimates(table, setting, policy, cell);
    return;
  }
  for (int64_t run = 0; run < cell->runs; run++)
    if (cell->status[run] != RUN_NOT_RUN) export_run(table, setting, policy, cell, run);
}

Status export_rows(const ExportTable *table, Finished *finished) {
  SCRATCH_ARENA(scratch);
  const Study *study = table->study;
  ReduceCounts counts = {0};
  Cell cell;
  int *blocks;
  int64_t runs;
  ALLOCATE(&scratch, blocks, study->file->setting_count);
  TRY(adaptive_count_blocks(finished, blocks, &runs));
  TRY(reduce_cell_create(&scratch, study, runs, &cell));
  for (int s = 0; s < study->file->setting_count; s++)
    for (int p = 0; p < study->file->policy_count; p++) {
      TRY(reduce_cell_load(finished, s, p, blocks[s], &cell, &counts));
      export_cell(table, s, p, &cell);
    }
  return STATUS_OK;
}

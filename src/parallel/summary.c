#include "parallel/summary.h"

#include "core/memory.h"

#include <stdlib.h>

static Status allocate(const Study *study, Summary *out) {
  NEW(out->values, study->curve_count * SUMMARY_COUNT * study->places);
  NEW(out->quantiles, study->curve_count * STUDY_QUANTILES * study->places);
  NEW(out->n, study->curve_count * study->places);
  NEW(out->n_scratch, study->places);
  return STATUS_OK;
}

Status summary_create(const Study *study, Summary *out) {
  *out = (Summary){0};
  const Status status = allocate(study, out);
  if (status != STATUS_OK) summary_destroy(out);
  return status;
}

void summary_destroy(Summary *summary) {
  free(summary->values);
  free(summary->quantiles);
  free(summary->n);
  free(summary->n_scratch);
  *summary = (Summary){0};
}

double *summary_part(const Study *study, const Summary *summary, int curve, int part) {
  return summary->values + ((size_t)curve * SUMMARY_COUNT + (size_t)part) * (size_t)study->places;
}

double *summary_quantiles(const Study *study, const Summary *summary, int curve) {
  return summary->quantiles + (size_t)curve * STUDY_QUANTILES * (size_t)study->places;
}

/* Computes the mean of values (minus base, when given), its standard error, and that over replicates, from
 * `part` on. */
static Status compute(const Study *study, const Cell *cell, int curve, const double *base, int part, int *n,
                      Summary *out) {
  const double *values = cell->curves + (size_t)curve * (size_t)cell->runs * (size_t)study->places;
  cell_mean(cell->runs, study->places, values, base, summary_part(study, out, curve, part),
            summary_part(study, out, curve, part + 1), n);
  return cell_replicate_se(study, cell->runs, values, base, summary_part(study, out, curve, part + 2));
}

Status summary_compute(const Study *study, const Cell *cell, const Cell *first, Summary *out) {
  const size_t points = (size_t)study->places, size = (size_t)cell->runs * points;
  for (int c = 0; c < study->curve_count; c++) {
    TRY(compute(study, study->curves[c]->of_world ? first : cell, c, NULL, SUMMARY_MEAN,
                out->n + (size_t)c * points, out));
    if (study->curves[c]->tails)
      TRY(cell_quantiles(cell->runs, study->places, cell->curves + (size_t)c * size,
                         summary_quantiles(study, out, c)));
    if (study->curves[c]->shared) continue;
    TRY(compute(study, cell, c, first->curves + (size_t)c * size, SUMMARY_DIFF_MEAN, out->n_scratch, out));
  }
  return STATUS_OK;
}

void summary_send(const Study *study, const Summary *summary, int to) {
  const size_t size = (size_t)study->curve_count * (size_t)study->places;
  parallel_send(to, summary->values, size * SUMMARY_COUNT * sizeof *summary->values);
  parallel_send(to, summary->quantiles, size * STUDY_QUANTILES * sizeof *summary->quantiles);
  parallel_send(to, summary->n, size * sizeof *summary->n);
}

void summary_receive(const Study *study, Summary *summary, int from) {
  const size_t size = (size_t)study->curve_count * (size_t)study->places;
  parallel_receive(from, summary->values, size * SUMMARY_COUNT * sizeof *summary->values);
  parallel_receive(from, summary->quantiles, size * STUDY_QUANTILES * sizeof *summary->quantiles);
  parallel_receive(from, summary->n, size * sizeof *summary->n);
}

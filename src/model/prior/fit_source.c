#include "model/prior/fit_source.h"

size_t fit_source_part_size(const FitSource *source, const PriorOps *family, const PriorFit *fit) {
  return source->logs ? family->logs_part_size(fit, source->logs->d)
                      : family->part_size(fit, source->samples->d);
}

Status fit_source_part(const FitSource *source, const PriorOps *family, const PriorFit *fit, int part,
                       double *out) {
  return source->logs ? family->fit_logs_part(fit, source->logs, part, out)
                      : family->fit_part(fit, source->samples, part, out);
}

Status fit_source_assemble(Arena *memory, const FitSource *source, const PriorOps *family,
                           const PriorFit *fit, const double *parts, Prior *out) {
  *out = (Prior){.memory = memory, .ops = family, .d = source->logs ? source->logs->d : source->samples->d};
  return source->logs ? family->assemble_logs(out, fit, source->logs, parts)
                      : family->assemble(out, fit, source->samples, parts);
}

Status fit_source_whole(Arena *memory, const FitSource *source, const PriorOps *family, const PriorFit *fit,
                        Prior *out) {
  SCRATCH_ARENA(scratch);
  const size_t size = fit_source_part_size(source, family, fit), count = (size_t)family->parts(fit);
  double *parts;
  ALLOCATE(&scratch, parts, count * size);
  for (size_t part = 0; part < count; part++)
    TRY(fit_source_part(source, family, fit, (int)part, parts + part * size));
  return fit_source_assemble(memory, source, family, fit, parts, out);
}

#include "model/prior/contamination.h"

#include "model/prior/training_samples.h"

Status contaminate(const PriorFit *fit, Samples *samples) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)samples->d, n = (size_t)samples->n;
  double *shift, *scale, *normal;
  if (!(fit->contamination > 0)) return STATUS_OK;
  ALLOCATE_ARRAYS(&scratch, d, shift, scale, normal);
  training_standardise(true, samples, shift, scale);
  for (size_t j = 0; j < n; j++) {
    Rng rng = {.key = rng_key(fit->seed, RNG_CONTAMINATION), .run = fit->replicate, .draw = (uint32_t)j};
    double uniform;
    rng_uniform(&rng, 1, &uniform);
    if (uniform >= fit->contamination) continue;
    rng_normal(&rng, samples->d, normal);
    for (size_t i = 0; i < d; i++)
      samples->theta[i * n + j] = shift[i] + fit->guard_width * scale[i] * normal[i];
  }
  return STATUS_OK;
}

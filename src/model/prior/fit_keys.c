#include "model/prior/prior.h"

#include "io/config/config_rows.h"

const ConfigKey fit_keys[] = {
#define FIT_KEY(name) name
#include "model/prior/fit_keys.def"
#undef FIT_KEY
    {.name = NULL}};

/* Returns the value of a key, or 0 for `auto`, which leaves the choice to the family or to the samples. */
static int prior_fit_int_or_auto(const Config *config, const char *key) {
  return config_is(config, key, "auto") ? 0 : (int)config_int(config, key);
}

/* Reads the settings, of a study, whose keys begin with `prior.`, or from options. The names are whole texts,
 * by which keys are found without comparing letters. */
static PriorFit fit_read(const Config *config, bool of_study, uint64_t seed, uint32_t replicate) {
#define KEY(name) (of_study ? "prior." name : name)
  PriorFit fit = {.components = prior_fit_int_or_auto(config, KEY("components")),
                  .starts = (int)config_int(config, KEY("mixture_starts")),
                  .schedule = {.stages = (int)config_int(config, KEY("stages")),
                               .log_snr = config_is(config, KEY("schedule"), "log_snr"),
                               .alpha = config_real(config, KEY("alpha")),
                               .keep_signal = config_bool(config, KEY("keep_signal")),
                               .first_snr = config_real(config, KEY("first_snr")),
                               .last_snr = config_real(config, KEY("last_snr"))},
                  .standardise = config_bool(config, KEY("standardise")),
                  .last_stage = schedule_last_stage(config_text(config, KEY("last_stage"))),
                  .steps = prior_fit_int_or_auto(config, KEY("training_steps")),
                  .batch = prior_fit_int_or_auto(config, KEY("training_batch")),
                  .patience = (int)config_int(config, KEY("patience")),
                  .contamination = config_real(config, KEY("contamination")),
                  .guard_width = config_real(config, KEY("guard_width")),
                  .seed = seed,
                  .replicate = replicate};
  const int64_t *hidden;
  int most = sizeof fit.hidden / sizeof *fit.hidden;
  fit.hidden_count = config_ints(config, KEY("hidden"), &hidden);
  if (!config_is(config, KEY("learning_rate"), "auto"))
    fit.learning_rate = config_real(config, KEY("learning_rate"));
#undef KEY
  if (fit.hidden_count > most) fit.hidden_count = most;
  for (int i = 0; i < fit.hidden_count; i++) fit.hidden[i] = (int)hidden[i];
  return fit;
}

PriorFit fit_of_keys(const Config *setting, uint64_t seed, uint32_t replicate) {
  return fit_read(setting, true, seed, replicate);
}

Status fit_of_options(const char *what, int count, const char *const *texts, uint64_t seed, PriorFit *out) {
  SCRATCH_ARENA(scratch);
  Config *config;
  TRY(config_options(&scratch, what, fit_keys, count, texts, &config));
  *out = fit_read(config, false, seed, 0);
  return STATUS_OK;
}

#include "study/study_runs.h"

#include <math.h>

/* The largest and the smallest factor by which a wave raises the number of runs. */
static const double MOST_GROWTH = 4, LEAST_GROWTH = 1.1;

static int64_t runs_least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t runs_ceil_ratio(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Lists the blocks: a fixed number of runs has a part for each replicate, an adaptive one a single part,
 * whose blocks take the replicates in turn. */
int64_t study_runs_list(const Runs *runs, RunsBlock *out) {
  const int parts = runs->adaptive ? 1 : runs->replicates;
  int64_t count = 0;
  for (int part = 0; part < parts; part++) {
    int64_t first = (int64_t)((__int128)runs->most * part / parts);
    const int64_t end = (int64_t)((__int128)runs->most * (part + 1) / parts);
    if (!out) count += runs_ceil_ratio(end - first, runs->block);
    for (; out && first < end; first += runs->block, count++)
      out[count] = (RunsBlock){.first_run = (uint32_t)first,
                               .replicate = (uint32_t)(runs->adaptive ? count % runs->replicates : part),
                               .runs = (int)runs_least_of(end - first, runs->block)};
  }
  return count;
}

uint32_t study_runs_replicate(const Runs *runs, int64_t run) {
  if (runs->adaptive) return (uint32_t)(run / runs->block % runs->replicates);
  return (uint32_t)(((run + 1) * runs->replicates - 1) / runs->most); /* the last that starts at or before */
}

int64_t study_runs_in_blocks(const Runs *runs, int blocks) {
  return blocks >= runs->blocks ? runs->most : blocks * runs->block;
}

Status study_runs_create(const Config *config, int cases, Runs *out) {
  *out = (Runs){.block = cases > 0 ? 1 : config_int(config, "block"),
                .replicates = (int)config_int(config, "prior.replicates"),
                .adaptive = !config_present(config, "runs")};
  if (out->adaptive) {
    out->most = config_int(config, "runs.max");
    out->least = config_int(config, "runs.min");
    out->target = config_real(config, "runs.target_se");
  } else if (config_is(config, "runs", "auto")) {
    if (cases == 0)
      return status_set(STATUS_INPUT, "key 'runs': auto is the number of cases, for problem.family: cases");
    out->most = out->least = cases;
  } else {
    out->most = out->least = config_int(config, "runs");
  }
  if (out->least > out->most)
    return status_set(STATUS_INPUT, "key 'runs.min': %lld is more than runs.max, %lld", (long long)out->least,
                      (long long)out->most);
  if (out->replicates > out->least)
    return status_set(STATUS_INPUT, "key 'prior.replicates': %d, but there are only %lld runs%s",
                      out->replicates, (long long)out->least, out->adaptive ? " in runs.min" : "");
  /* Blocks are smaller if the first runs would not reach all replicates otherwise. */
  if (out->adaptive) out->block = runs_least_of(out->block, runs_ceil_ratio(out->least, out->replicates));
  const int64_t count = study_runs_list(out, NULL);
  if (count > 1000000000)
    return status_set(STATUS_INPUT, "%lld blocks of runs: too many; raise block", (long long)count);
  out->blocks = (int)count;
  if (out->adaptive && out->replicates > out->blocks)
    return status_set(STATUS_INPUT,
                      "key 'prior.replicates': %d, but runs.max allows only %d blocks of %lld runs",
                      out->replicates, out->blocks, (long long)out->block);
  return STATUS_OK;
}

int study_runs_first_wave(const Runs *runs) {
  if (!runs->adaptive) return runs->blocks;
  int64_t blocks = runs_ceil_ratio(runs->least, runs->block);
  return (int)(blocks > runs->replicates ? blocks : runs->replicates);
}

int study_runs_next_wave(const Runs *runs, int blocks, double se) {
  if (!runs->adaptive || isnan(se) || se <= runs->target || blocks >= runs->blocks) return blocks;
  double growth = se / runs->target * (se / runs->target);
  if (!(growth < MOST_GROWTH)) growth = MOST_GROWTH;
  if (growth < LEAST_GROWTH) growth = LEAST_GROWTH;
  double wanted = growth * blocks;
  if (wanted >= runs->blocks) return runs->blocks;
  return (int)wanted + (wanted > (int)wanted);
}

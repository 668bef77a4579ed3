/* thompson bench: how fast every sampler is on this machine, compared with its measured peaks. */
#include "app/app.h"
#include "app/bench_throughput.h"
#include "core/simd.h"
#include "io/provenance.h"
#include "parallel/parallel_prepare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The study that is measured, unless --set changes it. The priors are trained for only a few steps: enough
 * for the states of a chain to move as they do in a real study. */
static const char STUDY[] =
    "{name: bench, runs: 64, block: 64, likelihood: gaussian, policies: [%s],\n"
    " problem: {theta: gaussian, dimension: 2, arms: 100, rounds: 200},\n"
    " prior: {stages: 100, train_samples: 2000, training_steps: %d, mixture_starts: 1}%s}\n";
static const char SIZES[] = ", sweep: {problem.dimension: [2, 10]}";

enum { POLICIES_SIZE = 4096 };

typedef struct {
  char policies[POLICIES_SIZE]; /* "ts, diffts" */
  AppTexts sets;
  double seconds; /* 0: the default */
  bool quick, json;
} Arguments;

enum { KEY_SAMPLERS = 256, KEY_SET, KEY_SECONDS, KEY_QUICK };

static const struct argp_option options[] = {
    {"samplers", KEY_SAMPLERS, "NAME,...", 0, "measure these (default: all); see `thompson list samplers`",
     0},
    {"set", KEY_SET, "KEY=VALUE", 0,
     "change a key of the study that is measured; a list measures each value: --set "
     "problem.dimension=[2,5,20] --set prior.hidden=[100,100]",
     0},
    {"seconds", KEY_SECONDS, "S", 0, "CPU seconds for each sampler and size, draws and rounds (default: 1)",
     0},
    {"quick", KEY_QUICK, NULL, 0, "only two dimensions, 0.1 s each", 0},
    {"json", 'j', NULL, 0, "as JSON", 0},
    {0}};

static void bench_add_sampler(Arguments *arguments, const char *name) {
  const size_t used = strlen(arguments->policies);
  snprintf(arguments->policies + used, POLICIES_SIZE - used, "%s%s", used ? ", " : "", name);
}

/* Adds the samplers of a list such as "ts,diffts". */
static void bench_take_samplers(struct argp_state *state, Arguments *arguments, const char *text) {
  char *copy = strdup(text), *rest = copy;
  for (const char *name; copy && (name = strsep(&rest, ","));) {
    if (!sampler_find(name)) app_unknown_name(state, "--samplers", name, "a sampler", sampler_name);
    bench_add_sampler(arguments, name);
  }
  free(copy);
}

static error_t bench_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_SAMPLERS: bench_take_samplers(state, arguments, text); return 0;
  case KEY_SET: app_texts_add(state, &arguments->sets, text); return 0;
  case KEY_SECONDS: arguments->seconds = app_real(state, "--seconds", text, 1e-3, 1e6); return 0;
  case KEY_QUICK: arguments->quick = true; return 0;
  case 'j': arguments->json = true; return 0;
  case ARGP_KEY_END:
    if (arguments->seconds == 0) arguments->seconds = arguments->quick ? 0.1 : 1;
    if (!arguments->policies[0])
      for (int i = 0; sampler_name(i); i++) bench_add_sampler(arguments, sampler_name(i));
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Reads the name of the first processor from /proc/cpuinfo, or "unknown" if it gives none. */
static void read_processor_name(size_t size, char *out) {
  char line[512];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(out, size, "unknown");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
      snprintf(out, size, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"), strchr(line, ':') + 2);
      break;
    }
  if (file) fclose(file);
}

static json_t *bench_machine_json(const Meter *meter, int ranks) {
  char name[256];
  read_processor_name(sizeof name, name);
  return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f}", "program", provenance_source(), "processor", name,
                   "instruction_level", (int)simd_level(), "ranks", ranks, "peak_float_flops",
                   meter->best.floats, "peak_double_flops", meter->best.doubles, "memory_bytes_per_second",
                   meter->best.bytes);
}

static json_t *bench_throughput_json(const Study *study, int setting, int policy,
                                     const Throughput *throughput) {
  json_t *hidden = json_array();
  for (int l = 0; l < throughput->hidden_count; l++)
    json_array_append_new(hidden, json_integer(throughput->hidden[l]));
  return json_pack(
      "{s:s, s:s, s:s, s:i, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}",
      "sampler", study->file->policies[policy].name, "label", study->file->policies[policy].label, "setting",
      study->file->setting_labels[setting], "dimension", throughput->d, "stages",
      throughput->stages ? json_integer(throughput->stages) : json_null(), "hidden", hidden, "arms",
      throughput->arms, "rounds", throughput->rounds, "runs", throughput->runs, "rounds_reached",
      throughput->rounds_reached, "observations", throughput->observations, "seconds_per_draw",
      app_json_number(throughput->draw_seconds), "flops_per_draw", app_json_number(throughput->draw_flops),
      "draw_fraction_of_peak", app_json_number(throughput->draw_of_peak), "rounds_per_second",
      1 / throughput->round_seconds, "flops_per_round", throughput->round_flops, "round_fraction_of_peak",
      throughput->round_of_peak, "bytes_per_round", throughput->round_bytes, "round_fraction_of_bandwidth",
      throughput->round_of_bandwidth);
}

static void print_machine(const Meter *meter, int ranks) {
  char name[256];
  read_processor_name(sizeof name, name);
  if (ranks > 1)
    printf("%d ranks at once: times and shares are means over ranks, peaks are rank 0's; ", ranks);
  printf("%s, x86-64-v%d; one core at its peak: %.1f Gflop/s float, %.1f double, %.1f GB/s of memory\n", name,
         (int)simd_level(), meter->best.floats * 1e-9, meter->best.doubles * 1e-9, meter->best.bytes * 1e-9);
  printf("%-14s %4s %9s %4s %6s %6s %5s %12s %8s %12s %8s %8s\n", "sampler", "d", "hidden", "T", "K", "n",
         "B", "s/draw", "of peak", "rounds/s", "of peak", "of mem.");
}

/* Writes a fraction as "12.3%", or a dash if it is NaN. */
static const char *write_percentage(double fraction, char out[16]) {
  if (isnan(fraction))
    snprintf(out, 16, "-");
  else
    snprintf(out, 16, "%.*f%%", fraction < 0.0995 ? 1 : 0, 100 * fraction);
  return out;
}

static void print_throughput(const ConfigPolicy *policy, const Throughput *throughput) {
  char hidden[32] = "-", stages[16] = "-", draw[16], peak[16], memory[16], seconds[16] = "-", rounds[16];
  for (int l = 0, at = 0; l < throughput->hidden_count && at < (int)sizeof hidden; l++)
    at += snprintf(hidden + at, sizeof hidden - (size_t)at, "%s%d", l ? "x" : "", throughput->hidden[l]);
  if (throughput->stages) snprintf(stages, sizeof stages, "%d", throughput->stages);
  if (!isnan(throughput->draw_seconds)) snprintf(seconds, sizeof seconds, "%.3g", throughput->draw_seconds);
  snprintf(rounds, sizeof rounds, "%s%d", throughput->rounds_reached < throughput->rounds ? "<" : "",
           throughput->rounds_reached);
  printf("%-14s %4d %9s %4s %6d %6s %5d %12s %8s %12.4g %8s %8s\n", policy->label, throughput->d, hidden,
         stages, throughput->arms, rounds, throughput->runs, seconds,
         write_percentage(throughput->draw_of_peak, draw), 1 / throughput->round_seconds,
         write_percentage(throughput->round_of_peak, peak),
         write_percentage(throughput->round_of_bandwidth, memory));
}

static void print_notes(void) {
  printf(
      "\nd dimension, T stages, K arms, n rounds (<n: as many as the time allowed), B runs in a block; CPU "
      "time of one core, peaks measured in between.\n"
      "s/draw     one draw for one run after n observations, including processing the last of them\n"
      "of peak    products of the sampler's networks, the only work of a draw that is counted; -: it has no "
      "networks\n"
      "rounds/s   whole rounds of one run in a simulation: arms, draw, scores of all arms, reward, history\n"
      "of peak    products of networks and of the arms with the draw, at their peaks, over the time of the "
      "round; nothing else is counted\n"
      "of mem.    features of all arms, evidence and weights of networks, each once per round, over the "
      "bytes that memory delivers in that time; above 100%%: they stay in a cache\n");
}

/* Averages over the ranks, which all measure the same thing at the same time. Collective. */
static void bench_average_over_ranks(const Parallel *parallel, Throughput *throughput) {
  double *const values[] = {&throughput->draw_seconds, &throughput->draw_of_peak, &throughput->round_seconds,
                            &throughput->round_of_peak, &throughput->round_of_bandwidth};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    *values[i] = parallel_sum(*values[i]) / parallel->size;
}

static Status bench_measure_rows(const Parallel *parallel, const Arguments *arguments, const Study *study,
                                 const char *folder, Meter *meter, json_t *rows) {
  const StudyFile *file = study->file;
  const long total = (long)file->setting_count * file->policy_count;
  long done = 0;
  /* On a terminal the rows themselves show the progress. */
  const bool rows_shown = !arguments->json && isatty(STDOUT_FILENO);
  Progress progress = progress_begin(rows_shown ? PROGRESS_NONE : PROGRESS_AUTO, app_speaks, "measuring");
  if (app_speaks && !arguments->json) print_machine(meter, parallel->size);
  for (int s = 0; s < file->setting_count; s++)
    for (int p = 0; p < file->policy_count; p++) {
      Throughput throughput;
      Status status =
          bench_throughput_measure(study, s, p, folder, arguments->seconds / 2, meter, &throughput);
      TRY(parallel_agree(parallel, status));
      bench_average_over_ranks(parallel, &throughput);
      if (arguments->json)
        json_array_append_new(rows, bench_throughput_json(study, s, p, &throughput));
      else if (app_speaks)
        print_throughput(&file->policies[p], &throughput);
      done++;
      progress_update(&progress, done, total, (double)done / (double)total);
    }
  progress_end(&progress, done, total);
  return STATUS_OK;
}

static Status bench_measure_and_print(const Parallel *parallel, const Arguments *arguments,
                                      const Study *study, const char *folder) {
  Meter meter;
  json_t *rows = json_array();
  Status status = parallel_agree(parallel, bench_meter_create(parallel->size, &meter));
  if (status == STATUS_OK) status = bench_measure_rows(parallel, arguments, study, folder, &meter, rows);
  if (status == STATUS_OK && app_speaks && arguments->json)
    app_print_json(
        json_pack("{s:o, s:O}", "machine", bench_machine_json(&meter, parallel->size), "rows", rows), 0);
  else if (status == STATUS_OK && app_speaks)
    print_notes();
  bench_meter_destroy(&meter);
  json_decref(rows);
  return status;
}

/* Prepares the priors and measures the samplers. The ranks share the folder of the priors, so all of them
 * must run on one machine, or must see the same TMPDIR. */
static Status bench_study(const Parallel *parallel, const Arguments *arguments) {
  SCOPED(Study, study, study_destroy);
  SCOPED(Scratch, scratch, app_scratch_destroy);
  char text[sizeof STUDY + sizeof SIZES + POLICIES_SIZE + 16];
  snprintf(text, sizeof text, STUDY, arguments->policies, arguments->quick ? 10 : 100,
           arguments->quick ? "" : SIZES);
  TRY(app_study_of_file("thompson bench", text, &arguments->sets, &study));
  if (strcmp(study.ops->name, "bandit") != 0)
    return status_set(STATUS_INPUT, "key 'study': value '%s': only study bandit is measured",
                      study.ops->name);
  TRY(app_scratch_create(parallel, &scratch));
  TRY(parallel_prepare_study(parallel, &study, scratch.path, PROGRESS_AUTO, 1, NULL));
  return bench_measure_and_print(parallel, arguments, &study, scratch.path);
}

Status app_bench(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = bench_parse,
      .doc = "Measure the speed of every sampler on one core, in a bandit study, together with the core's "
             "peaks, measured at the same time. Under mpiexec or srun all ranks measure at once, which shows "
             "what a core does on a full machine; times and shares are means over ranks, and the peaks "
             "printed are those of rank 0."};
  Arguments arguments = {.seconds = 0};
  app_parse(&argp, argc, argv, &arguments);
  Parallel parallel = app_begin_parallel();
  return app_end_parallel(bench_study(&parallel, &arguments));
}

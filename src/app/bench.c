/* thompson bench: how fast every sampler is on this machine, compared with its measured peaks. */
#include "app/app.h"
#include "app/bench_throughput.h"
#include "core/simd.h"
#include "io/provenance.h"
#include "parallel/priors/study_priors.h"

#include <unistd.h>

/* The study that is measured, unless --set changes it. The priors are trained for only a few steps: enough
 * for the states of a chain to move as they do in a real study. */
static const char STUDY[] =
    "{name: bench, runs: 64, block: 64, likelihood: gaussian, policies: [%s],\n"
    " problem: {theta: gaussian, dimension: 2, arms: 100, rounds: 200},\n"
    " prior: {stages: 100, train_samples: 2000, training_steps: %d, mixture_starts: 1}%s}\n";
static const char SIZES[] = ", sweep: {problem.dimension: [2, 10]}",
                  SHARE_SIZES[] = ", sweep: {problem.dimension: [2, 10, 20]}";

enum { POLICIES_SIZE = 4096 };

static struct {
  char policies[POLICIES_SIZE]; /* "ts, diffts" */
  AppTexts sets;
  double seconds; /* 0: the default */
  bool quick, share, json;
} arguments;

static void bench_add_sampler(const char *name) {
  const size_t used = strlen(arguments.policies);
  snprintf(arguments.policies + used, POLICIES_SIZE - used, "%s%s", used ? ", " : "", name);
}

/* Adds the samplers of a list such as "ts,diffts". */
static void bench_take_samplers(struct argp_state *state, const char *text) {
  char *copy = strdup(text), *rest = copy;
  for (const char *name; (name = strsep(&rest, ","));) {
    if (!sampler_find(name)) app_unknown_name(state, "--samplers", name, "a sampler", sampler_name);
    bench_add_sampler(name);
  }
  free(copy);
}

static const AppOption options[] = {
    {"samplers", 0, "NAME,...", "measure these (default: all); see `thompson list samplers`",
     .take = bench_take_samplers},
    {"set", 0, "KEY=VALUE",
     "change a key of the study that is measured; a list measures each value: --set "
     "problem.dimension=[2,5,20] --set prior.hidden=[100,100]",
     .texts = &arguments.sets},
    {"seconds", 0, "S", "CPU seconds for each sampler and size, draws and rounds (default: 1)",
     .real = &arguments.seconds, .low = 1e-3, .high = 1e6},
    {"quick", 0, NULL, "only two dimensions, 0.1 s each", .flag = &arguments.quick},
    {"share", 0, NULL,
     "only draws, in 2, 10 and 20 dimensions: how many operations a sampler needs for one, and its share of "
     "the peak",
     .flag = &arguments.share},
    {"json", 'j', NULL, "as JSON", .flag = &arguments.json},
    {0}};

static json_t *bench_throughput_json(const Study *study, int setting, int policy, const Throughput *found) {
  json_t *hidden = json_array();
  for (int l = 0; l < found->hidden_count; l++) json_array_append_new(hidden, json_integer(found->hidden[l]));
  json_t *row = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "sampler",
                          study->file->policies[policy].name, "label", study->file->policies[policy].label,
                          "setting", study->file->setting_labels[setting], "dimension", found->d, "stages",
                          found->stages ? json_integer(found->stages) : json_null(), "hidden", hidden, "arms",
                          found->arms, "rounds", found->rounds, "runs", found->runs, "observations",
                          found->observations, "seconds_per_draw", app_json_number(found->draw_seconds),
                          "float_flops_per_draw", app_json_number(found->draw_floats),
                          "double_flops_per_draw", app_json_number(found->draw_doubles),
                          "draw_fraction_of_peak", app_json_number(found->draw_of_peak));
  if (!arguments.share) {
    json_t *rounds =
        json_pack("{s:i, s:f, s:f, s:f, s:f, s:f}", "rounds_reached", found->rounds_reached,
                  "rounds_per_second", 1 / found->round_seconds, "flops_per_round", found->round_flops,
                  "round_fraction_of_peak", found->round_of_peak, "bytes_per_round", found->round_bytes,
                  "round_fraction_of_bandwidth", found->round_of_bandwidth);
    json_object_update(row, rounds);
    json_decref(rounds);
  }
  return row;
}

/* Writes a fraction as "12.3%", or a dash if it is NaN. */
static const char *write_percentage(double fraction, char out[16]) {
  if (isnan(fraction))
    snprintf(out, 16, "-");
  else
    snprintf(out, 16, "%.*f%%", fraction < 0.0995 ? 1 : 0, 100 * fraction);
  return out;
}

/* Writes a number with three digits, or a dash if it is NaN. */
static const char *write_number(double number, char out[16]) {
  if (isnan(number))
    snprintf(out, 16, "-");
  else
    snprintf(out, 16, "%.3g", number);
  return out;
}

/* Prints the columns that both tables have: the sampler and its networks. */
static void print_sampler(const ConfigPolicy *policy, const Throughput *found) {
  char hidden[32] = "-", stages[16] = "-";
  for (int l = 0, at = 0; l < found->hidden_count && at < (int)sizeof hidden; l++)
    at += snprintf(hidden + at, sizeof hidden - (size_t)at, "%s%d", l ? "x" : "", found->hidden[l]);
  if (found->stages) snprintf(stages, sizeof stages, "%d", found->stages);
  printf("%-14s %4d %9s %4s ", policy->label, found->d, hidden, stages);
}

static void print_throughput(const ConfigPolicy *policy, const Throughput *found) {
  char draw[16], peak[16], memory[16], seconds[16], rounds[16];
  snprintf(rounds, sizeof rounds, "%s%d", found->rounds_reached < found->rounds ? "<" : "",
           found->rounds_reached);
  print_sampler(policy, found);
  printf("%6d %6s %5d %12s %8s %12.4g %8s %8s\n", found->arms, rounds, found->runs,
         write_number(found->draw_seconds, seconds), write_percentage(found->draw_of_peak, draw),
         1 / found->round_seconds, write_percentage(found->round_of_peak, peak),
         write_percentage(found->round_of_bandwidth, memory));
}

static void print_share(const ConfigPolicy *policy, const Throughput *found) {
  char floats[16], doubles[16], seconds[16], peak[16];
  print_sampler(policy, found);
  printf("%12s %12s %12s %8s\n", write_number(found->draw_floats / 1000, floats),
         write_number(found->draw_doubles / 1000, doubles), write_number(found->draw_seconds, seconds),
         write_percentage(found->draw_of_peak, peak));
}

static const char NOTES[] =
    "\nd dimension, T stages, K arms, n rounds (<n: as many as the time allowed), B runs in a block; CPU "
    "time of one core, peaks measured in between.\n"
    "s/draw     one draw for one run after n observations, including processing the last of them\n"
    "of peak    products of networks and of small matrices (--share), at their peaks, over the time of the "
    "draw; -: neither is known\n"
    "rounds/s   whole rounds of one run in a simulation: arms, draw, scores of all arms, reward, history\n"
    "of peak    products of networks and of the arms with the draw, at their peaks, over the time of the "
    "round; nothing else is counted\n"
    "of mem.    features of all arms, evidence and weights of networks, each once per round, over the "
    "bytes that memory delivers in that time; above 100%: they stay in a cache\n";

static const char SHARE_NOTES[] =
    "\nd dimension, T stages; CPU time of one core, peaks measured in between.\n"
    "float      thousands of operations of a draw in products of the sampler's networks, counted as they are "
    "asked for; -: it has none\n"
    "double     the same of small matrices, by the formula of the sampler: products, factors, triangles; -: "
    "not known\n"
    "s/draw     one draw for one run, including processing one observation\n"
    "of peak    both at their peaks, over that time; random numbers and what is done entry by entry are not "
    "counted\n";

/* Measures each sampler on all ranks at once, and prints the means or adds them to `rows`. Collective. */
static Status bench_measure_rows(const Study *study, const char *folder, Meter *meter, json_t *rows) {
  const StudyFile *file = study->file;
  const long total = (long)file->setting_count * file->policy_count;
  long done = 0;
  /* On a terminal the rows themselves show the progress. */
  const bool rows_shown = !arguments.json && isatty(STDOUT_FILENO);
  Progress progress = progress_begin(rows_shown ? PROGRESS_NONE : PROGRESS_AUTO, "measuring");
  for (int s = 0; s < file->setting_count; s++)
    for (int p = 0; p < file->policy_count; p++) {
      Throughput found;
      const ThroughputCase which = {
          .setting = s, .policy = p, .seconds = arguments.seconds / 2, .draws_only = arguments.share};
      TRY(parallel_agree(bench_throughput_measure(study, which, folder, meter, &found)));
      double *const values[] = {&found.draw_seconds, &found.draw_of_peak, &found.round_seconds,
                                &found.round_of_peak, &found.round_of_bandwidth};
      for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        *values[i] = parallel_sum(*values[i]) / parallel_size();
      if (arguments.json)
        json_array_append_new(rows, bench_throughput_json(study, s, p, &found));
      else if (parallel_rank() == 0)
        (arguments.share ? print_share : print_throughput)(&file->policies[p], &found);
      done++;
      progress_update(&progress, done, total, (double)done / (double)total);
    }
  progress_end(&progress, done, total);
  return STATUS_OK;
}

/* Prepares the priors and measures the samplers. The ranks share the folder of the priors, so all of them
 * must run on one machine, or must see the same TMPDIR. */
static Status bench_study(void) {
  SCOPED(Study, study, study_destroy);
  SCOPED(Scratch, scratch, app_scratch_destroy);
  SCRATCH_ARENA(memory);
  Meter meter;
  json_auto_t *rows = json_array();
  const char *sizes = arguments.share ? SHARE_SIZES : SIZES;
  char text[sizeof STUDY + sizeof SHARE_SIZES + POLICIES_SIZE + 16], line[512], processor[256] = "unknown";
  if (arguments.seconds == 0) arguments.seconds = arguments.quick ? 0.1 : 1;
  if (!arguments.policies[0])
    for (int i = 0; sampler_name(i); i++) bench_add_sampler(sampler_name(i));
  snprintf(text, sizeof text, STUDY, arguments.policies, arguments.quick ? 10 : 100,
           arguments.quick ? "" : sizes);
  TRY(app_study_of_file("thompson bench", text, &arguments.sets, &study));
  if (strcmp(study.ops->name, "bandit") != 0)
    return status_set(STATUS_INPUT, "key 'study': value '%s': only study bandit is measured",
                      study.ops->name);
  TRY(app_scratch_create(&scratch));
  TRY(study_priors_fit(&study, scratch.path, PROGRESS_AUTO, NULL));
  TRY(parallel_agree(bench_meter_create(&memory, parallel_size(), &meter)));
  const MeterRates *best = &meter.best;
  const bool table = parallel_rank() == 0 && !arguments.json;
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "model name : %255[^\n]", processor) == 1) break;
  if (file) fclose(file);
  if (table && parallel_size() > 1)
    printf("%d ranks at once: times and shares are means over ranks, peaks are rank 0's; ", parallel_size());
  if (table)
    printf("%s, x86-64-v%d; one core at its peak: %.1f Gflop/s float, %.1f double, %.1f GB/s of memory\n"
           "%-14s %4s %9s %4s ",
           processor, (int)simd_level(), best->floats * 1e-9, best->doubles * 1e-9, best->bytes * 1e-9,
           "sampler", "d", "hidden", "T");
  if (table && arguments.share) printf("%12s %12s %12s %8s\n", "float", "double", "s/draw", "of peak");
  if (table && !arguments.share)
    printf("%6s %6s %5s %12s %8s %12s %8s %8s\n", "K", "n", "B", "s/draw", "of peak", "rounds/s", "of peak",
           "of mem.");
  TRY(bench_measure_rows(&study, scratch.path, &meter, rows));
  if (table) printf("%s", arguments.share ? SHARE_NOTES : NOTES);
  if (parallel_rank() > 0 || table) return STATUS_OK;
  return app_print_json(json_pack("{s:{s:s, s:s, s:i, s:i, s:f, s:f, s:f}, s:O}", "machine", "program",
                                  provenance_source(), "processor", processor, "instruction_level",
                                  (int)simd_level(), "ranks", parallel_size(), "peak_float_flops",
                                  best->floats, "peak_double_flops", best->doubles, "memory_bytes_per_second",
                                  best->bytes, "rows", rows),
                        0);
}

const AppVerb app_bench = {
    .options = options,
    .help = "Measure the speed of every sampler on one core, in a bandit study, together with the core's "
            "peaks, measured at the same time. Under mpiexec or srun all ranks measure at once, which shows "
            "what a core does on a full machine; times and shares are means over ranks, and the peaks "
            "printed are those of rank 0.",
    .collective = bench_study};

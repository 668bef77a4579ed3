#include "config_toy.h"

#include "io/config/config_rows.h"

#include <float.h>
#include <string.h>

const char *toy_theta(int index) {
  static const char *const names[] = {"cross", "rays", "triangles"};
  return index < 3 ? names[index] : NULL;
}

static const char *toy_theta_meaning(int index) {
  static const char *const meanings[] = {"two lines", "five lines", "three corners"};
  return meanings[index];
}

const char *toy_policy(int index) {
  static const char *const names[] = {"ts", "diffts", "vits2"};
  return index < 3 ? names[index] : NULL;
}

const ConfigKey toy_keys[] = {
    {.name = "name", .type = KEY_TEXT, .help = "Name of the study.", .fixed = true},
    {.name = "seed", .type = KEY_INT, .maximum = 9e18, .fallback = "1", .help = "Seed."},
    {.name = "runs",
     .type = KEY_INT,
     .minimum = 1,
     .maximum = 1e6,
     .fallback = "8",
     .help = "Runs.",
     .fixed = true},
    DESIGN_ROWS,
    {.name = "problem.theta",
     .type = KEY_WORD,
     .fallback = "cross",
     .words = "file H",
     .word = toy_theta,
     .meaning = toy_theta_meaning,
     .help = "Prior."},
    {.name = "problem.arms",
     .type = KEY_INT,
     .minimum = 2,
     .maximum = 1000,
     .fallback = "100",
     .help = "Arms."},
    {.name = "problem.noise",
     .type = KEY_REAL,
     .maximum = 1e3,
     .fallback = "1",
     .unit = "reward",
     .help = "Noise."},
    {.name = "problem.resample", .type = KEY_BOOL, .fallback = "false", .help = "New arms each round."},
    {.name = "problem.file", .type = KEY_TEXT, .fallback = "null", .help = "Data."},
    {.name = "problem.sizes",
     .type = KEY_INTS,
     .minimum = 1,
     .maximum = 9,
     .fallback = "[1, 5]",
     .help = "Sizes."},
    {.name = "prior.samples",
     .type = KEY_INT,
     .minimum = 1,
     .maximum = 1e9,
     .fallback = "1000",
     .words = "all",
     .help = "Samples."},
    {.name = "prior.hidden",
     .type = KEY_INTS,
     .minimum = 1,
     .maximum = 4096,
     .fallback = "auto",
     .words = "auto",
     .help = "Layers."},
    {.name = "prior.shift", .type = KEY_REAL, .fallback = "0", .help = "Shift."},
    {.name = "metrics", .type = KEY_WORDS, .fallback = "[]", .words = "emd moments rank", .help = "Metrics."},
    {.name = NULL}};

const ConfigKey toy_vits_keys[] = {
    {.name = "steps", .type = KEY_INT, .minimum = 1, .maximum = 1000, .fallback = "10", .help = "Steps."},
    {.name = "step_size",
     .type = KEY_REAL,
     .minimum = DBL_MIN,
     .maximum = 1,
     .fallback = "0.01",
     .help = "Step size."},
    {.name = "rule",
     .type = KEY_WORD,
     .fallback = "eta_t",
     .words = "eta_t lambda_max",
     .help = "Step rule."},
    {.name = NULL}};

static const ConfigKey *toy_policy_keys(const char *name) {
  return strcmp(name, "vits2") == 0 ? toy_vits_keys : NULL;
}

const ConfigSchema toy_schema = {toy_keys, toy_policy, toy_policy_keys};

Status toy_parse(const char *text, const char *a, const char *b, const char *c, StudyFile **out) {
  const char *sets[] = {a, b, c};
  int count = 0;
  while (count < 3 && sets[count]) count++;
  return config_study_parse("t.yaml", text, &toy_schema, count, sets, out);
}

/* Study files that are right: values and layers, sweeps, policies, the resolved text and its round trip. */
#include "config_toy.h"
#include "core/arena.h"
#include "core/status.h"
#include "harness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static const char full[] = "policies: [ts, {name: vits2, step_size: 1e-3, label: \"VITS-II\"}]\n"
                           "prior:\n"
                           "  hidden: [20, 30]\n"
                           "  samples: all\n"
                           "name: figure 2\n"
                           "seed: 2024\n"
                           "runs: 512\n"
                           "problem.arms: 10\n"
                           "metrics: [rank, emd]\n"
                           "sweep:\n"
                           "  problem.theta: [rays, H]\n"
                           "  problem:\n"
                           "    noise: [.1, 1e2, 3]\n";

/* Written by hand from the table; its hash is from sha256sum. */
static const char full_resolved[] =
    "name: \"figure 2\"\n"
    "seed: 2024\n"
    "runs: 512\n"
    "design: none\n"
    "problem:\n"
    "  arms: 10\n"
    "  resample: false\n"
    "  file: null\n"
    "  sizes: [1, 5]\n"
    "prior:\n"
    "  samples: all\n"
    "  hidden: [20, 30]\n"
    "  shift: 0\n"
    "metrics: [rank, emd]\n"
    "policies:\n"
    "  - {name: ts, label: ts}\n"
    "  - {name: vits2, label: VITS-II, steps: 10, step_size: 0.001, rule: eta_t}\n"
    "sweep:\n"
    "  problem.theta: [rays, H]\n"
    "  problem.noise: [0.1, 100, 3]\n";
static const char full_sha256[] = "a5a49268d5f3c2145dee70ac2677c0f3225ce3011609d98bf7cf5de2388acb96";

static void values_are_read(void) {
  StudyFile *study;
  const int64_t *integers;
  const char *const *words;
  CHECK_OK(
      toy_parse("name: x\nproblem: {theta: file, noise: -0, resample: true, file: 007, sizes: 3}\nseed: +12\n"
                "metrics: emd\nprior: {shift: -2.5E-3}\n",
                NULL, NULL, NULL, &study));
  const Config *c = study->settings[0];
  CU_ASSERT_STRING_EQUAL(config_text(c, "name"), "x");
  CU_ASSERT_EQUAL(config_int(c, "seed"), 12);
  CU_ASSERT_EQUAL(config_int(c, "runs"), 8);
  CU_ASSERT(config_is(c, "problem.theta", "file") && !config_is(c, "problem.theta", "cross"));
  CU_ASSERT(config_real(c, "problem.noise") == 0 && !signbit(config_real(c, "problem.noise")));
  CU_ASSERT(config_real(c, "prior.shift") == -0.0025);
  CU_ASSERT_TRUE(config_bool(c, "problem.resample"));
  CU_ASSERT_STRING_EQUAL(config_text(c, "problem.file"), "007");
  CU_ASSERT_EQUAL(config_ints(c, "problem.sizes", &integers), 1);
  CU_ASSERT_EQUAL(integers[0], 3);
  CU_ASSERT_PTR_NULL(config_text(c, "prior.samples"));
  CU_ASSERT_EQUAL(config_int(c, "prior.samples"), 1000);
  CU_ASSERT_TRUE(config_is(c, "prior.hidden", "auto"));
  CU_ASSERT_EQUAL(config_ints(c, "prior.hidden", &integers), 0);
  CU_ASSERT_EQUAL(config_words(c, "metrics", &words), 1);
  CU_ASSERT_STRING_EQUAL(words[0], "emd");
  static const char *const shown[][2] = {{"name", "x"},
                                         {"prior.shift", "-0.0025"},
                                         {"prior.samples", "1000"},
                                         {"problem.resample", "true"},
                                         {"problem.sizes", "[3]"},
                                         {"metrics", "[emd]"},
                                         {"problem.file", "\"007\""},
                                         {"prior.hidden", "auto"}};
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    char text[40], cut[4];
    config_show(c, shown[i][0], sizeof text, text);
    CU_ASSERT_STRING_EQUAL(text, shown[i][1]);
    config_show(c, shown[i][0], sizeof cut, cut);
    CU_ASSERT(strlen(cut) <= 3 && strncmp(cut, text, strlen(cut)) == 0);
  }
  CU_ASSERT(config_has(c, "problem.arms") && !config_has(c, "problem") && !config_has(c, "arms"));
  CU_ASSERT_EQUAL(study->setting_count, 1);
  CU_ASSERT_STRING_EQUAL(study->setting_labels[0], "default");
  CU_ASSERT_EQUAL(study->policy_count, 0);
  config_study_free(study);
}

static void empty_sections_and_null_text(void) {
  StudyFile *study;
  CHECK_OK(toy_parse("name: 'null'\nproblem:\nprior: ~\nsweep:\nproblem.file: null\npolicies:\n", NULL, NULL,
                     NULL, &study));
  CU_ASSERT_STRING_EQUAL(config_text(study->settings[0], "name"), "null");
  CU_ASSERT_PTR_NULL(config_text(study->settings[0], "problem.file"));
  config_study_free(study);
}

static void sweep_is_a_product(void) {
  StudyFile *study;
  static const char *const theta[] = {"rays", "rays", "rays", "H", "H", "H"};
  static const double noise[] = {.1, 100, 3, .1, 100, 3};
  CHECK_OK(toy_parse(full, NULL, NULL, NULL, &study));
  CU_ASSERT_EQUAL_FATAL(study->setting_count, 6);
  for (int s = 0; s < 6; s++) {
    CU_ASSERT_STRING_EQUAL(config_text(study->settings[s], "problem.theta"), theta[s]);
    CU_ASSERT_EQUAL(config_real(study->settings[s], "problem.noise"), noise[s]);
    CU_ASSERT_EQUAL(config_int(study->settings[s], "problem.arms"), 10);
  }
  CU_ASSERT_STRING_EQUAL(study->setting_labels[4], "problem.theta=H, problem.noise=100");
  CU_ASSERT_EQUAL_FATAL(study->axis_count, 2);
  CU_ASSERT(!study->axes[0].numeric && study->axes[1].numeric);
  CU_ASSERT_STRING_EQUAL(study->axes[1].key, "problem.noise");
  for (int s = 0; s < 6; s++) {
    CU_ASSERT_STRING_EQUAL(study->axes[0].texts[s], theta[s]);
    CU_ASSERT_EQUAL(study->axes[1].numbers[s], noise[s]);
  }
  CU_ASSERT_STRING_EQUAL(study->axes[1].texts[3], "0.1");
  config_study_free(study);
}

static void zip_advances_together(void) {
  StudyFile *study;
  CHECK_OK(toy_parse("name: x\nsweep: {zip: true, problem.arms: [2, 2, 3], prior.samples: [5, all, 5], "
                     "problem.resample: [true, "
                     "false, false]}\n",
                     NULL, NULL, NULL, &study));
  CU_ASSERT_EQUAL_FATAL(study->setting_count, 3);
  CU_ASSERT_STRING_EQUAL(study->setting_labels[1],
                         "problem.arms=2, prior.samples=all, problem.resample=false");
  CU_ASSERT(study->axes[0].numeric && !study->axes[1].numeric && !study->axes[2].numeric);
  CU_ASSERT_STRING_EQUAL(study->axes[1].texts[2], "5");
  CU_ASSERT_TRUE(config_is(study->settings[1], "prior.samples", "all"));
  CU_ASSERT_EQUAL(config_int(study->settings[2], "prior.samples"), 5);
  config_study_free(study);
}

/* Ranges are met everywhere within them, integers are rounded and lists are shared out evenly; the resolved
 * text says the same again. */
static void designs_fill_ranges(void) {
  enum { N = 64 };
  StudyFile *study, *again;
  int low = 0, rays = 0;
  CHECK_OK(toy_parse(
      "name: x\ndesign: {kind: sobol, points: 64}\nsweep: {problem.noise: {from: .1, to: 10, scale: "
      "log}, problem.arms: {from: 2, to: 5}, problem.theta: [H, rays], prior.shift: {from: -2, to: "
      "-1}}\n",
      NULL, NULL, NULL, &study));
  CU_ASSERT_EQUAL_FATAL(study->setting_count, N);
  CU_ASSERT_EQUAL_FATAL(study->axis_count, 4);
  for (int s = 0; s < N; s++) {
    const double noise = config_real(study->settings[s], "problem.noise");
    const double shift = config_real(study->settings[s], "prior.shift");
    const int64_t arms = config_int(study->settings[s], "problem.arms");
    CU_ASSERT(noise >= .1 && noise <= 10 && shift >= -2 && shift <= -1 && arms >= 2 && arms <= 5);
    CU_ASSERT_EQUAL(study->axes[0].numbers[s], noise);
    CU_ASSERT_EQUAL(study->axes[1].numbers[s], (double)arms);
    low += noise < 1;
    rays += config_is(study->settings[s], "problem.theta", "rays");
  }
  CU_ASSERT_EQUAL(low, N / 2); /* the logarithms are even */
  CU_ASSERT_EQUAL(rays, N / 2);
  CU_ASSERT_STRING_EQUAL(study->setting_labels[63], "point=63");
  CU_ASSERT_PTR_NOT_NULL(strstr(study->resolved, "  problem.arms: {from: 2, to: 5, scale: linear}\n"));
  CHECK_OK(toy_parse(study->resolved, NULL, NULL, NULL, &again));
  CU_ASSERT_STRING_EQUAL(study->resolved, again->resolved);
  for (int s = 0; s < N; s++) CU_ASSERT_EQUAL(study->axes[0].numbers[s], again->axes[0].numbers[s]);
  config_study_free(study);
  config_study_free(again);
}

/* A range may be given by --set, points may occur twice, and `none` takes a design away. */
static void designs_can_be_set(void) {
  StudyFile *study;
  static const char text[] = "name: x\ndesign: {kind: saltelli, points: 4}\nsweep: {problem.theta: [rays]}\n";
  CHECK_OK(toy_parse(text, "problem.noise={from: 1, to: 2}", "design.points=8", NULL, &study));
  CU_ASSERT_EQUAL(study->setting_count, 8 * 4);
  config_study_free(study);
  CHECK_OK(toy_parse(text, "design=none", NULL, NULL, &study));
  CU_ASSERT_STRING_EQUAL(study->setting_labels[0], "problem.theta=rays");
  config_study_free(study);
  CHECK_OK(toy_parse(text, "design.kind=latin", "design.points=7", "seed=3", &study));
  CU_ASSERT_EQUAL(study->setting_count, 7);
  config_study_free(study);
}

static void policies_have_options_and_labels(void) {
  StudyFile *study;
  CHECK_OK(toy_parse(full, NULL, NULL, NULL, &study));
  CU_ASSERT_EQUAL_FATAL(study->policy_count, 2);
  CU_ASSERT_STRING_EQUAL(study->policies[0].label, "ts");
  CU_ASSERT_STRING_EQUAL(study->policies[1].name, "vits2");
  CU_ASSERT_STRING_EQUAL(study->policies[1].label, "VITS-II");
  CU_ASSERT_EQUAL(config_int(study->policies[1].options, "steps"), 10);
  CU_ASSERT_EQUAL(config_real(study->policies[1].options, "step_size"), 1e-3);
  CU_ASSERT_FALSE(config_has(study->policies[0].options, "steps"));
  config_study_free(study);
}

static void sets_override_the_file(void) {
  StudyFile *study;
  CHECK_OK(toy_parse(full, "problem.theta=cross", "prior.shift=[1,2]", "policies=[ts,{name: ts, label: x}]",
                     &study));
  CU_ASSERT_EQUAL(study->setting_count, 6);
  CU_ASSERT_STRING_EQUAL(study->setting_labels[1], "problem.noise=0.1, prior.shift=2");
  CU_ASSERT_TRUE(config_is(study->settings[5], "problem.theta", "cross"));
  CU_ASSERT_EQUAL(study->policy_count, 2);
  CU_ASSERT_STRING_EQUAL(study->policies[1].label, "x");
  config_study_free(study);
  CHECK_OK(toy_parse(full, "problem.noise=[7]", "problem.theta=[H,rays]", "prior.hidden=[5,6,7]", &study));
  CU_ASSERT_EQUAL(study->setting_count, 2);
  CU_ASSERT_STRING_EQUAL(study->setting_labels[0], "problem.theta=H, problem.noise=7");
  const int64_t *integers;
  CU_ASSERT_EQUAL(config_ints(study->settings[0], "prior.hidden", &integers), 3);
  config_study_free(study);
  CHECK_OK(toy_parse("name: x\n", "problem.arms=[2,3]", "problem.noise=[1,2]", "sweep.zip=true", &study));
  CU_ASSERT_EQUAL(study->setting_count, 2);
  config_study_free(study);
  CHECK_OK(toy_parse("name: x\n", "problem.arms=[2,3]", "problem.arms=[4,5]", "problem.arms=6", &study));
  CU_ASSERT_EQUAL(config_int(study->settings[0], "problem.arms"), 6);
  config_study_free(study);
  CHECK_OK(toy_parse("name: x\n", "problem={arms: 5, theta: H}", "sweep={prior.shift: [1, 2]}",
                     "problem.file=", &study));
  CU_ASSERT_EQUAL(config_int(study->settings[1], "problem.arms"), 5);
  config_study_free(study);
}

static void resolved_text_is_the_whole_study(void) {
  StudyFile *study, *again;
  CHECK_OK(toy_parse(full, NULL, NULL, NULL, &study));
  CU_ASSERT_STRING_EQUAL(study->resolved, full_resolved);
  CU_ASSERT_STRING_EQUAL(study->sha256, full_sha256);
  CHECK_OK(toy_parse(study->resolved, NULL, NULL, NULL, &again));
  CU_ASSERT_STRING_EQUAL(again->resolved, study->resolved);
  CU_ASSERT_EQUAL(again->setting_count, study->setting_count);
  config_study_free(study);
  config_study_free(again);
}

/* Checks that reals, quoted text and zipped sweeps come back as they were. */
static void round_trip_is_exact(void) {
  static const char *const reals[] = {
      "0.1", "1e-5", "123456789.123456789", "5e-324", "1.7976931348623157e308", "0.30000000000000004"};
  static const char *const texts[] = {
      "'a: b'", "'#x'", "\"q\\\"\\\\\"", "'true'", "'1e3'", "\"\\u00e9t\\u00e9 \"",
      "'~'",    "''",   "/data/x-1.nc",  "'-'"};
  for (size_t i = 0; i < sizeof reals / sizeof *reals + sizeof texts / sizeof *texts; i++) {
    size_t count = sizeof reals / sizeof *reals;
    char text[400], difference[100];
    snprintf(
        text, sizeof text, "name: %s\nsweep: {zip: true, prior.shift: [%s, 2], problem.file: [%s, null]}\n",
        i < count ? "x" : texts[i - count], i < count ? reals[i] : "7", i < count ? "y" : texts[i - count]);
    StudyFile *study = NULL, *again = NULL;
    CHECK_OK(toy_parse(text, NULL, NULL, NULL, &study));
    CHECK_OK(toy_parse(study->resolved, NULL, NULL, NULL, &again));
    CU_ASSERT_STRING_EQUAL(again->resolved, study->resolved);
    CU_ASSERT_STRING_EQUAL(config_text(again->settings[0], "name"), config_text(study->settings[0], "name"));
    CU_ASSERT_EQUAL(config_real(again->settings[0], "prior.shift"), strtod(i < count ? reals[i] : "7", NULL));
    CU_ASSERT_PTR_NULL(config_text(again->settings[1], "problem.file"));
    CU_ASSERT_FALSE(config_first_difference(study->resolved, again->resolved, sizeof difference, difference));
    config_study_free(study);
    config_study_free(again);
  }
}

/* Checks that small reals stay numbers: a bare 1e-05 is text to YAML 1.1 readers such as PyYAML. */
static void small_reals_stay_numbers(void) {
  StudyFile *study;
  CHECK_OK(toy_parse("name: x\nprior.shift: 1e-5\n", NULL, NULL, NULL, &study));
  CU_ASSERT_PTR_NOT_NULL(strstr(study->resolved, "shift: 1.0e-05\n"));
  config_study_free(study);
}

/* Checks that layout, order, number format and swept-over values do not change a study. */
static void spelling_does_not_matter(void) {
  StudyFile *a, *b;
  CHECK_OK(toy_parse("name: x\nproblem: {arms: 5, noise: 1.50}\nsweep: {prior.shift: [1, 2]}\n", NULL, NULL,
                     NULL, &a));
  CHECK_OK(toy_parse("problem.noise: 15e-1\nproblem:\n  arms: +5\nprior.shift: 9\nname: \"x\"\n",
                     "prior.shift=[1.0,2]", NULL, NULL, &b));
  CU_ASSERT_STRING_EQUAL(a->resolved, b->resolved);
  CU_ASSERT_STRING_EQUAL(a->sha256, b->sha256);
  config_study_free(a);
  config_study_free(b);
}

static void check_difference(const char *set, const char *expected) {
  StudyFile *a, *b;
  char difference[300];
  CHECK_OK(toy_parse(full, NULL, NULL, NULL, &a));
  CHECK_OK(toy_parse(full, set, NULL, NULL, &b));
  CU_ASSERT_TRUE(config_first_difference(a->resolved, b->resolved, sizeof difference, difference));
  CU_ASSERT_STRING_EQUAL(difference, expected);
  if (strcmp(difference, expected) != 0) printf("\n    got: %s\n", difference);
  CU_ASSERT_FALSE(config_first_difference(b->resolved, b->resolved, sizeof difference, difference));
  config_study_free(a);
  config_study_free(b);
}

static void differences_name_the_key(void) {
  char difference[40];
  check_difference("problem.arms=11", "problem.arms: 10 -> 11");
  check_difference("name=y", "name: figure 2 -> y");
  check_difference("prior.hidden=auto", "prior.hidden: [20, 30] -> auto");
  check_difference("problem.theta=cross", "problem.theta: swept over [rays, H] -> cross");
  check_difference("prior.shift=[1,2]", "prior.shift: 0 -> swept over [1, 2]");
  check_difference("problem.noise=[1,2]", "sweep.problem.noise: [0.1, 100, 3] -> [1, 2]");
  check_difference("policies=[ts]", "policies: [ts, VITS-II] -> [ts]");
  check_difference("policies=[ts,{name: vits2, label: VITS-II}]",
                   "policies.VITS-II.step_size: 0.001 -> 0.01");
  CU_ASSERT_TRUE(config_first_difference("a: {b: 1}\n", "c: 2\n", sizeof difference, difference));
  CU_ASSERT_STRING_EQUAL(difference, "a.b: 1 -> (absent)");
  CU_ASSERT_TRUE(config_first_difference("a: [", "c: 2\n", sizeof difference, difference));
  CU_ASSERT_STRING_EQUAL(difference, "the old configuration cannot be read");
  /* A label that is not text, written by hand. */
  CU_ASSERT_TRUE(
      config_first_difference("a: 1\n", "a:\n  - {label: {b: 1}}\n", sizeof difference, difference));
  CU_ASSERT_STRING_EQUAL(difference, "a: 1 -> [{label: {b: 1}}]");
  /* A label stands for a policy only beside another one. */
  CU_ASSERT_TRUE(config_first_difference("a: {label: x}\n", "a: x\n", sizeof difference, difference));
  CU_ASSERT_TRUE(config_first_difference("a: [x]\n", "a: [{label: x}]\n", sizeof difference, difference));
}

static void options_stand_alone(void) {
  SCRATCH_ARENA(memory);
  const char *good[] = {"steps=5", "rule=lambda_max", "steps=7"}, *bad[] = {"stepz=5"},
             *list[] = {"steps=[1,2]"};
  Config *config;
  CHECK_OK(config_options(&memory, "--option", toy_vits_keys, 3, good, &config));
  CU_ASSERT_EQUAL(config_int(config, "steps"), 7);
  CU_ASSERT_EQUAL(config_real(config, "step_size"), 0.01);
  CU_ASSERT_TRUE(config_is(config, "rule", "lambda_max"));
  Config *changed;
  const char *one[] = {"steps=3"};
  CHECK_OK(config_override(&memory, config, "test", 1, one, &changed));
  CU_ASSERT_EQUAL(config_int(changed, "steps"), 3);
  CU_ASSERT_EQUAL(config_real(changed, "step_size"), 0.01);
  CU_ASSERT_TRUE(config_is(changed, "rule", "lambda_max")); /* that of the base, not the default */
  CU_ASSERT_EQUAL(config_int(config, "steps"), 7);
  CHECK_FAILS(config_override(&memory, config, "test", 1, bad, &changed), STATUS_INPUT,
              "test stepz=5: key 'stepz'");
  CHECK_FAILS(config_options(&memory, "--option", toy_vits_keys, 1, bad, &config), STATUS_INPUT,
              "--option stepz=5: key 'stepz': unknown key; allowed here: steps | step_size | rule; did you "
              "mean 'steps'?");
  CHECK_FAILS(config_options(&memory, "--option", toy_vits_keys, 1, list, &config), STATUS_INPUT,
              "a list where one value belongs");
}

/* Checks what config_study_text makes of a file of these bytes: OK with `text`, or a refusal that contains
 * that part. */
static void check_bytes(size_t size, const char *bytes, const char *text, const char *part) {
  char path[] = "/tmp/test_config_XXXXXX", *found;
  int descriptor = mkstemp(path);
  CU_ASSERT_FATAL(descriptor >= 0);
  CU_ASSERT_EQUAL(write(descriptor, bytes, size), (ssize_t)size);
  close(descriptor);
  if (text) {
    CHECK_OK(config_study_text(path, &found));
    CU_ASSERT_STRING_EQUAL(found, text);
  } else {
    CHECK_FAILS(config_study_text(path, &found), STATUS_INPUT, part);
    CU_ASSERT(strncmp(status_message(), path, strlen(path)) == 0);
    CU_ASSERT_PTR_NULL(found);
  }
  free(found);
  unlink(path);
}
#define CHECK_TEXT(bytes, text) check_bytes(sizeof bytes - 1, bytes, text, NULL)
#define CHECK_NO_TEXT(bytes, part) check_bytes(sizeof bytes - 1, bytes, NULL, part)

static void files_are_text(void) {
  CHECK_TEXT(full, full);
  CHECK_TEXT("", "");
  CHECK_TEXT("\xEF\xBB\xBFname: x\n", "name: x\n");
  CHECK_TEXT("\xEF\xBB\xBF", "");
  CHECK_NO_TEXT("name: x\n\0\nruns: banana", ":2:1: a NUL byte");
  CHECK_NO_TEXT("name: x\nt: \xC3\xA9\0", ":2:5: a NUL byte"); /* columns are characters */
  CHECK_NO_TEXT("\0name: x", ":1:1: a NUL byte");
  CHECK_NO_TEXT("name: x\n\0", ":2:1: a NUL byte");
  CHECK_NO_TEXT("\0\0\0\0\0\0\0\0", ":1:1: a NUL byte");
  CHECK_NO_TEXT("\xFF\xFEn\0a\0", "this is UTF-16 (little endian)");
  CHECK_NO_TEXT("\xFE\xFF\0n\0a", "this is UTF-16 (big endian)");
  CHECK_NO_TEXT("n\0a\0m\0e\0", "this is UTF-16 (little endian)");
  CHECK_NO_TEXT("\0n\0a\0m\0e", "this is UTF-16 (big endian)");
  CHECK_NO_TEXT("\xFF\xFE\0\0n\0\0\0", "this is UTF-32 (little endian)");
  CHECK_NO_TEXT("\0\0\xFE\xFF\0\0\0n", "this is UTF-32 (big endian)");
  CHECK_NO_TEXT("n\0\0\0a\0\0\0", "this is UTF-32 (little endian)");
  CHECK_NO_TEXT("\0\0\0n\0\0\0a", "this is UTF-32 (big endian)");
}

/* Checks that a study of 1 MiB is read, and that one byte more is refused. */
static void long_files_are_refused(void) {
  enum { MOST = 1 << 20 };
  char *text = malloc(MOST + 2);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, '\n', MOST + 1);
  text[MOST] = '\0';
  check_bytes(MOST, text, text, NULL);
  text[MOST] = '\n';
  check_bytes(MOST + 1, text, NULL, "more than 1048576 bytes");
  free(text);
  CHECK_FAILS(config_study_text("/nowhere/study.yaml", &text), STATUS_FILE, "No such file");
  CHECK_FAILS(config_study_text("/tmp", &text), STATUS_FILE, "Is a directory");
  CHECK_FAILS(config_study_text("/dev/zero", &text), STATUS_FILE, "not a regular file");
}

static void a_wrong_table_is_our_bug(void) {
  SCRATCH_ARENA(memory);
  static const ConfigKey keys[] = {
      {.name = "a", .type = KEY_INT, .minimum = 1, .maximum = 2, .fallback = "3", .help = ""},
      {.name = NULL}};
  Config *config;
  CHECK_FAILS(config_options(&memory, "x", keys, 0, NULL, &config), STATUS_INTERNAL,
              "a bug in a table of keys: built-in default: key 'a'");
}

static void tables_are_described(void) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(out);
  config_describe(out, toy_keys);
  fclose(out);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "name: text; required\n    Name of the study.\n"));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "problem.noise: a number in [0, 1000], in reward; default 1\n    Noise.\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "problem.file: text; default none\n"));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text, "    Prior.; cross: two lines; rays: five lines; triangles: three corners\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "metrics: a list of emd | moments | rank; default []\n"));
  free(text);
}

static void nearest_names(void) {
  CU_ASSERT_STRING_EQUAL(config_nearest("corss", toy_theta), "cross");
  CU_ASSERT_STRING_EQUAL(config_nearest("RAYS", toy_theta), "rays");
  CU_ASSERT_STRING_EQUAL(config_nearest("triangle", toy_theta), "triangles");
  CU_ASSERT_PTR_NULL(config_nearest("swirl", toy_theta));
  CU_ASSERT_PTR_NULL(config_nearest("", toy_theta));
  CU_ASSERT_PTR_NULL(config_nearest("xy", toy_policy));
}

int main(void) {
  CU_TestInfo tests[] = {{"values are read", values_are_read},
                         {"empty sections and null text", empty_sections_and_null_text},
                         {"sweep is a product", sweep_is_a_product},
                         {"zip advances together", zip_advances_together},
                         {"designs fill ranges", designs_fill_ranges},
                         {"designs can be set", designs_can_be_set},
                         {"policies have options and labels", policies_have_options_and_labels},
                         {"--set overrides the file", sets_override_the_file},
                         {"resolved text is the whole study", resolved_text_is_the_whole_study},
                         {"round trip is exact", round_trip_is_exact},
                         {"small reals stay numbers", small_reals_stay_numbers},
                         {"spelling does not matter", spelling_does_not_matter},
                         {"differences name the key", differences_name_the_key},
                         {"options stand alone", options_stand_alone},
                         {"files are text", files_are_text},
                         {"long files are refused", long_files_are_refused},
                         {"a wrong table is our bug", a_wrong_table_is_our_bug},
                         {"tables are described", tables_are_described},
                         {"nearest names", nearest_names},
                         CU_TEST_INFO_NULL};
  return harness_run("config", tests);
}

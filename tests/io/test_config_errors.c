/* Study files that are wrong: each gets one clear sentence, with the place, the key, the value and what is
 * allowed. */
#include "config_toy.h"
#include "core/status.h"
#include "harness.h"

#include <stdlib.h>

enum { BIG = (1 << 20) + 100 };

/* Tells whether the study refuses `text` (and set) with a sentence that contains `part`. */
static bool refuses(const char *text, const char *set, const char *part) {
  StudyFile *study;
  bool good =
      harness_fails(toy_parse(text, set, NULL, NULL, &study), STATUS_INPUT, part, text, __FILE__, __LINE__);
  good = good && !study && !strchr(status_message(), '\n');
  config_study_free(study);
  return good;
}
#define CHECK_REFUSED(text, part) CU_ASSERT(refuses((text), NULL, (part)))
#define CHECK_SET_REFUSED(set, part) CU_ASSERT(refuses("name: x\n", (set), (part)))

static void sets_are_named_in_errors(void) {
  CHECK_SET_REFUSED("problem.arms=ten",
                    "--set problem.arms=ten: key 'problem.arms': value 'ten' is not an integer; allowed: an "
                    "integer in [2, 1000]");
  CHECK_SET_REFUSED("problem.amrs=3",
                    "--set problem.amrs=3: key 'problem.amrs': unknown key; allowed in 'problem': theta | "
                    "arms | noise | resample | file | sizes; did you mean 'problem.arms'?");
  CHECK_SET_REFUSED("arms=3", "did you mean 'problem.arms'?");
  CHECK_SET_REFUSED("runs", "--set runs: expected key=value");
  CHECK_SET_REFUSED("=3", "expected key=value");
  CHECK_SET_REFUSED("problem.arms=[1,", "--set problem.arms=[1,: not valid YAML");
  CHECK_SET_REFUSED("problem.arms=[2,1001]",
                    "--set problem.arms=[2,1001]: key 'sweep.problem.arms': value '1001' is out of range");
  CHECK_SET_REFUSED("runs=[1,2]", "'runs' cannot be swept");
  CHECK_SET_REFUSED("problem.arms=", "value '' is not an integer");
  CHECK_SET_REFUSED("problem=3", "value '3' where a mapping of keys belongs");
  CHECK_SET_REFUSED("problem.file=a\n---\nb", "a second YAML document");
}

static void numbers_are_strict(void) {
  CHECK_REFUSED("name: x\nruns: 1e3\n",
                "t.yaml:2:7: key 'runs': value '1e3' is a real number; write an integer with digits "
                "only; allowed: an integer in [1, 1000000]");
  CHECK_REFUSED("name: x\nruns: 3.0\n", "is a real number");
  CHECK_REFUSED("name: x\nruns: 0x10\n", "is not an integer");
  CHECK_REFUSED("name: x\nruns: 010\n", "starts with 0");
  CHECK_REFUSED("name: x\nruns: '10'\n", "value '\"10\"' is quoted text");
  CHECK_REFUSED("name: x\nruns: 0\n", "is out of range");
  CHECK_REFUSED("name: x\nseed: 99999999999999999999\n",
                "does not fit in a 64-bit integer; allowed: an integer of at least 0");
  CHECK_REFUSED("name: x\nprior.shift: .nan\n", "value '.nan' is not finite; allowed: a number");
  CHECK_REFUSED("name: x\nprior.shift: -inf\n", "is not finite");
  CHECK_REFUSED("name: x\nprior.shift: 1e999\n", "does not fit in a double");
  CHECK_REFUSED("name: x\nprior.shift: 1e-999\n", "does not fit in a double");
  CHECK_REFUSED("name: x\nprior.shift: 1,5\n", "is not a number");
  CHECK_REFUSED("name: x\nprior.shift: 1e\n", "is not a number");
  CHECK_REFUSED("name: x\nprior.shift: .\n", "is not a number");
  CHECK_REFUSED("name: x\nproblem.noise: 1000.5\n", "allowed: a number in [0, 1000]");
  CHECK_REFUSED("name: x\nproblem.resample: yes\n", "is neither true nor false; allowed: true | false");
  CHECK_REFUSED("name: x\nproblem.resample: True\n", "did you mean 'true'?");
  CHECK_REFUSED("name: x\nprior.samples: al\n",
                "allowed: an integer in [1, 1000000000], or all; did you mean 'all'?");
}

static void words_and_lists_are_strict(void) {
  CHECK_REFUSED("name: x\nproblem:\n  theta: corss\n", "t.yaml:3:10: key 'problem.theta': value 'corss' is "
                                                       "unknown; allowed: file | H | cross | rays | "
                                                       "triangles; did you mean 'cross'?");
  CHECK_REFUSED("name: x\nproblem.theta: [rays, H]\n",
                "a list where one value belongs (lists go under sweep)");
  CHECK_REFUSED("name: x\nproblem.sizes: [1, 10]\n",
                "t.yaml:2:20: key 'problem.sizes': value '10' is out of range");
  CHECK_REFUSED("name: x\nproblem.sizes: []\n", "a list without values is not allowed");
  CHECK_REFUSED("name: x\nproblem.sizes: [1, [2]]\n", "a list is not allowed inside the list");
  CHECK_REFUSED("name: x\nmetrics: [emd, emd]\n", "value 'emd' is listed twice");
  CHECK_REFUSED("name: x\nprior.hidden: atuo\n",
                "allowed: a list of integers, each in [1, 4096], or auto; did you mean 'auto'?");
  CHECK_REFUSED("name: {a: 1}\n", "key 'name': a mapping is not allowed for this key; allowed: text");
  CHECK_REFUSED("name: x\nproblem: 4\n",
                "key 'problem': value '4' where a mapping of keys belongs; allowed in it: theta | arms");
}

static void keys_are_strict(void) {
  CHECK_REFUSED("seed: 1\n", "t.yaml: key 'name': must be given (Name of the study.); allowed: text");
  CHECK_REFUSED("name:\n", "this key is required");
  CHECK_REFUSED("name: x\nproblm: {arms: 3}\n",
                "t.yaml:2:1: key 'problm': unknown key; allowed here: name | "
                "seed | runs | design | problem | prior | metrics | policies | "
                "sweep; did you mean 'problem'?");
  CHECK_REFUSED("name: x\npolices: [ts]\n", "did you mean 'policies'?");
  CHECK_REFUSED("name: x\nname: y\n", "t.yaml:2:1: key 'name': given twice in one mapping");
  CHECK_REFUSED("name: x\nproblem:\n  arms: 3\nproblem.arms: 4\n",
                "t.yaml:4:1: key 'problem.arms': given twice, first in line 3");
  CHECK_REFUSED("name: x\nzebra: 1\n", "key 'zebra': unknown key");
  CU_ASSERT_PTR_NULL(strstr(status_message(), "did you mean"));
  CHECK_REFUSED("name: x\n'': 1\n", "unknown key");
  CHECK_REFUSED("name: x\nproblem.: 1\n", "unknown key");
  CHECK_REFUSED("name: x\n[a]: 1\n", "a key must be a word");
}

static void sweeps_are_strict(void) {
  CHECK_REFUSED("name: x\nsweep: {runs: [1, 2]}\n", "t.yaml:2:9: key 'sweep.runs': 'runs' cannot be swept");
  CHECK_REFUSED("name: x\nsweep: {problem.sizes: [[1], [2]]}\n", "cannot be swept");
  CHECK_REFUSED("name: x\nsweep: {problem.arms: 3}\n", "expects a list of values");
  CHECK_REFUSED("name: x\nsweep: {problem.arms: []}\n", "expects a list of values");
  CHECK_REFUSED("name: x\nsweep: {problem.armz: [3]}\n", "key 'sweep.problem.armz': unknown key");
  CHECK_REFUSED("name: x\nsweep: {problem.arms: [3, 3]}\n", "the setting 'problem.arms=3' occurs twice");
  CHECK_REFUSED("name: x\nsweep: {prior.shift: [1, 1.0]}\n", "the setting 'prior.shift=1' occurs twice");
  CHECK_REFUSED("name: x\nsweep: {problem.arms: [3], problem: {arms: [4]}}\n", "given twice");
  CHECK_REFUSED("name: x\nsweep: {zip: maybe}\n", "key 'sweep.zip': value 'maybe' is neither true nor false");
  CHECK_REFUSED("name: x\nsweep: [a]\n", "key 'sweep': expects a mapping");
  CHECK_REFUSED("name: x\nsweep: {zip: true, problem.arms: [2, 3], prior.shift: [1, 2, 3]}\n",
                "'problem.arms' has 2 values and 'prior.shift' has 3");
}

#define DESIGN(kind, points, axes)                                                                           \
  "name: x\ndesign: {kind: " kind ", points: " points "}\nsweep: {" axes "}\n"

static void designs_are_strict(void) {
  CHECK_REFUSED(
      DESIGN("sobol", "8", "problem.noise: {from: 2, to: 1}"),
      "t.yaml:3:31: key 'sweep.problem.noise.from': value '2' is not below 'sweep.problem.noise.to', "
      "which is '1'");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.arms: {from: 3, to: 3}"), "value '3' is not below");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: {from: 0, to: 1, scale: log}"),
                "t.yaml:3:31: key 'sweep.problem.noise.from': value '0' has no logarithm");
  CHECK_REFUSED(DESIGN("sobol", "8", "prior.shift: {from: -1, to: 1, scale: log}"), "'-1' has no logarithm");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: {from: 1}"),
                "key 'sweep.problem.noise.to': must be given");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: {from: 1, to: 2, step: 1}"),
                "key 'sweep.problem.noise.step': unknown key; allowed here: from | to | scale");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: {from: 1, to: 2, scale: logarithmic}"),
                "value 'logarithmic' is unknown; allowed: linear | log");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.arms: {from: 1, to: 9}"), "value '1' is out of range");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.arms: {from: 2.5, to: 9}"),
                "is a real number; write an integer");
  CHECK_REFUSED(DESIGN("sobol", "8", "prior.samples: {from: 2, to: all}"), "value 'all' is not an integer");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.theta: {from: H, to: rays}"), "a range needs numbers");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: {from: nan, to: 2}"), "is not finite");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: {from: [1], to: 2}"), "a list where one value belongs");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: {}"), "must be given");
  CHECK_REFUSED(DESIGN("sobol", "8", "problem.noise: 1"), "or in a design a range");
  CHECK_REFUSED(DESIGN("sobol", "8", "runs: {from: 1, to: 2}"), "'runs' cannot be swept");
  CHECK_REFUSED(DESIGN("sobol", "8", ""), "t.yaml:2:10: key 'design': no key is swept");
  CHECK_REFUSED(DESIGN("sobol", "8", "zip: true, problem.noise: {from: 1, to: 2}, problem.arms: [2, 3]"),
                "t.yaml:3:9: key 'sweep.zip': a design chooses the values of each key itself");
  CHECK_REFUSED(DESIGN("sobol", "12", "problem.noise: {from: 1, to: 2}"),
                "t.yaml:2:31: key 'design.points': value '12' is not a power of two");
  CHECK_REFUSED(DESIGN("sobol", "1", "problem.noise: {from: 1, to: 2}"), "value '1' is out of range");
  CHECK_REFUSED(DESIGN("saltelli", "65536", "problem.noise: {from: 1, to: 2}"),
                "value '65536' makes 196608 settings of 1 keys; at most 100000 are allowed");
  CHECK_REFUSED(DESIGN("grid", "8", "problem.noise: {from: 1, to: 2}"),
                "key 'design.kind': value 'grid' is unknown; allowed: saltelli | sobol | latin");
  CHECK_REFUSED("name: x\ndesign: {kind: sobol}\nsweep: {problem.arms: [2]}\n", "needs 'design.points'");
  CHECK_REFUSED("name: x\ndesign: {points: 8}\nsweep: {problem.arms: [2]}\n", "needs 'design.kind'");
  CHECK_REFUSED("name: x\ndesign: sobol\n", "key 'design': value 'sobol' is unknown; allowed: none");
  CHECK_REFUSED("name: x\nsweep: {problem.noise: {from: 1, to: 2}}\n",
                "t.yaml:2:24: key 'sweep.problem.noise': a range needs a design");
}

static void policies_are_strict(void) {
  CHECK_REFUSED(
      "name: x\npolicies: [ts, vits2, {name: ts}]\n",
      "t.yaml:2:23: key 'policies': two policies have the label 'ts'; give one of them another label");
  CHECK_REFUSED("name: x\npolicies: [ts, difts]\n",
                "value 'difts' is unknown; allowed: ts | diffts | vits2; did you mean 'diffts'?");
  CHECK_REFUSED("name: x\npolicies:\n  - name: vits2\n    stepsize: 2\n",
                "t.yaml:4:5: key 'policies.vits2.stepsize': unknown key; allowed here: steps | step_size | "
                "rule; did you mean 'step_size'?");
  CHECK_REFUSED(
      "name: x\npolicies: [{name: vits2, steps: 0}]\n",
      "t.yaml:2:33: key 'policies.vits2.steps': value '0' is out of range; allowed: an integer in [1, 1000]");
  CHECK_REFUSED("name: x\npolicies: [{name: ts, steps: 1}]\n", "allowed here: none");
  CHECK_REFUSED("name: x\npolicies: [{label: ts}]\n", "a policy needs a name");
  CHECK_REFUSED("name: x\npolicies: [{name: ts, label: ''}]\n", "a label must have 1 to 200 bytes");
  CHECK_REFUSED("name: x\npolicies: [[ts]]\n", "a list where one value belongs");
}

static void yaml_is_strict(void) {
  CHECK_REFUSED("", "t.yaml: the study file is empty");
  CHECK_REFUSED("# only a comment\n", "the study file is empty");
  CHECK_REFUSED("---\n", "the study file is empty");
  CHECK_REFUSED("- a\n- b\n", "t.yaml:1:1: expected a mapping of keys");
  CHECK_REFUSED("name: &a x\n", "t.yaml:1:7: YAML anchors and aliases");
  CHECK_REFUSED("name: x\nproblem.file: *a\n", "YAML anchors and aliases");
  CHECK_REFUSED("name: !!str x\n", "YAML tags");
  CHECK_REFUSED("name: x\n---\nname: y\n", "t.yaml:2:1: a second YAML document");
  CHECK_REFUSED("name: x\n  seed: [1\n",
                "t.yaml:2:7: not valid YAML: mapping values are not allowed in this context");
  CHECK_REFUSED("name: \"a\\0b\"\n", "without control characters");
  CHECK_REFUSED("name: \"a\\u2028b\"\n", "without control characters; U+2028 is one");
  CHECK_REFUSED("name: \"a\\ufeffb\"\n", "U+FEFF is one");
  CHECK_REFUSED("name: |\n  a\n  b\n", "text must be on one line");
  CHECK_REFUSED("name: \xff\xfe\n", "t.yaml: not UTF-8 text");
  CHECK_REFUSED("\xff\xfen", "not UTF-8 text");
  CHECK_REFUSED("name: \xed\xa0\x80\n", "not UTF-8 text");
}

/* Checks that characters that turn the reading direction are refused: they make a label look like another
 * one. */
static void directions_are_refused(void) {
  static const unsigned directions[] = {0x061C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C,
                                        0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069};
  for (size_t i = 0; i < sizeof directions / sizeof *directions; i++) {
    char text[80], part[40];
    snprintf(part, sizeof part, "U+%04X is one", directions[i]);
    snprintf(text, sizeof text, "name: \"a\\u%04xb\"\n", directions[i]);
    CHECK_REFUSED(text, part);
    snprintf(text, sizeof text, "name: x\npolicies: [{name: ts, label: \"a\\u%04x\"}]\n", directions[i]);
    CHECK_REFUSED(text, part);
  }
  CHECK_REFUSED("name: \"\xE2\x80\xAE\"\n", "U+202E is one");
  StudyFile *study;
  CHECK_OK(toy_parse("name: \"\xD7\xA9\xD7\x9C\xE2\x80\x90\xE2\x81\xA5\"\n", NULL, NULL, NULL, &study));
  config_study_free(study);
}

/* Returns `head`, then `count` times `piece`, then `tail`, in memory that the caller frees. */
static char *repeat(const char *head, int count, const char *piece, const char *tail) {
  size_t length = strlen(piece);
  char *text = malloc(strlen(head) + (size_t)count * length + strlen(tail) + 1), *end = text;
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  end = stpcpy(end, head);
  for (int i = 0; i < count; i++) end = stpcpy(end, piece);
  strcpy(end, tail);
  return text;
}

static void check_repeat_refused(const char *head, int count, const char *piece, const char *tail,
                                 const char *part) {
  char *text = repeat(head, count, piece, tail);
  StudyFile *study;
  CU_ASSERT(
      harness_fails(toy_parse(text, NULL, NULL, NULL, &study), STATUS_INPUT, part, head, __FILE__, __LINE__));
  CU_ASSERT(strlen(status_message()) < 400);
  free(text);
}

static void sizes_are_limited(void) {
  check_repeat_refused("name: x", BIG, "\n", "", "more than 1048576 bytes");
  check_repeat_refused("name: ", 4097, "x", "\n", "a value of 4097 bytes; at most 4096");
  check_repeat_refused("name: ", 100000, "[", "\n", "nested deeper than 32 levels");
  check_repeat_refused("name: ", 100000, "{a: ", "\n", "nested deeper than 32 levels");
  check_repeat_refused("", 100000, "- ", "\n", "nested deeper than 32 levels");
  check_repeat_refused("name: x\nsweep: {problem.arms: [3", 100000, ",4", "]}\n",
                       "more than 100000 settings");
  check_repeat_refused("name: x\npolicies: [ts", 1000, ", ts", "]\n", "1001 policies; at most 1000");
  check_repeat_refused("name: x\n", 3000, "zzzzzzzzzz", ": 1\n", "not valid YAML");
  char *text = repeat("name: x\nsweep: {problem.noise: [0", 0, "", "");
  text = realloc(text, BIG);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  char *end = text + strlen(text);
  for (int i = 1; i < 500; i++) end += sprintf(end, ",%d", i);
  end = stpcpy(end, "], prior.shift: [0");
  for (int i = 1; i < 200; i++) end += sprintf(end, ",%d", i);
  strcpy(end, "]}\n");
  StudyFile *study;
  CHECK_OK(toy_parse(text, NULL, NULL, NULL, &study));
  CU_ASSERT_EQUAL(study->setting_count, 100000);
  CU_ASSERT_STRING_EQUAL(study->setting_labels[99999], "problem.noise=499, prior.shift=199");
  config_study_free(study);
  CHECK_FAILS(toy_parse(text, "problem.arms=[2,3]", NULL, NULL, &study), STATUS_INPUT,
              "more than 100000 settings");
  free(text);
}

int main(void) {
  CU_TestInfo tests[] = {{"--set is named in errors", sets_are_named_in_errors},
                         {"numbers are strict", numbers_are_strict},
                         {"words and lists are strict", words_and_lists_are_strict},
                         {"keys are strict", keys_are_strict},
                         {"sweeps are strict", sweeps_are_strict},
                         {"designs are strict", designs_are_strict},
                         {"policies are strict", policies_are_strict},
                         {"YAML is strict", yaml_is_strict},
                         {"directions are refused", directions_are_refused},
                         {"sizes are limited", sizes_are_limited},
                         CU_TEST_INFO_NULL};
  return harness_run("config_errors", tests);
}

/* Study files: YAML, checked against one table of keys.
 *
 * This layer knows the mechanism, not the keys: callers supply the table (src/study/keys.c) and, for each
 * policy, the table of its options. Every value is checked when the file is read: an unknown key, a wrong
 * type or a value out of range is STATUS_INPUT, with a message that has file, line, column, key, value, what
 * is allowed, and the closest known name for a typo.
 *
 * A key may be written nested (problem: {arms: 100}) or dotted (problem.arms: 100); a section without entries
 * gives nothing. Quoted text is never a number. A single value in place of a list is a list of one. Refused:
 * anchors, tags, a second document, a duplicate key, control characters (including those of reading
 * direction), more than 1 MiB, 32 levels, 1000 policies or 100000 settings. */
#pragma once

#include "core/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum {
  KEY_INT, /* integer in [minimum, maximum], or one of `words` */
  KEY_REAL, /* finite number in [minimum, maximum], or one of `words` */
  KEY_BOOL, /* true | false */
  KEY_WORD, /* one of `words` or of word(0), word(1), ... */
  KEY_TEXT, /* any text (a path, a title); null means not given */
  KEY_INTS, /* list of integers in [minimum, maximum], or one of `words`; empty only if the default is [] */
  KEY_REAL_OR_INTS, /* finite number in [minimum, maximum], or a list of integers of any size */
  KEY_WORDS /* list of distinct words, each one of `words` or word(i); empty as above */
} KeyType;

/* One row of a table of keys. The table ends with a row whose name is NULL. The keys of a section are
 * adjacent. A table of options has no rows "name" and "label". */
typedef struct {
  /* Dotted path: "problem.arms"; for an option: "step_size". */
  const char *name;
  KeyType type;
  /* Inclusive; ignored if the type has no range; both 0: no limit. */
  double minimum, maximum;
  /* Default, as it would be written in the file; NULL: required; "null": absent by default (TEXT). */
  const char *fallback;
  /* Allowed words, separated by blanks; NULL: none. */
  const char *words;
  /* Further allowed words, from a registry, which returns NULL after the last; may be NULL. */
  const char *(*word)(int index);
  /* OPTIONAL. What word number `index` of the registry means; config_key_help appends it. */
  const char *(*meaning)(int index);
  /* `unit` may be NULL. */
  const char *unit, *help;
  /* Cannot be swept. Lists (KEY_INTS and KEY_WORDS) never can; of KEY_REAL_OR_INTS, only numbers can. */
  bool fixed;
  /* May be given in parts instead: as a mapping of the keys NAME.x, whose rows follow. Either the key or its
   * parts are present: if two sources differ, the later one decides; if neither is given, it is the key. */
  bool parts;
} ConfigKey;

/* Returns whether the value of a key is always a list. */
static inline bool config_key_is_list(const ConfigKey *key) {
  return key->type == KEY_INTS || key->type == KEY_WORDS;
}
/* Returns the place of a key in a table, -1 if the table lacks it. */
int config_key_index(const ConfigKey *keys, const char *name);
/* Appends the rows of `keys` (NULL: none) to joined[most], which ends with a row whose name is NULL; leaves
 * out the keys that the table `but` has too (NULL: it has none). */
void config_join_keys(const ConfigKey *keys, const ConfigKey *but, int most, ConfigKey *joined);

/* Returns allowed word `index` of a key, which is *length bytes long; NULL after the last. */
const char *config_key_word(const ConfigKey *key, int index, int *length);

/* Writes the help of a key, with what each word of its registry means; returns `text`. */
enum { CONFIG_HELP = 2048 };
const char *config_key_help(const ConfigKey *key, char text[CONFIG_HELP]);

/* The value of every key of one table, for one setting or one policy. */
typedef struct Config Config;

/* Reads a value. It is a bug (asserted) to ask for a key that the table lacks, with the wrong type, or for a
 * number if the value is a word. Strings and lists live as long as the Config. */
int64_t config_int(const Config *config, const char *key);
double config_real(const Config *config, const char *key);
bool config_bool(const Config *config, const char *key);
/* Returns a WORD, a TEXT (NULL if absent), or the word given for an INT, REAL or INTS (NULL if the value is a
 * number). */
const char *config_text(const Config *config, const char *key);
/* Returns whether the value is this word. */
bool config_is(const Config *config, const char *key, const char *word);
/* Returns the number of integers; 0 if the value is a word or a number. */
int config_ints(const Config *config, const char *key, const int64_t **list);
int config_words(const Config *config, const char *key, const char *const **list);
/* Writes the value to out[size] as it would be written in a study file, cut to size. */
void config_show(const Config *config, const char *key, size_t size, char *out);
/* Writes the same, whole, to a stream. */
void config_write(const Config *config, const char *key, FILE *out);
/* Returns the table of a Config's keys. */
const ConfigKey *config_table(const Config *config);
/* Returns whether a key has a value: not if it is given in parts, nor if it is a part of a key that is not
 * given in parts. */
bool config_present(const Config *config, const char *key);
/* Finds whether the value is the default of its key. */
Status config_is_default(const Config *config, const char *key, bool *out);
/* Returns whether the table has this key. */
bool config_has(const Config *config, const char *key);

/* One policy of a study: a registered name, its label, its options (table given by ConfigSchema). */
typedef struct {
  const char *name, *label;
  const Config *options;
} ConfigPolicy;

/* One swept key, and its value in each setting. */
typedef struct {
  const char *key;
  bool numeric;
  const double *numbers; /* [setting_count] when numeric */
  const char *const *texts; /* [setting_count], the value as text */
} ConfigAxis;

/* A study file, checked, expanded and resolved. */
typedef struct {
  Arena memory; /* of all that follows */
  const Config **settings; /* [setting_count] */
  /* [setting_count]: "prior.stages=25, problem.noise=2"; "default" without a sweep. The settings are the
   * product of the axes, with the first axis slowest; or, with `zip`, all axes advance together. */
  const char **setting_labels;
  int setting_count;
  bool grid; /* neither zipped nor a design: the settings are the product of the axes */
  ConfigAxis *axes; /* [axis_count] */
  int axis_count;
  ConfigPolicy *policies; /* [policy_count] */
  int policy_count;
  /* The whole study as YAML: every key once, in the order of the table, with its value or its sweep, and
   * every option of every policy; reading it again gives the same text. */
  const char *resolved;
  const char *changed; /* the same without keys and options that have their defaults */
  char sha256[65]; /* of `resolved` */
} StudyFile;

/* How a study file says that the values of several keys advance together. */
#define CONFIG_ZIP_EXAMPLE "sweep: {zip: true, problem.noise: [0.5, 1, 2], problem.arms: [10, 20, 40]}"

/* What the caller knows: all keys of a study file, and the policies with their options. */
typedef struct {
  /* The key "policies" and the mapping "sweep" are built in and not listed. */
  const ConfigKey *keys;
  /* Returns NULL after the last name. */
  const char *(*policy_name)(int index);
  /* Options of that policy (each also has `label`); NULL: none. */
  const ConfigKey *(*policy_keys)(const char *policy_name);
} ConfigSchema;

/* Reads the text of the study file `path`, without its byte order mark; free() it. Errors: STATUS_FILE if it
 * cannot be read or is not a regular file; STATUS_INPUT if it is too long, contains a NUL byte, or is UTF-16
 * or UTF-32. */
Status config_study_text(const char *path, char **out);
/* Parses `text`, applies `sets` ("key=value" or "key=[a,b]", in order; a list for a scalar key makes or
 * replaces its sweep, a scalar removes it; "policies=[ts,diffts]" and "sweep.zip=true" work too), checks and
 * expands. A study may have no policies. Messages call the file `name`. Free *out with config_study_free.
 * Errors are STATUS_INPUT (an error in a --set names the --set). */
Status config_study_parse(const char *name, const char *text, const ConfigSchema *schema, int set_count,
                          const char *const *sets, StudyFile **out);
void config_study_free(StudyFile *study);
/* Frees a study at the end of a scope, for SCOPED (core/arena.h). */
static inline void config_study_drop(StudyFile **study) { config_study_free(*study); }

/* Finds the first key whose value differs between two resolved texts, for the message "resume refused":
 * writes "key: old -> new" into out; returns false if they are equal. The key is dotted: "problem.arms",
 * "sweep.prior.stages", "policies", "policies.LABEL.steps". */
bool config_first_difference(const char *old_resolved, const char *new_resolved, size_t size, char *out);

/* Reads options without a study, from "key=value" texts (`thompson sample --option`), against one table;
 * `what` names their source in messages. They live as long as `memory`. */
Status config_options(Arena *memory, const char *what, const ConfigKey *keys, int set_count,
                      const char *const *sets, Config **out);
/* Copies the options of `base`, which must outlive the copy, with some of them replaced. */
Status config_override(Arena *memory, const Config *base, const char *what, int set_count,
                       const char *const *sets, Config **out);

/* Writes one paragraph for each key: type, range, unit, default, help. */
void config_describe(FILE *out, const ConfigKey *keys);

/* Returns the closest of the names word(0), word(1), ... to `typo` by edit distance, or NULL if none is
 * close. */
const char *config_nearest(const char *typo, const char *(*word)(int index));
/* Sets "'typo' is not WHAT; allowed: a | b; did you mean 'a'?" and returns `code`. */
Status config_unknown_name(Status code, const char *typo, const char *what, const char *(*word)(int index));

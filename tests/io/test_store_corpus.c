/* The corpora of the NetCDF fuzz targets: whatever is accepted is finite and agrees with its shape, whatever
 * is refused has a sentence. Then sizes that exceed any memory, which the fuzzer cannot try. */
#include "core/arena.h"
#include "harness.h"
#include "io/io_cases.h"
#include "io/io_dataset.h"
#include "io/store_internal.h"
#include "model/prior/prior.h"
#include "problem/embedding/embedding_file.h"
#include "store_contents.h"
#include "store_damage.h"
#include "store_readers.h"

#include <dirent.h>
#include <fenv.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch[PATH_MAX]; /* a NetCDF file of this test */

/* Calls `check` with every file of a corpus; returns how many there were. Overflow on the way to a refusal is
 * allowed, as in the program. */
static int walk(const char *corpus, void (*check)(const char *path)) {
  const char *source = getenv("THOMPSON_SOURCE");
  char folder[PATH_MAX / 2], path[PATH_MAX];
  int seen = 0, traps = fegetexcept();
  snprintf(folder, sizeof folder, "%s/tests/fuzz/%s", source ? source : ".", corpus);
  DIR *files = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(files);
  fedisableexcept(FE_ALL_EXCEPT);
  for (struct dirent *entry; (entry = readdir(files));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    check(path);
    seen++;
  }
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(traps);
  closedir(files);
  return seen;
}

static void check_readers(const char *input, const char *path) {
  const char *broken = broken_reader(path);
  if (broken) printf("%s: %s: %s\n", input, broken, status_message());
  CU_ASSERT_PTR_NULL(broken);
}

static void check_classic(const char *path) { check_readers(path, path); }

static void test_classic(void) { CU_ASSERT(walk("corpus_store_classic", check_classic) >= 30); }

static void check_contents(const char *path) {
  char *script;
  size_t size;
  bool sealed;
  CHECK_OK(store_read_text(path, SIZE_MAX, &script, &size));
  if (store_contents_write(scratch, (const uint8_t *)script, size, &sealed)) check_readers(path, scratch);
  free(script);
}

static void test_contents(void) {
  CU_ASSERT(walk("corpus_store_contents", check_contents) >= 50);
  remove(scratch);
}

static void check_seal(const char *path) {
  char *script;
  size_t size;
  CHECK_OK(store_read_text(path, SIZE_MAX, &script, &size));
  const char *broken = damage_run(scratch, (const uint8_t *)script, size);
  if (broken) printf("%s: %s: %s\n", path, broken, status_message());
  CU_ASSERT_PTR_NULL(broken);
  free(script);
}

static void test_seal(void) {
  CU_ASSERT(walk("corpus_store_seal", check_seal) >= 30);
  remove(scratch);
}

/* Checks one kind; the corpora begin with one valid file of each kind in each format. */
static void check_kind(const char *path) {
  SCRATCH_ARENA(memory);
  static const PriorFit settings = {.schedule.stages = 3, .schedule.alpha = 0.8};
  static const char *const formats[] = {"_cdf1",        "_cdf2",        "_cdf5",      "_nc4",
                                        "_cdf1_sealed", "_cdf5_sealed", "_nc4_sealed"};
  const char *name = strrchr(path, '/') + 1, *ending = strchr(name, '_');
  bool seed = false;
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    seed |= ending && strcmp(ending, formats[i]) == 0;
  if (!seed) return;
  const char *file = path;
  if (strstr(path, "corpus_store_contents")) {
    check_contents(path);
    file = scratch;
  }
  if (strncmp(name, "samples", 7) == 0) {
    Samples samples;
    CHECK_OK(io_dataset_read_samples(&memory, file, &samples));
    CU_ASSERT(samples.n == 3 && samples.d == 2);
  } else if (strncmp(name, "history", 7) == 0) {
    Observations seen;
    CHECK_OK(io_dataset_read_observations(&memory, file, &seen));
    CU_ASSERT(seen.rows == 3 && seen.d == 2);
  } else if (strncmp(name, "table", 5) == 0) {
    EventLog table;
    CHECK_OK(io_dataset_read_table(&memory, file, &table));
    CU_ASSERT(table.rows == 3 && table.arms == 2 && table.d == 2);
  } else if (strncmp(name, "events", 6) == 0) {
    EventLog log;
    CHECK_OK(io_dataset_read_events(&memory, file, &log));
    CU_ASSERT(log.rows == 3 && log.arms == 2 && log.d == 2 && log.noise == 0.5);
  } else if (strncmp(name, "cases", 5) == 0) {
    CaseFile cases;
    CHECK_OK(io_cases_read(&memory, file, &cases));
    CU_ASSERT(cases.count == 2 && cases.d == 2 && cases.rows == 2 && cases.references == 2);
    CU_ASSERT(cases.cases[0].components == 2 && cases.cases[1].components == 1 && cases.cases[1].rows == 1);
  } else if (strncmp(name, "embedding", 9) == 0) {
    Embedding embedding;
    CHECK_OK(embedding_read(&memory, file, &embedding));
    CU_ASSERT(embedding.theta.n >= 3 && embedding.arms >= 2 && embedding.d == 2);
  } else {
    Prior prior;
    CHECK_OK(prior_load(&memory, file, &settings, &prior));
    CU_ASSERT(prior.ops && strncmp(name, prior.ops->name, strlen(prior.ops->name)) == 0 && prior.d == 2);
  }
}

static void test_seeds(void) {
  walk("corpus_store_classic", check_kind);
  walk("corpus_store_contents", check_kind);
  remove(scratch);
}

static Status read_prior(const char *path) {
  SCRATCH_ARENA(memory);
  static const PriorFit settings = {.schedule.stages = 3, .schedule.alpha = 0.8};
  Prior prior;
  Status status = prior_load(&memory, path, &settings, &prior);
  return status;
}

static Status read_samples(const char *path) {
  SCRATCH_ARENA(memory);
  Samples samples;
  Status status = io_dataset_read_samples(&memory, path, &samples);
  return status;
}

static Status read_observations(const char *path) {
  SCRATCH_ARENA(memory);
  Observations seen;
  Status status = io_dataset_read_observations(&memory, path, &seen);
  return status;
}

static Status read_embedding(const char *path) {
  SCRATCH_ARENA(memory);
  Embedding embedding;
  Status status = embedding_read(&memory, path, &embedding);
  return status;
}

/* Checks classic files that the library opens. The first four led past the end of an array or a buffer. */
static void test_refusals(void) {
  static const struct {
    Status (*read)(const char *path);
    const char *name, *sentence;
  } cases[] = {
      {read_samples, "long_dimension_name", "header is damaged"},
      {read_samples, "many_axes", "header is damaged"},
      {read_samples, "long_fill_value", "the attribute _FillValue of 'theta' is not 1 number"},
      {read_samples, "text_fill_value", "the attribute _FillValue of 'theta' is not 1 number"},
      {read_samples, "fill_value_is_missing", "theta[1, 1] is nan"},
      {read_samples, "samples_cdf5_damaged", "its checksum does not match"},
      {read_samples, "samples_small_spread", "theta is between 1e-50 (sample 2) and 2e-50 (sample 1)"},
      {read_observations, "history_large_feature", "x[1, 1] is 1e+200 (indices from 0); every value"},
      {read_observations, "history_large_reward", "y[1] is -1e+46 (indices from 0); every value"},
      {read_embedding, "embedding_large_feature", "features[0, 0] is 1e+46"},
      {read_prior, "mixture_transposed", "'mean' are (dim, component); they must be (component, dim)"},
      {read_prior, "mixture_other_names", "'mean' are (k, dim); they must be (component, dim)"},
      {read_prior, "mixture_cdf5_zero_tail", "the last 72 bytes, after its data, are not a checksum"},
      {read_prior, "mixture_cdf5_cut_seal", "the last 42 bytes, after its data, are not a checksum"},
      {read_prior, "mixture_cdf5_appended", "the last 8 bytes, after its data, are not a checksum"},
      {read_embedding, "embedding_no_items", "'theta' has no items"},
      {read_prior, "mixture_far_mean", "mean[1, 0] is 1e+200"},
      {read_prior, "mixture_large_variance", "covariance[1, 0, 0] is 1e+200"},
      {read_prior, "mixture_tiny_variance", "variances must be between"},
      {read_prior, "diffusion_odd_last_stage", "allowed: literal, repaired"},
      {read_prior, "diffusion_missing_loss", "the loss of stage 1 is nan"},
      {read_prior, "diffusion_odd_alpha", "diffusion_odd_alpha: alpha of diffusion stage 1 is 1.5"}};
  const char *source = getenv("THOMPSON_SOURCE");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus_store_classic/%s", source ? source : ".",
             cases[i].name);
    CHECK_FAILS(cases[i].read(path), STATUS_INPUT, cases[i].sentence);
  }
}

/* Checks a covariance of 2^64 elements, never written: its size in bytes is 0 in 64 bits. */
static void test_sizes_overflow(void) {
  enum { COMPONENTS = 1 << 6, D = 1 << 29 };
  StoreFile *file;
  int axes[3];
  CHECK_OK(store_create(scratch, &file));
  CHECK_OK(store_text_attribute(file, NULL, "prior", "mixture"));
  CHECK_OK(store_dimension(file, "component", COMPONENTS, &axes[0]));
  CHECK_OK(store_dimension(file, "dim", D, &axes[1]));
  CHECK_OK(store_dimension(file, "dim2", D, &axes[2]));
  CHECK_OK(store_variable(file, "weight", STORE_BYTE, 1, axes, NULL, NULL));
  CHECK_OK(store_variable(file, "mean", STORE_BYTE, 2, axes, NULL, NULL));
  CHECK_OK(store_variable(file, "covariance", STORE_BYTE, 3, axes, NULL, NULL));
  CHECK_OK(store_finish(file, STATUS_OK));
  CHECK_FAILS(read_prior(scratch), STATUS_INPUT,
              "'mean' has shape (64, 536870912), 34359738368 bytes, but the");
  size_t shape[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
  CHECK_OK(store_open(scratch, &file));
  CHECK_FAILS(store_shape(file, "covariance", 3, shape), STATUS_INPUT, "above 2^64 bytes");
  store_abandon(file);
  remove(scratch);
}

int main(void) {
  CU_TestInfo tests[] = {{"classic files", test_classic},
                         {"contents", test_contents},
                         {"seals", test_seal},
                         {"seeds are accepted", test_seeds},
                         {"classic files that are refused", test_refusals},
                         {"sizes overflow", test_sizes_overflow},
                         CU_TEST_INFO_NULL};
  snprintf(scratch, sizeof scratch, "/tmp/test_store_corpus.%d.nc", (int)getpid());
  return harness_run("store_corpus", tests);
}

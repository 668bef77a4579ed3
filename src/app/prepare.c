/* thompson prepare: turn a public data set into an embedding file (problem/embedding/embedding_file.h). The
 * first rank does it alone, because it takes only seconds. Convergence is reported on stderr, a summary on
 * stdout. */
#include "app/app.h"
#include "io/config/config_rows.h"
#include "io/digest.h"
#include "io/io_dataset.h"
#include "io/ownership.h"
#include "problem/embedding/embedding_classifier.h"
#include "problem/embedding/embedding_factorisation.h"
#include "problem/embedding/embedding_file.h"
#include "problem/embedding/embedding_linear_fit.h"

static struct {
  int set; /* -1: none yet */
  AppTexts inputs, options;
  const char *output;
  uint64_t seed;
} arguments = {.set = -1, .seed = 1};

static const AppOption options[] = {
    {"output", 'o', "FILE", "required: embedding file to write", .output = &arguments.output},
    {"seed", 0, "N", "seed (default: 1)", .seed = &arguments.seed},
    {"option", 0, "KEY=VALUE", "an option of the data set, see below", .texts = &arguments.options},
    {0}};
static const Config *values; /* of --option KEY=VALUE, under the keys of the data set */

/* ---- movielens: turns ratings into user and movie vectors (DiffTS paper, Section 6.3). Movie vectors are
 * the parameters theta and user vectors the features of arms.
 *
 * With --option tasks=users: the situation of a service that recommends movies to new users. The movies'
 * vectors, factorised from the ratings of some users, are the features of arms; each held-out user is a task,
 * whose theta* is the vector that fits this user's ratings of these movies; and the ratings of the other
 * users are the logs that a prior is learned from (`thompson train --logs`). */

static const ConfigKey prepare_movielens_keys[] = {
    {WORD("format", "auto", "format of the ratings; auto: recognised from the first line of each file"),
     .words = RATINGS_FORMATS},
    {WORD("tasks", "movies",
          "what each theta belongs to: movies, with users as arms, as in the paper; or users, with movies as "
          "arms, some users held out and the ratings of the others written as logs for `train --logs`"),
     .words = "movies users"},
    {REAL("test_fraction", 1e-9, 0.999999999, "0.2", "tasks=users: share of users to hold out")},
    {INT("dimension", 1, 1000, "5", "rank d of the factorisation")},
    {REAL("ridge", 1e-9, 1e9, "1", "penalty on the squared length of every vector")},
    {INT("sweeps", 1, 100000, "50", "sweeps of alternating least squares")},
    {.name = NULL}};

typedef struct {
  FactorisationSetup setup;
  Ratings ratings, held_out; /* of the users to learn from, and of the held-out users */
  Factorisation result;
  double baseline; /* root mean squared error of predicting every rating by the mean rating */
  Samples theta;
  int64_t *id; /* [theta.n], in the input files */
} Movielens;

/* Writes logs into an embedding file, in which `dim` is the dimension of theta: task(observation), the user;
 * x(observation, dim), the movie's vector; and y(observation), the rating minus the mean. */
static Status prepare_movielens_write_logs(StoreFile *file, int dim, const Ratings *ratings,
                                           const Factorisation *result) {
  enum { ROWS = 4096 /* written at once */ };
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)result->d, total = (size_t)ratings->count;
  int axis[] = {0, dim};
  int64_t *tasks;
  double *features, *rewards;
  ALLOCATE(&scratch, tasks, ROWS);
  ALLOCATE(&scratch, rewards, ROWS);
  ALLOCATE(&scratch, features, ROWS * d);
  TRY(store_dimension(file, "observation", total, &axis[0]));
  TRY(store_variable(file, "task", STORE_INT64, 1, axis, "user of the input files", NULL));
  TRY(store_variable(file, "x", STORE_DOUBLE, 2, axis, "features of the movie", "1"));
  TRY(store_variable(file, "y", STORE_DOUBLE, 1, axis, "rating minus the mean rating", "1"));
  for (size_t first = 0; first < total; first += ROWS) {
    const size_t n = total - first < ROWS ? total - first : ROWS, start[] = {first, 0}, count[] = {n, d};
    for (size_t r = 0; r < n; r++) {
      const Rating *rating = &ratings->rating[first + r];
      tasks[r] = ratings->user_id[rating->user];
      memcpy(features + r * d, result->item + (size_t)rating->item * d, d * sizeof *features);
      rewards[r] = rating->value - result->mean;
    }
    TRY(store_put_part(file, "task", start, count, tasks));
    TRY(store_put_part(file, "x", start, count, features));
    TRY(store_put_part(file, "y", start, count, rewards));
  }
  return STATUS_OK;
}

static void prepare_movielens_report(int sweep, double rmse) {
  fprintf(stderr, "sweep %d: root mean squared residual %.6f\n", sweep, rmse);
}

static Status prepare_movielens_add_details(StoreFile *file, const Movielens *work, const int *axes) {
  const bool users = work->held_out.users > 0;
  const Factorisation *result = &work->result;
  const Ratings *ratings = &work->ratings;
  char hash[DIGEST_SIZE];
  int sweep;
  Digest digest;
  digest_begin(&digest); /* of the ratings, independently of their file format */
  for (int64_t i = 0; i < ratings->count; i++) {
    const Rating *rating = &ratings->rating[i];
    digest_add(&digest, &ratings->user_id[rating->user], sizeof *ratings->user_id);
    digest_add(&digest, &ratings->item_id[rating->item], sizeof *ratings->item_id);
    digest_add(&digest, &rating->value, sizeof rating->value);
  }
  TRY(digest_end(&digest, hash));
  TRY(store_text_attribute(file, NULL, "ratings_sha256", hash));
  TRY(store_int_attribute(file, "ratings", ratings->count));
  TRY(store_real_attribute(file, "rating_mean", result->mean));
  TRY(store_real_attribute(file, "rmse_of_mean", work->baseline));
  TRY(store_real_attribute(file, "ridge", work->setup.ridge));
  TRY(store_int_attribute(file, "seed", (int64_t)arguments.seed));
  TRY(store_write(file, "item_id", STORE_INT64, 1, &axes[0],
                  users ? "user of the input files" : "movie of the input files", NULL, work->id));
  TRY(store_write(file, "arm_id", STORE_INT64, 1, &axes[1],
                  users ? "movie of the input files" : "user of the input files", NULL,
                  users ? ratings->item_id : ratings->user_id));
  TRY(store_dimension(file, "sweep", (size_t)result->sweeps, &sweep));
  TRY(store_write(file, "rmse", STORE_DOUBLE, 1, &sweep, "root mean squared residual after a sweep", "1",
                  result->rmse));
  return users ? prepare_movielens_write_logs(file, axes[2], ratings, result) : STATUS_OK;
}

/* Computes the samples of theta: the movies' vectors or, with tasks=users, those of the users, first the
 * held-out ones, by a ridge regression of their ratings on the movies' vectors, then the others, by their
 * vectors in the factorisation. */
static Status prepare_movielens_theta(Arena *memory, Movielens *work) {
  SCRATCH_ARENA(scratch);
  const Ratings *ratings = &work->ratings, *held_out = &work->held_out;
  const Factorisation *result = &work->result;
  const bool users = held_out->users > 0;
  const size_t d = (size_t)result->d, first = (size_t)held_out->users,
               count = (size_t)(users ? ratings->users : ratings->items);
  double *rows, *square; /* [theta.n, d], [d, d] */
  Samples *theta = &work->theta;
  *theta = (Samples){.n = (int)(first + count), .d = result->d};
  ALLOCATE(memory, theta->theta, (first + count) * d);
  ALLOCATE(memory, work->id, first + count);
  ALLOCATE(&scratch, rows, (first + count) * d);
  ALLOCATE(&scratch, square, d * d);
  if (users) {
    SparseRows sparse;
    TRY(embedding_factorisation_rows_create(&scratch, held_out, result->mean, false, &sparse));
    embedding_factorisation_update(&sparse, &work->setup, result->item, rows, square);
    memcpy(work->id, held_out->user_id, first * sizeof *work->id);
  }
  memcpy(rows + first * d, users ? result->user : result->item, count * d * sizeof *rows);
  memcpy(work->id + first, users ? ratings->user_id : ratings->item_id, count * sizeof *work->id);
  io_dataset_transpose(theta->n, theta->d, rows, theta->theta);
  return STATUS_OK;
}

static Status prepare_movielens(void) {
  SCRATCH_ARENA(memory);
  SCRATCH_ARENA(whole); /* of all ratings, if they are split */
  Ratings all;
  Movielens work = {.setup = {.d = (int)config_int(values, "dimension"),
                              .ridge = config_real(values, "ridge"),
                              .sweeps = (int)config_int(values, "sweeps"),
                              .seed = arguments.seed}};
  const bool users = config_is(values, "tasks", "users");
  const Factorisation *result = &work.result;
  int axes[3];
  StoreFile *file;
  TRY(ratings_read(users ? &whole : &memory, arguments.inputs.count, arguments.inputs.texts,
                   config_text(values, "format"), users ? &all : &work.ratings));
  if (users)
    TRY(ratings_split(&memory, &all, config_real(values, "test_fraction"), arguments.seed, &work.ratings,
                      &work.held_out));
  arena_free(&whole);
  TRY(embedding_factorise(&memory, &work.ratings, &work.setup, prepare_movielens_report, &work.result));
  for (int64_t i = 0; i < work.ratings.count; i++) {
    const double residual = work.ratings.rating[i].value - result->mean;
    work.baseline += residual * residual;
  }
  work.baseline = sqrt(work.baseline / (double)work.ratings.count);
  TRY(prepare_movielens_theta(&memory, &work));
  const Embedding embedding = {.d = result->d,
                               .theta = work.theta,
                               .held_out = work.held_out.users,
                               .arms = users ? work.ratings.items : work.ratings.users,
                               .features = users ? result->item : result->user,
                               .noise = result->rmse[result->sweeps - 1]};
  TRY(embedding_create(arguments.output, "embedding of ratings by alternating least squares", &embedding,
                       axes, &file));
  TRY(store_finish(file, prepare_movielens_add_details(file, &work, axes)));
  printf("%s: %lld ratings of %d movies by %d users, mean %.6f\n", arguments.output,
         (long long)work.ratings.count, work.ratings.items, work.ratings.users, result->mean);
  printf("  root mean squared error: mean rating alone %.4f, factorisation of rank %d %.4f (%d sweeps, ridge "
         "%g)\n",
         work.baseline, result->d, embedding.noise, result->sweeps, work.setup.ridge);
  printf("  noise, from the residuals: %.4f\n", embedding.noise);
  if (users)
    printf("  %d more users are held out, with %lld ratings of these movies\n", work.held_out.users,
           (long long)work.held_out.count);
  return STATUS_OK;
}

/* ---- mnist: turns images of digits into embeddings and linear models (DiffTS paper, Appendix C.2). The
 * linear models are the parameters theta; the embeddings of all digits, training set first, are the features
 * of arms.
 *
 * The paper does not give the length of the embeddings; the classifier's have a length of about 25. With
 * scale=unit they are all multiplied by one number that makes their mean squared length 1. The rewards
 * x'theta do not change, but an agent that assumes theta ~ N(0, I) (ts) then expects rewards of variance 1,
 * like the labels -1 and 1; with scale=none it expects rewards of about 25, which is both wrong and
 * arbitrary. Learned priors are not affected. */

static const double NOISE = 1; /* of the rewards, as in the paper */

static const ConfigKey prepare_mnist_keys[] = {
    {INT("epochs", 1, 100000, "10", "number of times the classifier sees the training digits")},
    {INT("samples", 1, 10000000, "10000", "number of linear models theta to fit")},
    {REAL("ridge", 1e-9, 1e9, "0.1",
          "penalty on |theta|^2, in units of the mean squared length of the embeddings; a linear model is "
          "fitted to 20 points")},
    {WORD("scale", "unit",
          "unit: embeddings scaled to a mean squared length of 1; none: as the classifier gives them"),
     .words = "unit none"},
    {.name = NULL}};

/* All data from the images to the file. Rows are the digits of the training set, then the digits of the test
 * set. */
typedef struct {
  Arena *memory;
  Digits training, test;
  Classifier classifier;
  double accuracy; /* on the test set */
  unsigned char *label; /* [rows] */
  double scale; /* what the embeddings were multiplied by */
  signed char *positive; /* [models], the label of reward 1 */
  Embedding embedding; /* theta[d, models], features[rows, d] */
} Mnist;

static void prepare_mnist_report(int start, int epoch, double loss) {
  fprintf(stderr, "start %d, epoch %d: mean cross entropy %.5f\n", start, epoch, loss);
}

/* Takes the labels of all digits. STATUS_INPUT if there are too few of a label for linear models. */
static Status prepare_mnist_take_labels(Mnist *mnist) {
  const size_t first = (size_t)mnist->training.count, rows = first + (size_t)mnist->test.count;
  ALLOCATE(mnist->memory, mnist->label, rows);
  memcpy(mnist->label, mnist->training.label, first);
  memcpy(mnist->label + first, mnist->test.label, rows - first);
  const LabelledRows labelled = {.rows = (int)rows, .labels = IDX_LABELS, .label = mnist->label};
  return embedding_linear_fit_check(&labelled);
}

/* Embeds all digits, and fits linear models to the embeddings. */
static Status prepare_mnist_embed(Mnist *mnist) {
  size_t first = (size_t)mnist->training.count, rows = first + (size_t)mnist->test.count,
         d = CLASSIFIER_EMBEDDING;
  Embedding *embedding = &mnist->embedding;
  Samples *theta = &embedding->theta;
  embedding->arms = (int)rows;
  embedding->d = theta->d = (int)d;
  embedding->noise = NOISE;
  theta->n = (int)config_int(values, "samples");
  ALLOCATE(mnist->memory, embedding->features, rows * d);
  ALLOCATE(mnist->memory, theta->theta, d * (size_t)theta->n);
  ALLOCATE(mnist->memory, mnist->positive, theta->n);
  TRY(embedding_classifier_embed(&mnist->classifier, &mnist->training, embedding->features));
  TRY(embedding_classifier_embed(&mnist->classifier, &mnist->test, embedding->features + first * d));
  const LabelledRows all = {
      .rows = (int)rows, .d = (int)d, .labels = IDX_LABELS, .x = embedding->features, .label = mnist->label};
  double square = embedding_linear_fit_mean_square(&all);
  mnist->scale = config_is(values, "scale", "unit") && square > 0 ? 1 / sqrt(square) : 1;
  for (size_t i = 0; i < rows * d; i++) embedding->features[i] *= mnist->scale;
  return embedding_linear_fit_sample(&all, config_real(values, "ridge"), arguments.seed, theta->n,
                                     theta->theta, mnist->positive);
}

static Status prepare_mnist_add_details(StoreFile *file, const Mnist *mnist, int item, int arm) {
  const Digits *const parts[] = {&mnist->training, &mnist->test};
  char hash[DIGEST_SIZE];
  Digest digest;
  digest_begin(&digest);
  for (int s = 0; s < 2; s++) {
    digest_add(&digest, parts[s]->pixels, (size_t)parts[s]->count * (size_t)parts[s]->inputs);
    digest_add(&digest, parts[s]->label, (size_t)parts[s]->count);
  }
  TRY(digest_end(&digest, hash));
  TRY(store_text_attribute(file, NULL, "digits_sha256", hash));
  TRY(store_int_attribute(file, "training_digits", mnist->training.count));
  TRY(store_int_attribute(file, "test_digits", mnist->test.count));
  TRY(store_real_attribute(file, "test_accuracy", mnist->accuracy));
  TRY(store_int_attribute(file, "epochs", config_int(values, "epochs")));
  TRY(store_int_attribute(file, "units_alive", mnist->classifier.alive));
  TRY(store_real_attribute(file, "scale", mnist->scale));
  TRY(store_real_attribute(file, "ridge", config_real(values, "ridge")));
  TRY(store_int_attribute(file, "seed", (int64_t)arguments.seed));
  TRY(store_write(file, "positive_label", STORE_BYTE, 1, &item, "label of reward 1 of a linear model", NULL,
                  mnist->positive));
  return store_write(file, "label", STORE_BYTE, 1, &arm, "label of a digit; training digits come first", NULL,
                     mnist->label);
}

static Status prepare_mnist(void) {
  SCRATCH_ARENA(memory);
  Mnist mnist = {.memory = &memory};
  const int epochs = (int)config_int(values, "epochs");
  StoreFile *file;
  int axes[3];
  TRY(embedding_idx_read_digits(&memory, arguments.inputs.count, arguments.inputs.texts, &mnist.training,
                                &mnist.test));
  TRY(prepare_mnist_take_labels(&mnist));
  TRY(embedding_classifier_train(&memory, &mnist.training, epochs, arguments.seed, prepare_mnist_report,
                                 &mnist.classifier));
  TRY(embedding_classifier_accuracy(&mnist.classifier, &mnist.test, &mnist.accuracy));
  TRY(prepare_mnist_embed(&mnist));
  TRY(embedding_create(arguments.output, "embedding of digits and linear models of their labels",
                       &mnist.embedding, axes, &file));
  TRY(store_finish(file, prepare_mnist_add_details(file, &mnist, axes[0], axes[1])));
  printf("%s: %d training and %d test digits, %d linear models\n", arguments.output, mnist.training.count,
         mnist.test.count, mnist.embedding.theta.n);
  printf("  test accuracy of the classifier %.4f (%d epochs); %d of %d embedding units alive (start %d)\n",
         mnist.accuracy, epochs, mnist.classifier.alive, CLASSIFIER_EMBEDDING, mnist.classifier.starts);
  printf("  embeddings multiplied by %.6g; noise of the rewards %g\n", mnist.scale, NOISE);
  return STATUS_OK;
}

/* ---- the verb */

static const struct {
  const char *name, *inputs;
  const ConfigKey *keys;
  Status (*prepare)(void);
  OwnershipKind kind; /* of the output */
} sets[] = {
    {"movielens",
     "files of ratings",
     prepare_movielens_keys,
     prepare_movielens,
     {"an embedding of ratings", .has = "ratings_sha256"}},
    {"mnist",
     "the four IDX files, in any order",
     prepare_mnist_keys,
     prepare_mnist,
     {"an embedding of digits", .has = "digits_sha256"}},
};
enum { SETS = sizeof sets / sizeof *sets };

/* Takes the name of the data set, then the inputs. */
static void prepare_take(struct argp_state *state, const char *text) {
  if (arguments.set >= 0) {
    app_texts_add(state, &arguments.inputs, text);
    return;
  }
  for (int s = 0; s < SETS; s++)
    if (strcmp(text, sets[s].name) == 0) arguments.set = s;
  if (arguments.set < 0) argp_error(state, "unknown data set '%s'; allowed: movielens, mnist", text);
}

static void prepare_check(struct argp_state *state) {
  if (arguments.set < 0) argp_error(state, "no data set given; allowed: movielens, mnist");
  if (arguments.inputs.count == 0)
    argp_error(state, "%s: no input given; needed: %s", sets[arguments.set].name, sets[arguments.set].inputs);
  if (!arguments.output) argp_error(state, "-o FILE is required");
}

/* Adds the options of each set, from their tables, at the end of the help (help_filter of argp). */
static char *help_with_options(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_EXTRA) return (char *)(uintptr_t)text;
  char *extra = NULL;
  size_t size;
  FILE *out = open_memstream(&extra, &size);
  if (!out) return NULL;
  for (int s = 0; s < SETS; s++) {
    fprintf(out, "%sOptions of %s (%s):\n\n", s ? "\n" : "", sets[s].name, sets[s].inputs);
    config_describe(out, sets[s].keys);
  }
  fclose(out);
  return extra;
}

static Status prepare_data_set(void) {
  SCRATCH_ARENA(scratch);
  Config *config;
  TRY(io_ownership_check_output(arguments.output, &sets[arguments.set].kind));
  TRY(config_options(&scratch, "--option", sets[arguments.set].keys, arguments.options.count,
                     arguments.options.texts, &config));
  values = config;
  return sets[arguments.set].prepare();
}

const AppVerb app_prepare = {
    .options = options,
    .take = prepare_take,
    .check = prepare_check,
    .usage = "movielens|mnist INPUT...",
    .help =
        "Learn embeddings from a public data set, for problem.family = embedding. data/README.md says how "
        "to get the data.",
    .help_filter = help_with_options,
    .on_first = prepare_data_set};

/* thompson prepare mnist: turns images of digits into embeddings and linear models (DiffTS paper, Appendix
 * C.2). The linear models are the parameters theta; the embeddings of all digits, training set first, are the
 * features of arms.
 *
 * The paper does not give the length of the embeddings; the classifier's have a length of about 25. With
 * scale=unit they are all multiplied by one number that makes their mean squared length 1. The rewards
 * x'theta do not change, but an agent that assumes theta ~ N(0, I) (ts) then expects rewards of variance 1,
 * like the labels -1 and 1; with scale=none it expects rewards of about 25, which is both wrong and
 * arbitrary. Learned priors are not affected. */
#include "app/app.h"
#include "app/prepare.h"
#include "core/arena.h"
#include "io/config/config_rows.h"
#include "io/digest.h"
#include "problem/embedding/embedding_classifier.h"
#include "problem/embedding/embedding_file.h"
#include "problem/embedding/embedding_linear_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double NOISE = 1; /* of the rewards, as in the paper */

const ConfigKey prepare_mnist_keys[] = {
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
  Arena memory; /* for everything after the classifier */
  Digits training, test;
  Classifier classifier;
  double accuracy; /* on the test set */
  unsigned char *label; /* [rows] */
  double scale; /* what the embeddings were multiplied by */
  signed char *positive; /* [models], the label of reward 1 */
  Embedding embedding; /* theta[d, models], features[rows, d] */
} Mnist;

static void prepare_mnist_destroy(Mnist *mnist) {
  embedding_digits_free(&mnist->training);
  embedding_digits_free(&mnist->test);
  embedding_classifier_destroy(&mnist->classifier);
  arena_free(&mnist->memory);
}

static void prepare_mnist_report(int start, int epoch, double loss) {
  fprintf(stderr, "start %d, epoch %d: mean cross entropy %.5f\n", start, epoch, loss);
}

/* Embeds all digits, and fits linear models to the embeddings. */
static Status prepare_mnist_embed(const PrepareJob *job, Mnist *mnist) {
  size_t first = (size_t)mnist->training.count, rows = first + (size_t)mnist->test.count,
         d = CLASSIFIER_EMBEDDING;
  Embedding *embedding = &mnist->embedding;
  Samples *theta = &embedding->theta;
  embedding->arms = (int)rows;
  embedding->d = theta->d = (int)d;
  embedding->noise = NOISE;
  theta->n = (int)config_int(job->options, "samples");
  ALLOCATE(&mnist->memory, embedding->features, rows * d);
  ALLOCATE(&mnist->memory, mnist->label, rows);
  ALLOCATE(&mnist->memory, theta->theta, d * (size_t)theta->n);
  ALLOCATE(&mnist->memory, mnist->positive, theta->n);
  TRY(embedding_classifier_embed(&mnist->classifier, &mnist->training, embedding->features));
  TRY(embedding_classifier_embed(&mnist->classifier, &mnist->test, embedding->features + first * d));
  memcpy(mnist->label, mnist->training.label, first);
  memcpy(mnist->label + first, mnist->test.label, rows - first);
  const LabelledRows all = {(int)rows, (int)d, IDX_LABELS, embedding->features, mnist->label};
  double square = embedding_linear_fit_mean_square(&all);
  mnist->scale = config_is(job->options, "scale", "unit") && square > 0 ? 1 / sqrt(square) : 1;
  for (size_t i = 0; i < rows * d; i++) embedding->features[i] *= mnist->scale;
  return embedding_linear_fit_sample(&all, config_real(job->options, "ridge"), job->seed, theta->n,
                                     theta->theta, mnist->positive);
}

static Status prepare_mnist_add_details(StoreFile *file, const PrepareJob *job, const Mnist *mnist, int item,
                                        int arm) {
  const Digits *const sets[] = {&mnist->training, &mnist->test};
  char hash[DIGEST_SIZE];
  Digest digest;
  digest_begin(&digest);
  for (int s = 0; s < 2; s++) {
    digest_add(&digest, sets[s]->pixels, (size_t)sets[s]->count * (size_t)sets[s]->inputs);
    digest_add(&digest, sets[s]->label, (size_t)sets[s]->count);
  }
  TRY(digest_end(&digest, hash));
  TRY(store_text_attribute(file, NULL, "digits_sha256", hash));
  TRY(store_int_attribute(file, "training_digits", mnist->training.count));
  TRY(store_int_attribute(file, "test_digits", mnist->test.count));
  TRY(store_real_attribute(file, "test_accuracy", mnist->accuracy));
  TRY(store_int_attribute(file, "epochs", config_int(job->options, "epochs")));
  TRY(store_int_attribute(file, "units_alive", mnist->classifier.alive));
  TRY(store_real_attribute(file, "scale", mnist->scale));
  TRY(store_real_attribute(file, "ridge", config_real(job->options, "ridge")));
  TRY(store_int_attribute(file, "seed", (int64_t)job->seed));
  TRY(store_write(file, "positive_label", STORE_BYTE, 1, &item, "label of reward 1 of a linear model", NULL,
                  mnist->positive));
  return store_write(file, "label", STORE_BYTE, 1, &arm, "label of a digit; training digits come first", NULL,
                     mnist->label);
}

Status prepare_mnist(const PrepareJob *job) {
  SCOPED(Mnist, mnist, prepare_mnist_destroy);
  const int epochs = (int)config_int(job->options, "epochs");
  StoreFile *file;
  int axes[3];
  TRY(embedding_idx_read_digits(job->input_count, job->inputs, &mnist.training, &mnist.test));
  TRY(embedding_classifier_train(&mnist.training, epochs, job->seed, prepare_mnist_report,
                                 &mnist.classifier));
  TRY(embedding_classifier_accuracy(&mnist.classifier, &mnist.test, &mnist.accuracy));
  TRY(prepare_mnist_embed(job, &mnist));
  TRY(embedding_create(job->output, "embedding of digits and linear models of their labels", &mnist.embedding,
                       axes, &file));
  TRY(store_finish(file, prepare_mnist_add_details(file, job, &mnist, axes[0], axes[1])));
  printf("%s: %d training and %d test digits, %d linear models\n", job->output, mnist.training.count,
         mnist.test.count, mnist.embedding.theta.n);
  printf("  test accuracy of the classifier %.4f (%d epochs); %d of %d embedding units alive (start %d)\n",
         mnist.accuracy, epochs, mnist.classifier.alive, CLASSIFIER_EMBEDDING, mnist.classifier.starts);
  printf("  embeddings multiplied by %.6g; noise of the rewards %g\n", mnist.scale, NOISE);
  return STATUS_OK;
}

/* Rules that give each arm a number and take the largest: a draw of its reward (Thompson 1933), its mean
 * (greedy), or an upper quantile of its reward under the posterior (Bayes-UCB: Kaufmann, Cappe and Garivier
 * 2012). The quantile is that of a Gaussian with the posterior's mean and covariance, E[r_a] + z_t sd[r_a],
 * with
 *
 *     z_t = Phi^-1(1 - 1 / (2 (1 + alpha (n - t)))),   t = 0 .. n - 1 choices made, of n,
 *
 * which explores less towards the end, when a reward has few rounds left in which to be of use. If rewards
 * are not linear in phi' theta the index is that of phi' theta, which orders the arms just as the quantiles
 * of their mean reward do. */
#include "core/special.h"
#include "io/config/config_rows.h"
#include "rule/rule.h"
#include "rule/rule_index.h"

static Status bayes_ucb_create(Rule *self) {
  if (self->horizon > 0 || !config_is(self->sampler.setup.options, "quantile", "auto")) return STATUS_OK;
  return status_set(STATUS_INPUT, "rule bayes_ucb needs to know how many choices there will be: set its "
                                  "option horizon or a constant quantile");
}

static void bayes_ucb_choose(const Rule *self, int runs, int choices, int arms, const double *features,
                             int *arm, double *top) {
  const Config *options = self->sampler.setup.options;
  const double left = choices < self->horizon ? self->horizon - choices : 0;
  double z; /* z_t */
  if (config_is(options, "quantile", "auto")) {
    z = special_upper_quantile(0.5 / (1 + config_real(options, "bayes_ucb_alpha") * left));
  } else {
    const double quantile = config_real(options, "quantile");
    z = quantile >= 0.5 ? special_upper_quantile(1 - quantile) : -special_upper_quantile(quantile);
  }
  rule_index(arms, self->sampler.d, runs, features, self->mean, self->covariance, z, arm, top);
}

static double bayes_ucb_cost(double d, double arms) { return arms * (12 + 2 * d + d * d); }

/* Takes the arm with the largest phi' theta, for the draw if there is one and else for the posterior mean. */
static void rule_linear_choose(const Rule *self, int runs, int choices, int arms, const double *features,
                               int *arm, double *top) {
  (void)choices;
  const double *theta = self->ops->needs & RULE_NEEDS_DRAW ? self->theta : self->mean;
  rule_index(arms, self->sampler.d, runs, features, theta, NULL, 0, arm, top);
}

static double rule_linear_index_cost(double d, double arms) { return 2 * arms * d; }

const RuleOps rule_thompson = {.name = "thompson",
                               .summary = "the arm that is best under one draw of theta",
                               .reference = "Thompson 1933",
                               .needs = RULE_NEEDS_DRAW,
                               .choose = rule_linear_choose,
                               .cost = rule_linear_index_cost};

static const ConfigKey bayes_ucb_keys[] = {
    {REAL("bayes_ucb_alpha", 0, 1e6, "0.1",
          "for rule bayes_ucb: larger values explore more; with k rounds left the quantile is 1 - 1 / (2 (1 "
          "+ alpha k))")},
    {REAL("quantile", 1e-12, 1 - 1e-12, "auto",
          "for rule bayes_ucb: constant quantile; auto: from bayes_ucb_alpha and the rounds left"),
     .words = "auto"},
    {INT("horizon", 1, 1000000000, "study",
         "for rule bayes_ucb: total number of choices; study: its rounds; outside a study, set this or a "
         "quantile"),
     .words = "study"},
    {.name = NULL}};

const RuleOps rule_bayes_ucb = {
    .name = "bayes_ucb",
    .summary =
        "the arm with the highest upper quantile of its mean reward, closer to the median towards the end",
    .reference = "Kaufmann, Cappe and Garivier 2012",
    .needs = RULE_NEEDS_MOMENTS,
    .keys = bayes_ucb_keys,
    .create = bayes_ucb_create,
    .choose = bayes_ucb_choose,
    .cost = bayes_ucb_cost};

const RuleOps rule_greedy = {.name = "greedy",
                             .summary = "the arm that is best under the posterior mean: never explores",
                             .reference = "Bastani, Bayati and Khosravi 2021",
                             .needs = RULE_NEEDS_MOMENTS,
                             .choose = rule_linear_choose,
                             .cost = rule_linear_index_cost};

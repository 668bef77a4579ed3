#include "study/keys.h"

#include "io/config/config_rows.h"
#include "problem/operator.h"
#include "problem/problems.h"
#include "study/study.h"

static const double TINY = 1e-12, HUGE_INT = 2147483647.0, MOST_RUNS = 4294967295.0;

const ConfigKey study_keys[] = {
    {TEXT("name", NULL, "name of the study; results go to results/NAME"), .fixed = true},
    {TEXT("title", "null", "one sentence on what the study asks"), .fixed = true},
    {TEXT(
         "figure", "null",
         "script in analysis/figures/ (or FOLDER/SCRIPT in analysis/), with options, that draws the results; "
         "null: the default for this kind of study"),
     .fixed = true},
    {WORD("study", "bandit", "what is looped over, measured and stored"), .word = study_kind_name,
     .fixed = true},
    {INT("seed", 0, 9007199254740992.0, "1", "seed of all random streams"), .fixed = true},
    {INT("runs", 1, MOST_RUNS, "512",
         "independent simulations for each setting and policy; with a mapping, runs are added until "
         "runs.target_se is reached; auto: the number of cases (problem.family: cases)"),
     .words = "auto", .fixed = true, .parts = true},
    {INT("runs.min", 2, MOST_RUNS, "64", "runs of every setting before the first standard error is computed"),
     .fixed = true},
    {INT("runs.max", 2, MOST_RUNS, "4096", "maximum number of runs of a setting"), .fixed = true},
    {REAL("runs.target_se", TINY, 1e12, NULL,
          "blocks are added to a setting until the standard error is at most this for every policy, at the "
          "last point of the curve"),
     .fixed = true},
    {WORD("runs.of", "regret_diff",
          "curve whose standard error is compared with runs.target_se; with _diff, its paired difference to "
          "the first policy"),
     .word = study_target_name, .fixed = true},
    {INT("block", 1, 4096, "64", "runs that advance together: the unit of work and of rounding"),
     .fixed = true},
    DESIGN_ROWS,

    {WORD("problem.family", "synthetic", "the world; the convergence study has a Gaussian target instead"),
     .word = problem_name},
    {WORD("problem.theta", "cross", "distribution of theta*"), .word = problem_theta_name},
    {TEXT("problem.file", "null",
          "samples of theta (theta: file), a prior file (theta: mixture), an embedding file, a table of "
          "rewards (family: table) or cases (family: cases)")},
    {INT("problem.arms", 1, 1000000, "auto",
         "number of arms K; auto: 50 in a pool, 10 with a twin, 5 on the wheel, 5 in phase retrieval, 15 in "
         "tomography, d with features: basis, the rows of "
         "problem.operator unless it is spectrum, else 100, but no more than an embedding file has; all: "
         "those of an embedding file, in its order"),
     .words = "auto all"},
    {INT("problem.rounds", 1, 10000000, "200", "number of rounds n")},
    {WORD("problem.drift.kind", "none",
          "bandit study: how the world changes; switch: a new theta* from problem.theta every "
          "problem.drift.every rounds, with regret against the best arm of the current one"),
     .words = "none switch"},
    {INT("problem.drift.every", 0, 10000000, "0", "rounds after which theta* is drawn again")},
    {INT("problem.dimension", 1, 10000, "auto",
         "dimension d of theta; auto: that of problem.theta or of the file; 20 in a pool, 10 with a twin, 3 "
         "on the wheel, "
         "5 in the convergence study"),
     .words = "auto"},
    {WORD("problem.features", "ball",
          "distribution of the arms' features; basis: the d unit vectors, one for each arm"),
     .words = SYNTHETIC_FEATURES},
    {REAL("problem.condition_number", 1, 1e12, "1",
          "kappa of the second moment of the synthetic problem's features, of the inverse problem's matrix "
          "(operator spectrum), or of the convergence study's target; 1: the same in all directions")},
    {WORD("problem.operator", "spectrum",
          "inverse problem: its matrix A; spectrum: given singular values (problem.snr, "
          "problem.condition_number); mask: some coordinates (problem.observed); blur: square pictures, "
          "row by row, blurred by a circular Gaussian (problem.blur_width); file: your matrix "
          "(problem.operator_file)"),
     .word = operator_name},
    {REAL("problem.snr", TINY, 1e12, "1",
          "operator spectrum: the smallest singular value of the matrix over sigma")},
    {WORD("problem.singular_vectors", "random",
          "operator spectrum: the right singular vectors of the matrix; random: uniformly distributed; "
          "principal: the principal axes of theta*, the one of most variance with the smallest singular "
          "value"),
     .words = "random principal"},
    {REAL_OR_INTS("problem.observed", TINY, 1, "0.5",
                  "operator mask: the share of the coordinates that are observed, others in each run; or a "
                  "list of coordinates, counted from 0")},
    {REAL("problem.blur_width", 1e-3, 1e3, "1", "operator blur: standard deviation of the Gaussian"),
     .unit = "pixels"},
    {TEXT("problem.operator_file", "null", "operator file: NetCDF a(observation, dim)")},
    {BOOL("problem.resample_arms", "false",
          "new arms each round, as always in a pool; false: one set for each run")},
    {REAL(
         "problem.noise", TINY, 1e6, "auto",
         "reward standard deviation sigma; auto: 1, or what an embedding file says, or 0.05 on the wheel, "
         "or 25 in phase retrieval; in a pool it multiplies the one that gives a signal-to-noise ratio of 1"),
     .words = "auto"},
    {REAL("problem.delta", 0, 1, "0.95",
          "wheel: contexts farther than this from the centre have an arm that earns 50")},
    {REAL("problem.zeta", 0, 1e6, "1", "noise on the members of a pool, which are N(0, I)")},
    {WORD("problem.reward", "linear", "what a reward in a pool depends on: phi' theta or its square"),
     .words = POOL_REWARDS},
    {WORD("problem.unknown", "shared",
          "one theta* for all arms; or per_arm: a theta* for each arm, and one context per round, the same "
          "for all arms"),
     .words = "shared per_arm"},
    {INTS("problem.sample_sizes", 1, 10000000, "[1, 10, 50, 200, 1000]",
          "posterior study: numbers of observations at which draws are compared, in increasing order; "
          "arms: only one number, that of the arms"),
     .words = "arms"},
    {INT("feedback.batch", 1, 10000000, "1",
         "bandit study: rounds whose rewards arrive together, at the end of the last of them")},
    {INT("feedback.delay", 0, 1000000, "0",
         "bandit study: rounds by which a reward is late; the mean, if delays are geometric")},
    {WORD("feedback.delay_distribution", "constant",
          "constant: every reward is that late; geometric: a waiting reward arrives in each round with the "
          "same probability, at most one per round in a run"),
     .words = "constant geometric"},
    {REAL("feedback.drop", 0, 1, "0", "bandit study: probability that a reward never arrives")},
    {BOOL("event_log", "false",
          "bandit study: write what each policy saw, played and received, with the probability of the arm, "
          "to DIR/events/SETTING-POLICY.nc; arms are then picked with these probabilities"),
     .fixed = true},
    {WORD("likelihood", "gaussian", "how a reward depends on phi' theta"), .word = likelihood_name},
    {INT("draws", 2, 20000, "500",
         "posterior study: draws of each sampler for each history; optimal_arm_entropy: posterior draws in "
         "each round; prior_p_value: simulated histories"),
     .fixed = true},
    {INT("reference_draws", 2, 20000, "draws",
         "posterior study: exact posterior draws to compare with; draws: the same number"),
     .words = "draws", .fixed = true},
    {INTS("rounds_kept", 1, 10000000, "auto",
          "bandit study: the rounds whose values are stored, in increasing order; all statistics are over "
          "runs at these rounds; auto: all rounds of up to 200, otherwise 50 of them, evenly spaced in the "
          "logarithm, with the first and the last"),
     .words = "auto all", .fixed = true},
    {WORDS(
         "metrics", "[emd]",
         "what is measured: of each round in a bandit study, besides regret, and of the draws in a posterior "
         "study, where the ranks work with any prior and reward, and all others need the exact posterior"),
     .word = study_metric_name, .meaning = study_metric_meaning},
    {INT("projections", 1, 100000, "100",
         "posterior study: random directions of the sliced distances (sliced_wasserstein)"),
     .fixed = true},

    {INT("linear_algebra.distributed_from", 1, 10000, "auto",
         "inverse problem in the posterior study: dimension from which its matrices are spread over "
         "ranks (ScaLAPACK), which changes no result by more than rounding; auto: 8192, below which one rank "
         "is faster (LAPACK)"),
     .words = "auto"},
    {INT("ranks_per_setting", 1, 1000000, "auto",
         "ranks that share the matrices of a setting from linear_algebra.distributed_from on; groups of so "
         "many work side by side, while the others run ordinary tasks; auto: as few as have memory for the "
         "largest such setting, or more if there is nothing else to run"),
     .words = "auto", .fixed = true},

    {WORDS("estimators", "[ips, snips, dr]",
           "replay study: estimators of a policy's value; ips, snips and dr evaluate a policy that learns on "
           "one part of the events and is then frozen, replay one that learns as it goes"),
     .word = study_estimator_name, .meaning = study_estimator_meaning},
    {REAL("train_fraction", 0, 0.999, "0.5",
          "replay study: random share of the events that a policy learns on before it is frozen")},

    {INT("stream.tasks", 1, 1000000, "300", "stream study: bandits of a stream, one after the other")},
    {WORD("stream.learn", "mixture",
          "stream study: what is learned about theta along the way, from all bandits so far, by policies "
          "whose prior would otherwise be fitted; pooled: one theta for all bandits, by ridge regression; "
          "none: they keep their initial prior"),
     .words = "mixture gaussian pooled none"},
    {WORD("stream.start", "standard",
          "stream study: the prior of these policies before the first bandit, which stays mixed with what is "
          "learned: standard, N(0, I), or wide, N(0, 4 I)"),
     .words = "standard wide"},
    {INT("stream.every", 1, 1000000, "1", "stream study: bandits after which the prior is learned again")},
    {INT("stream.switch_at", 0, 1000000, "0",
         "stream study: bandits before theta* is drawn from stream.switch_to; 0: it never is")},
    {WORD("stream.switch_to", "gm_rays", "stream study: distribution of theta* after the switch"),
     .word = problem_theta_name},

    {REAL("target_kl", TINY, 1e6, "0.1",
          "convergence study: a method has reached the target when its KL divergence is at most this")},
    {INT("max_steps", 1, 100000000, "50000", "convergence study: steps of each method"), .fixed = true},

    {WORD("prior.family", "samples",
          "prior of informed policies; samples: each policy's own kind, fitted to samples of problem.theta; "
          "a kind: that one for all; auto: the family and sampler that do best on held-out tasks, for the "
          "policy auto; ising: uniform on the corners of {-1, 1}^d; oracle: a denoiser in Python"),
     .words = "samples ising file auto oracle", .word = prior_closed_name},
    {TEXT("prior.module", "null",
          "prior.family = oracle: Python module, found in the current folder or through PYTHONPATH")},
    {TEXT("prior.callable", "null",
          "prior.family = oracle: its function (x[m, d], sigma) -> E[x0 | x0 + sigma z = x][m, d], with "
          ".jvp(x, sigma, v[m, d]) if it has one; docs/oracles.md")},
    {INT("prior.dimension", 1, 10000, "auto", "prior.family = oracle: d; auto: that of the problem"),
     .words = "auto"},
    {REAL("prior.sigma_min", TINY, 1e12, "none",
          "prior.family = oracle: the smallest noise that it is asked about, at the end of the chain"),
     .words = "none"},
    {REAL("prior.sigma_max", TINY, 1e12, "none",
          "prior.family = oracle: the largest, many times the standard deviation of theta"),
     .words = "none"},
    {INT("prior.batch", 2, 1000000, "4096", "prior.family = oracle: most rows of a call")},
    {REAL("prior.call_limit", 1e-3, 1e9, "600",
          "prior.family = oracle: seconds after which a call that has not returned makes its task fail")},
    {TEXT("prior.file", "null", "prior file for prior.family = file; used as it is")},
    {INT("prior.train_samples", 1, HUGE_INT, "10000",
         "samples of theta that priors are fitted to; all: every one there is (10000 if unlimited)"),
     .words = "all"},
    {REAL("prior.test_fraction", 0, 1, "0.2",
          "share of a finite set of theta that is kept for theta*, split again for each replicate; ignored "
          "if the file says which are held out")},
    {WORD("prior.learned_from", "theta",
          "what fitted priors are learned from: theta, the samples above; logs, past tasks with random arms, "
          "whose theta is never seen; or rivals of logs that use an estimate for each task as a sample of "
          "theta: estimates, the posterior mean under N(0, I) (ridge); posterior_means, that under the "
          "Gaussian that fits the logs best"),
     .words = "theta logs estimates posterior_means"},
    {INT("prior.past_tasks", 1, HUGE_INT, "1000",
         "past tasks in the logs, or fewer if a finite set of theta has fewer to learn from; train_samples "
         "is then ignored")},
    {INT("prior.past_observations", 1, 1000000, "20", "observations of each past task")},
    {INT("prior.replicates", 1, 100000, "1",
         "how many times priors are learned, each for a contiguous part of the runs"),
     .fixed = true},
    {REAL("prior.guard", 0, 0.999999, "0",
          "weight g of a wide Gaussian mixed with every learned prior, which may be wrong; the data decide. "
          "auto: 0.3, with draws from it shrunk to 0.4 (prior.guard_shrink is then ignored)"),
     .words = "auto"},
    {INT("prior.guard_tasks", 0, 10000, "0",
         "later tasks of past_observations each, whose theta is never seen either, from which the weight is "
         "learned; prior.guard is its expected value before the first")},
    {REAL("prior.guard_shrink", 0, 1, "1",
          "multiplies the standard deviation of posterior draws from the guard; below 1 they explore less")},
#define FIT_KEY(name) "prior." name
#include "model/prior/fit_keys.def"
#undef FIT_KEY
    {.name = NULL}};

const ConfigSchema study_schema = {
    .keys = study_keys, .policy_name = policy_name, .policy_keys = policy_keys};

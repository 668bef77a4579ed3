/* How fast a policy of a bandit study is on one core: its draws by themselves, and whole rounds, beside the
 * peaks of the core at the same time. */
#pragma once

#include "app/meter.h"
#include "study/study.h"

typedef struct {
  int d, arms, rounds, runs; /* K, n, B */
  int stages; /* T; 0: no reverse chain is asked for */
  int hidden_count, hidden[6]; /* of its networks, when they are learned */
  /* One draw for one run after `observations` of them: the mean cost of taking in an observation, where the
   * sampler does that apart, and of the draw. NAN where the policy does not sample. */
  int observations;
  double draw_seconds;
  double draw_flops; /* products of networks; NAN: it asks for none */
  double draw_of_peak; /* flops over those at the float peak in the same CPU time; NAN as above */
  /* One round of one run, on average over rounds 2 .. rounds_reached: arms, draw, scores, reward, history. */
  int rounds_reached;
  double round_seconds;
  double round_flops; /* products of networks (float), and of arms with a draw (double), 2 d K */
  double round_of_peak; /* time these take at the peaks, over the CPU time */
  /* Least traffic when nothing stays in a cache between rounds: features, evidence, weights. */
  double round_bytes;
  double round_of_bandwidth;
} Throughput;

/* Measures the first block of a policy in a setting, for about `seconds` of CPU time for draws and as much
 * for rounds, less where the beginnings of short simulations, which are left out, take ten times that; its
 * prior is in DIR/priors. Errors: those of the policy, and STATUS_INPUT with less than two rounds. */
Status throughput_measure(const Study *study, int setting, int policy, const char *directory, double seconds,
                          Meter *meter, Throughput *out);

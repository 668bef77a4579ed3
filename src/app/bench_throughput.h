/* How fast a policy of a bandit study is on one core: draws alone, and whole rounds, compared with the peaks
 * of the core at the same time. */
#pragma once

#include "core/simd_peak.h"
#include "study/study.h"

/* What one core does in a second: floating-point operations, and bytes to and from memory. */
typedef struct {
  double floats, doubles, bytes;
} MeterRates;

/* The CPU seconds of a piece of work, compared with what this core could have done in them at its peak. The
 * peaks are measured again after every few hundredths of a second of work, which is not counted as work: on a
 * shared machine the speed of a core changes from second to second, but the share of the peak that work
 * reaches changes much less. */
typedef struct {
  double seconds; /* of the work so far; only of whole parts until it ends */
  MeterRates possible; /* operations and bytes that the peaks allow in that time */
  MeterRates best; /* the highest rates measured so far */
  PeakMemory memory;
  /* State of the open part: */
  MeterRates now;
  double part; /* CPU seconds of the work */
  double since; /* CPU seconds of this process */
} Meter;

/* Measures the peaks a few times, while all `ranks` do the same. */
Status bench_meter_create(Arena *memory, int ranks, Meter *out);

/* What is measured of a policy in a setting. */
typedef struct {
  int d, arms, rounds, runs; /* K, n, B */
  int stages; /* T; 0: the sampler uses no reverse chain */
  int hidden_count, hidden[6]; /* of its networks, if they are learned */
  /* One draw for one run after `observations` observations: the cost of the draw, and the mean cost of
   * processing an observation if the sampler does that separately. NAN if the policy does not sample. */
  int observations;
  double draw_seconds;
  double draw_floats; /* operations of the products of networks; NAN: it uses none */
  double draw_doubles; /* those of small matrices (SamplerOps.operations); NAN: not known */
  double draw_of_peak; /* the time that both take at the peaks, over the CPU time; NAN if both are */
  /* One round of one run, on average over rounds 2 .. rounds_reached: arms, draw, scores, reward, history. */
  int rounds_reached;
  double round_seconds;
  double round_flops; /* products of networks (float), and of arms with a draw (double), 2 d K */
  double round_of_peak; /* time these take at the peaks, over the CPU time */
  /* Least memory traffic if nothing stays in a cache between rounds: features, evidence, weights. */
  double round_bytes;
  double round_of_bandwidth;
} Throughput;

/* What to measure. */
typedef struct {
  int setting, policy;
  double seconds; /* CPU time for draws, and the same for rounds */
  bool draws_only; /* no rounds */
} ThroughputCase;

/* Measures the first block of a policy in a setting, for about these seconds. The beginnings of simulations
 * are left out; if simulations are short, measuring stops when it has taken ten times as long with them. The
 * prior is in DIR/priors. Errors: those of the policy, and STATUS_INPUT for fewer than two rounds. */
Status bench_throughput_measure(const Study *study, ThroughputCase which, const char *directory, Meter *meter,
                                Throughput *out);

/* A hundred agents that share a prior, saved every ten rounds; run it again to continue.
 *
 *     export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig
 *     cc service.c $(pkg-config --cflags --libs thompson) -lm -o service \
 *        -Wl,-rpath,$(pkg-config --variable=libdir thompson)
 *     ./service prior.nc agents.nc */
#include <math.h>
#include <stdio.h>
#include <thompson.h>

enum { AGENTS = 100, ARMS = 20, ROUNDS = 50 };

static int failed(void) { return fprintf(stderr, "service: %s\n", thompson_error()), 1; }

int main(int argc, char **argv) {
  thompson_prior *prior = NULL;
  thompson_agents *agents = NULL;
  double arms[ARMS][2], x[AGENTS][2], y[AGENTS], p[AGENTS], total = 0;
  int ids[AGENTS], arm[AGENTS];
  if (argc != 3) return fprintf(stderr, "usage: service PRIOR AGENTS\n"), 2;
  for (int k = 0; k < ARMS; k++)
    arms[k][0] = cos(6.2831853 * k / ARMS), arms[k][1] = sin(6.2831853 * k / ARMS);
  for (int i = 0; i < AGENTS; i++) ids[i] = i;
  if (thompson_agents_open(argv[2], &prior, &agents) == THOMPSON_FILE) /* there is none yet */
    if (thompson_prior_open(argv[1], &prior) == THOMPSON_OK)
      thompson_agents_new(prior, AGENTS, "mixts", "gaussian", "noise=0.5,propensity_draws=100", 1, &agents);
  if (!agents) return failed();
  for (int round = 1; round <= ROUNDS; round++) {
    if (thompson_agents_choose_propensity(agents, AGENTS, ids, ARMS, arms[0], 0, arm, p)) return failed();
    for (int i = 0; i < AGENTS; i++) {
      x[i][0] = arms[arm[i]][0], x[i][1] = arms[arm[i]][1];
      total += y[i] = x[i][0] + 0.5 * x[i][1]; /* theta* = (1, 0.5) */
    }
    if (thompson_agents_observe(agents, AGENTS, ids, x[0], y)) return failed();
    if (round % 10 == 0 && thompson_agents_save(agents, argv[2])) return failed();
  }
  printf("mean reward %.3f of %.3f\n", total / AGENTS / ROUNDS, sqrt(1.25));
  thompson_agents_free(agents);
  thompson_prior_close(prior);
  return 0;
}

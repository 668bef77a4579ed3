/* Thompson sampling with libthompson in a world of one's own: arms on a circle, theta* = (1, 0.5).
 *
 *     export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig
 *     cc example.c $(pkg-config --cflags --libs thompson) -lm -o example \
 *        -Wl,-rpath,$(pkg-config --variable=libdir thompson)
 *     ./example prior.nc */
#include <math.h>
#include <stdio.h>
#include <thompson.h>

enum { ROUNDS = 200, ARMS = 20 };

int main(int argc, char **argv) {
  thompson_prior *prior = NULL;
  thompson_posterior *agent = NULL;
  double arms[ARMS][2], theta[2], regret = 0;
  unsigned random = 1;
  for (int k = 0; k < ARMS; k++)
    arms[k][0] = cos(6.2831853 * k / ARMS), arms[k][1] = sin(6.2831853 * k / ARMS);
  if (argc != 2 || thompson_prior_open(argv[1], &prior) ||
      thompson_posterior_new(prior, "diffts", "gaussian", "noise=0.5", 1, &agent))
    return fprintf(stderr, "example: %s\n", argc == 2 ? thompson_error() : "give a prior file"), 1;
  for (int round = 0; round < ROUNDS; round++) {
    int arm;
    if (thompson_choose(agent, ARMS, arms[0], &arm)) return fprintf(stderr, "%s\n", thompson_error()), 1;
    random = random * 1664525u + 1013904223u;
    double mean = arms[arm][0] + 0.5 * arms[arm][1], reward = mean + (random / 2147483648.0 - 1) * 0.866;
    regret += sqrt(1.25) - mean;
    thompson_observe(agent, 1, arms[arm], &reward);
  }
  thompson_draw(agent, 1, theta);
  printf("regret %.3f, theta %.17g %.17g\n", regret, theta[0], theta[1]);
  thompson_posterior_free(agent);
  thompson_prior_close(prior);
  return 0;
}

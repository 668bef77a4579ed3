/* The feel-good term of Feel-Good Thompson sampling (Zhang 2022): from U it subtracts, for every round s, mu
 * max_a phi(x_s, a)' theta, the best reward that theta promises there.
 *
 * A history holds the arms that were played, not those that could have been. So the best reward is taken over
 * the ball that the features lie in, where it is R |theta|, R the root mean square length of the features
 * that were met: near the truth where arms fill a ball, and a stand-in elsewhere. Zhang's cap on it is left
 * out: the prior outweighs what grows linearly. eta multiplies it as it does the loss. Of rewards that are
 * not Gaussian it is the natural parameter phi' theta that counts. */
#ifndef SAMPLER_GRADIENT_FEEL_GOOD_H
#define SAMPLER_GRADIENT_FEEL_GOOD_H

#include "sampler/gradient/potential.h"

/* pull[n] = weight mu times rounds times R, for the lanes of the potential's view. */
void feel_good_begin(const Potential *potential, double mu, double *pull);
/* gradient[d, n] of U at z[d, n], the coordinates of the potential, less that of the feel-good term; push[d,
 * n] is scratch. */
void feel_good_subtract(Potential *potential, const double *pull, const double *z, double *push,
                        double *gradient);

#endif

/* Linear inverse problems, y = A theta* + sigma w (Bruna and Han, Tilted transport). */
#ifndef PROBLEM_INVERSE_H
#define PROBLEM_INVERSE_H

extern const char INVERSE_SINGULAR_VECTORS[]; /* words of problem.singular_vectors */

#endif

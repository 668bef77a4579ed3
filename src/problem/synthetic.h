/* Synthetic bandits: theta* from a named distribution, random arms (DiffTS paper, Section 6.2). */
#ifndef PROBLEM_SYNTHETIC_H
#define PROBLEM_SYNTHETIC_H

/* The distributions of arm features, for the table of keys: "ball", "sphere", "gaussian". */
extern const char SYNTHETIC_FEATURES[];

#endif

/* The contextual bandits of the VITS paper (Section 4.1, Appendix H). */
#ifndef PROBLEM_POOL_H
#define PROBLEM_POOL_H

/* How a reward depends on phi' theta*, for the table of keys: "linear", "quadratic". */
extern const char POOL_REWARDS[];

#endif

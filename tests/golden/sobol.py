#!/usr/bin/python3
"""Golden numbers for test_design.c, from SciPy; writes ../support/sobol_golden.h.

SciPy counts the points of the sequence of Sobol in the order of the Gray code, so its point 2^(k+1) - 1 is point 2^k in the order of binary
numbers. All points of index below 2^16 are sums (exclusive or) of these sixteen.
"""

import pathlib

from scipy.stats import qmc

DIMENSIONS, BITS = 32, 16


def main():
    points = qmc.Sobol(DIMENSIONS, scramble=False, bits=32).random(2**BITS)
    lines = ["/* Points 2^k of the sequence of Sobol, in units of 2^-32, from SciPy; written by golden/sobol.py. */", "#pragma once", "", "#include <stdint.h>",
             "", f"enum {{ GOLDEN_DIMENSIONS = {DIMENSIONS}, GOLDEN_BITS = {BITS} }};", "", "/* clang-format off */",
             "static const uint32_t golden_sobol[GOLDEN_DIMENSIONS][GOLDEN_BITS] = {"]
    for column in points.T:
        lines.append("    {" + ", ".join(f"{int(column[2**(k + 1) - 1] * 2**32)}u" for k in range(BITS)) + "},")
    lines[-1] = lines[-1][:-1] + "};"
    lines.append("/* clang-format on */")
    path = pathlib.Path(__file__).parent.parent / "support" / "sobol_golden.h"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

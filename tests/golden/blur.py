#!/usr/bin/python3
"""Golden numbers for test_operator.c, from SciPy; writes ../support/blur_golden.h.

Pictures of random pixels and what scipy.ndimage.gaussian_filter makes of them with mode "wrap", that is on a circle; the Gaussian is cut off
at 12 standard deviations.
"""

import pathlib

import numpy as np
from scipy.ndimage import gaussian_filter

rng = np.random.default_rng(3)
MOST = 8


def numbers(values):
    return "{" + ", ".join(f"{value:.17g}" for value in values.ravel()) + "}"


def main():
    lines = ["/* Pictures blurred on a circle, from SciPy; written by golden/blur.py. */", "#pragma once", "",
             f"enum {{ GOLDEN_PIXELS = {MOST * MOST} }};", "", "typedef struct {", "  int side;",
             "  double width, picture[GOLDEN_PIXELS], blurred[GOLDEN_PIXELS];", "} GoldenBlur;", "", "/* clang-format off */",
             "static const GoldenBlur golden_blurs[] = {"]
    for side, width in ((1, 2), (4, 0.7), (5, 3), (8, 1.25)):
        picture = rng.integers(-99, 100, (side, side)) / 16
        blurred = gaussian_filter(picture, width, mode="wrap", truncate=12)
        lines.append(f"    {{.side = {side}, .width = {width},\n     .picture = {numbers(picture)},\n     .blurred = {numbers(blurred)}}},")
    lines[-1] = lines[-1][:-1] + "};"
    lines.append("/* clang-format on */")
    path = pathlib.Path(__file__).parent.parent / "support" / "blur_golden.h"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

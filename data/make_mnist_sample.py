#!/usr/bin/env python3
"""Artificial images of digits in the format of MNIST, so that the tests run anywhere: ten random strokes, moved and blurred. None is real.

Writes samples/mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte next to this script; the training set is compressed with gzip, as MNIST
is published, the test set is not. Building and testing do not need this script.
"""
import gzip
import pathlib
import struct

import numpy as np

SIZE, LABELS, TRAINING, TEST, STEPS, NOISE = 8, 10, 300, 100, 12, 40
FOLDER = pathlib.Path(__file__).resolve().parent / "samples" / "mnist"


def strokes(rng):
    """One random walk on the pixels for each label: drawn[label, row, column] is 0 or 1."""
    drawn = np.zeros((LABELS, SIZE, SIZE))
    for image in drawn:
        at = rng.integers(2, SIZE - 2, 2)
        for _ in range(STEPS):
            image[tuple(at)] = 1
            at = np.clip(at + rng.integers(-1, 2, 2), 1, SIZE - 2)
    return drawn


def made_digits(rng, drawn, count):
    """The same number of each label, in random order: the stroke at random strength, moved by up to one pixel, with noise on its pixels."""
    labels = rng.permutation(np.arange(count) % LABELS)
    images = np.empty((count, SIZE, SIZE), np.uint8)
    for image, label in zip(images, labels):
        moved = np.roll(drawn[label], rng.integers(-1, 2, 2), (0, 1))
        image[:] = np.clip(moved * (rng.uniform(160, 255) + NOISE * rng.standard_normal(moved.shape)), 0, 255)
    return images, labels.astype(np.uint8)


def write(name, magic, array, compress):
    data = struct.pack(f">I{array.ndim}I", magic, *array.shape) + array.tobytes()
    path = FOLDER / (name + ".gz" if compress else name)
    with open(path, "wb") as raw:
        if compress:
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                file.write(data)
        else:
            raw.write(data)
    print(path)


def main():
    rng = np.random.default_rng(1)
    drawn = strokes(rng)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", TRAINING), ("t10k", TEST)):
        images, labels = made_digits(rng, drawn, count)
        write(f"{name}-images-idx3-ubyte", 2051, images, compress=name == "train")
        write(f"{name}-labels-idx1-ubyte", 2049, labels, compress=name == "train")


if __name__ == "__main__":
    main()

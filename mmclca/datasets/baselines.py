# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np

from .decoding import read_bgr


def colour_histogram_1nn(
    train_paths, train_labels, test_paths, test_labels, bins=8
):
    """Classify images by the most similar colour histogram.

    It shows what a data set gives away by colour and size alone: a joint
    histogram over all three channels, normalized to sum 1, and the nearest
    training image in L1 distance (the first one in a tie).

    Args:
        train_paths (Sequence[str | Path]): Training images.
        train_labels (Sequence[int]): Their labels.
        test_paths (Sequence[str | Path]): Test images.
        test_labels (Sequence[int]): Their labels.
        bins (int): Bins per channel. Defaults to 8.

    Returns:
        float: Share of the test images that get their own label, 0 to 1.

    """
    train = np.stack([colour_histogram(p, bins) for p in train_paths])
    test = (colour_histogram(path, bins) for path in test_paths)
    nearest = [np.abs(train - one).sum(axis=1).argmin() for one in test]
    hits = np.asarray(train_labels)[nearest] == np.asarray(test_labels)
    return float(hits.mean())


def colour_histogram(path, bins=8):
    """Joint colour histogram of an image.

    Args:
        path (str | Path): The image.
        bins (int): Bins per channel. Defaults to 8.

    Returns:
        np.ndarray: Shares of the pixels, (bins ** 3, ).
    """
    level = read_bgr(path).astype(np.int64) * bins // 256
    index = level @ [bins * bins, bins, 1]
    return np.bincount(index.ravel(), minlength=bins**3) / index.size

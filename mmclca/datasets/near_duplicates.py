# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find near-duplicates: the same object from the same position.

Such photos (a burst, crops, video frames) in training and test make the
measured accuracy too high. With two labels, one label is wrong.
"""

from collections.abc import Sequence
from heapq import nlargest
from io import BytesIO
from typing import NamedTuple

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import ImageOps
from torch import Tensor

from mmclca.utils.files import read_bytes
from mmclca.utils.messages import track

from .decoding import open_image
from .photos import LabeledImages

Pair = tuple[str, str]  # two paths
SIDE = 320  # pixels of the longer side
BORDER = 31  # ORB finds no corners this close to an edge
NEAREST, MOST_PAIRS = 2, 500
ROWS = 1024  # photos compared with all others at a time, to save memory
# Minimum for matching corners after a shift, rotation and scaling, and
# their minimum share in the photo with fewer corners. None of 4,574 pairs of
# different leaves of a species (leaf40, leaf40_white) reaches both, and none
# of 7,663 pairs of the most similar photos of two classes (14 datasets).
CORNERS, SHARE = 70, 0.25


def find_near_duplicates(
    photos: LabeledImages, features: Tensor
) -> list[Pair]:
    """Find pairs of near-duplicates in the same class and in two classes.

    Args:
        photos (LabeledImages): The photos. Photos of the same group are
            not compared.
        features (Tensor): Features per photo, (N, D). Corners are compared
            for at most 500 pairs within classes and 500 pairs across classes,
            with the most similar features.

    Returns:
        list[tuple[str, str]]: Paths, in pairs.
    """
    corners, matches = {}, []
    pairs = _similar_pairs(photos, features)
    for first, second in track(pairs, 'Near-duplicates'):
        for i in (first, second):
            if i not in corners:
                corners[i] = _detect_corners(photos.paths[i])
        if _match(corners[first], corners[second]):
            matches.append((photos.paths[first], photos.paths[second]))
    return matches


def join_groups(photos: LabeledImages, pairs: Sequence[Pair]) -> list[str]:
    """Join the groups in each pair; return one group per photo.

    A photo without a group has its own, named by its path. Pairs with other
    photos are ignored.
    """
    groups = photos.groups or photos.paths
    group_of = dict(zip(photos.paths, groups, strict=True))
    for pair in pairs:
        if group_of.keys() >= {*pair}:
            kept, dropped = map(group_of.get, pair)
            group_of |= {
                path: kept for path, x in group_of.items() if x == dropped
            }
    return [*group_of.values()]


def _similar_pairs(
    photos: LabeledImages, features: Tensor
) -> list[tuple[int, int]]:
    """Pair photos with nearest neighbors in their class and in others."""
    features = features - features.mean(0)
    features = F.normalize(features / (features.std(0) + 1e-6), dim=1)
    labels = torch.tensor(photos.labels)
    groups = photos.groups or photos.paths
    groups = torch.from_numpy(np.unique(groups, return_inverse=True)[1])
    within, across = {}, {}
    for rows in torch.arange(len(labels)).split(ROWS):
        cosines = features[rows] @ features.T
        cosines[groups[rows, None] == groups] = -torch.inf
        same = labels[rows, None] == labels
        for similar, other in ((within, ~same), (across, same)):
            values = cosines.masked_fill(other, -torch.inf)
            similar |= _nearest(values, int(rows[0]))
    return [
        pair
        for similar in (within, across)
        for pair in nlargest(MOST_PAIRS, similar, key=similar.__getitem__)
    ]


def _nearest(cosines: Tensor, start: int) -> dict[tuple[int, int], float]:
    """Map pairs (row from ``start``, column) to their similarity."""
    values, columns = cosines.topk(min(NEAREST, cosines.shape[1]))
    rows = torch.arange(len(cosines))[:, None].expand_as(columns) + start
    entries = zip(
        rows.flatten().tolist(),
        columns.flatten().tolist(),
        values.flatten().tolist(),
        strict=True,
    )
    return {
        (min(i, j), max(i, j)): value
        for i, j, value in entries
        if value > -torch.inf
    }


class Corners(NamedTuple):
    """ORB corners of a photo, and their descriptors; None without any."""

    points: Sequence[cv2.KeyPoint]
    descriptors: np.ndarray | None


def _detect_corners(path: str) -> Corners:
    """Detect the corners of a photo."""
    with open_image(BytesIO(read_bytes(path))) as image:
        image.draft('L', (2 * SIDE, 2 * SIDE))
        upright = ImageOps.exif_transpose(image).convert('L')
    gray = np.asarray(ImageOps.contain(upright, (SIDE, SIDE)))
    gray = cv2.copyMakeBorder(
        gray, BORDER, BORDER, BORDER, BORDER, cv2.BORDER_REPLICATE
    )
    # missing in the types of OpenCV
    create = cv2.ORB_create  # type: ignore[attr-defined]
    detector = create(fastThreshold=5)
    points, descriptors = detector.detectAndCompute(gray, None)
    return Corners(points, descriptors)


def _match(first: Corners, second: Corners) -> bool:
    """Return whether enough corners agree after a similarity transform."""
    fewer = min(len(first.points), len(second.points))
    if first.descriptors is None or second.descriptors is None:
        return False
    if fewer < CORNERS:
        return False
    matcher = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True)
    matches = matcher.match(first.descriptors, second.descriptors)
    if len(matches) < CORNERS:
        return False
    here, there = (
        np.array([corner.pt for corner in corners], np.float32)
        for corners in (
            [first.points[x.queryIdx] for x in matches],
            [second.points[x.trainIdx] for x in matches],
        )
    )
    _, kept = cv2.estimateAffinePartial2D(here, there)
    number = 0 if kept is None else int(kept.sum())
    return number >= max(CORNERS, SHARE * fewer)

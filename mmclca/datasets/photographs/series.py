# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find near-duplicates: photos of the same object from the same position.

Such photos (a burst, crops, video frames) in training and test make the
measured accuracy too high.
"""

from collections import Counter
from io import BytesIO

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import ImageOps
from torch import Tensor

from mmclca.utils.files import read_bytes
from mmclca.utils.messages import track

from ..decoding import open_image
from .labeled_images import LabeledImages

SIDE = 320  # pixels of the longer side
BORDER = 31  # ORB finds no corners this close to an edge
NEAREST, MOST_PAIRS = 2, 500
# Minimum for matching corners after a shift, rotation and scaling, and
# their minimum share in the photo with fewer corners. None of 4,574 pairs of
# different leaves of a species (leaf40, leaf40_white) reaches both.
CORNERS, SHARE = 70, 0.25


def find_series(
    photographs: LabeledImages, features: Tensor
) -> tuple[dict[str, int], dict[str, str]]:
    """Find near-duplicates in each class.

    Args:
        photographs (LabeledImages): The photos. Photos of the same group are
            not compared.
        features (Tensor): Features of each photo, (N, D). Corners are
            compared for at most 500 pairs with the most similar features.

    Returns:
        tuple[dict[str, int], dict[str, str]]: Near-duplicates by class name,
        if there are any; and the group of each photo by path, after groups
        with near-duplicates were joined. A photo without a group has its own.
    """
    pairs, corners, found = _similar_pairs(photographs, features), {}, set()
    groups = photographs.groups or photographs.paths
    for pair in track(pairs, 'Near-duplicates'):
        for i in pair:
            if i not in corners:
                corners[i] = _corners(photographs.paths[i])
        if _match(*map(corners.get, pair)):
            found |= {*pair}
            one, other = (groups[i] for i in pair)
            groups = [one if x == other else x for x in groups]
    names = photographs.names
    counts = dict(Counter(names[i] for i in sorted(found)))
    return counts, dict(zip(photographs.paths, groups, strict=True))


def _similar_pairs(
    photographs: LabeledImages, features: Tensor
) -> list[tuple]:
    """Pair photos with their nearest neighbors in the class, nearest first."""
    features = features - features.mean(0)
    features = F.normalize(features / (features.std(0) + 1e-6), dim=1)
    labels = torch.tensor(photographs.labels)
    groups = photographs.groups or range(len(labels))
    groups = torch.from_numpy(np.unique(groups, return_inverse=True)[1])
    found = {}
    for label in labels.unique():
        (own,) = torch.where(labels == label)
        cosines = features[own] @ features[own].T
        cosines[groups[own, None] == groups[own]] = -torch.inf
        values, nearest = cosines.topk(min(NEAREST, len(own)))
        for i, row in enumerate(values.tolist()):
            for value, j in zip(row, nearest[i].tolist(), strict=True):
                if value > -torch.inf:
                    pair = tuple(sorted((int(own[i]), int(own[j]))))
                    found[pair] = value
    return sorted(found, key=found.get, reverse=True)[:MOST_PAIRS]


def _corners(path: str) -> tuple:
    """Detect ORB corners of a photo, and compute their descriptors."""
    with open_image(BytesIO(read_bytes(path))) as image:
        image.draft('L', (2 * SIDE, 2 * SIDE))
        upright = ImageOps.exif_transpose(image).convert('L')
    gray = np.asarray(ImageOps.contain(upright, (SIDE, SIDE)))
    gray = cv2.copyMakeBorder(gray, *(BORDER,) * 4, cv2.BORDER_REPLICATE)
    return cv2.ORB_create(fastThreshold=5).detectAndCompute(gray, None)


def _match(one: tuple, other: tuple) -> bool:
    (points, looks), (others, other_looks) = one, other
    if min(len(points), len(others)) < CORNERS:
        return False
    matcher = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True)
    matches = matcher.match(looks, other_looks)
    if len(matches) < CORNERS:
        return False
    here = np.float32([points[x.queryIdx].pt for x in matches])
    there = np.float32([others[x.trainIdx].pt for x in matches])
    _, kept = cv2.estimateAffinePartial2D(here, there)
    number = 0 if kept is None else int(kept.sum())
    return number >= max(CORNERS, SHARE * min(len(points), len(others)))

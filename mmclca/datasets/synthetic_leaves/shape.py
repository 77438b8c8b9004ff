# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Geometry of a synthetic leaf.

In the leaf frame, the base of the blade is at (0, 0) and its apex at (0, 1);
x points to the right. Curves are arrays of points, (points, 2).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

STEPS = (1 - np.cos(np.linspace(0, np.pi, 97))) / 2  # denser at both ends
PETIOLE = 12  # number of midrib points below the blade
TOOTH = np.array([0.0, 0.18, 0.36, 0.54, 0.7, 0.8, 0.9])  # apex at 0.7


@dataclass
class Leaf:
    """Margins and veins of a leaf, in the leaf frame."""

    left: np.ndarray
    right: np.ndarray
    midrib: np.ndarray
    secondaries: np.ndarray
    forks: np.ndarray
    tertiaries: np.ndarray

    def move(self, move_points: Callable[[np.ndarray], np.ndarray]) -> 'Leaf':
        """Return a leaf with all points moved."""
        return Leaf(
            left=move_points(self.left),
            right=move_points(self.right),
            midrib=move_points(self.midrib),
            secondaries=move_points(self.secondaries),
            forks=move_points(self.forks),
            tertiaries=move_points(self.tertiaries),
        )


@dataclass
class Half:
    """Right half: margin and veins."""

    margin: np.ndarray
    secondaries: np.ndarray
    forks: np.ndarray
    tertiaries: np.ndarray


def grow_leaf(traits, rng):
    """Generate the curves of a specimen; ``rng`` adds irregularities."""
    left, right = (_grow_half(traits, rng) for _ in range(2))
    below = np.linspace(-rng.uniform(0.12, 0.22), 0, PETIOLE, endpoint=False)
    y = np.r_[below, np.linspace(0, 1, 30)]
    sway = rng.normal(0, 0.9) * np.minimum(y, 0) ** 2
    mirror = np.array([-1.0, 1.0])
    leaf = Leaf(
        left=left.margin * mirror,
        right=right.margin,
        midrib=np.stack([sway, y], axis=1),
        secondaries=np.concatenate(
            [left.secondaries * mirror, right.secondaries]
        ),
        forks=np.concatenate([left.forks * mirror, right.forks]),
        tertiaries=np.concatenate(
            [left.tertiaries * mirror, right.tertiaries]
        ),
    )
    return _bend(leaf, rng)


def _grow_half(traits, rng) -> Half:
    """Generate a right half."""
    smooth = _outline(traits, rng)
    number = max(3, round(traits.veins))
    starts = 0.03 + 0.76 * np.linspace(0, 1, number) ** 0.93
    starts += rng.normal(0, 0.008, number).clip(-0.015, 0.015)
    ends = _vein_ends(smooth, starts, traits, rng)
    lobed = _lobe(smooth, ends, traits.lobes)
    margin = _cut_teeth(lobed, traits, rng)
    secondaries = _secondaries(lobed, starts, ends, traits)
    forks = _forks(lobed, secondaries, ends, traits, rng)
    return Half(margin, secondaries, forks, _tertiaries(secondaries, rng))


def _outline(traits, rng):
    """Right margin of an ovate blade without lobes and teeth."""
    x = STEPS**traits.widest * (1 - STEPS) ** (1 - traits.widest)
    x = x**traits.taper
    x = x / x.max() * traits.width / 2 * rng.normal(1, 0.035)
    acumen = np.clip(traits.acumen, 0, 0.95)
    x *= 1 - acumen * np.exp(-(((1 - STEPS) / 0.13) ** 2))
    waves = np.arange(1, 5)[:, None]
    phases = rng.uniform(0, 2 * np.pi, (4, 1))
    x *= 1 + 0.012 * np.sin(2 * np.pi * waves * STEPS + phases).sum(0)
    reach = STEPS / 0.06
    y = STEPS - max(traits.cordate, 0) * reach * np.exp(1 - reach)
    return np.stack([x, y], axis=1)


def _vein_ends(outline, starts, traits, rng):
    """Return the outline indices where the secondary veins meet the margin."""
    x, y = outline.T
    angle = traits.vein_angle * (1.15 - 0.35 * starts)
    slope = np.tan(np.deg2rad(angle + rng.normal(0, 1.0, len(starts))))
    beyond = (y - starts[:, None]) * slope[:, None] > x  # above the ray
    beyond[:, STEPS < 0.1] = False
    return beyond.argmax(axis=1)


def _lobe(outline, ends, depth):
    """Move the margin inward between the ends of the secondary veins.

    The margin stays in place at the ends themselves, where lobes point
    outwards.
    """
    phase = np.interp(np.arange(len(outline)), ends, np.arange(len(ends)))
    sinus = (1 - np.cos(2 * np.pi * phase)) / 2
    cut = max(depth, 0) * sinus**0.8
    x, y = outline.T
    return np.stack([x * (1 - 1.6 * cut), y - 0.3 * x * cut], axis=1)


def _cut_teeth(outline, traits, rng):
    number = max(4, round(traits.teeth))
    phase = (np.arange(number)[:, None] + TOOTH).ravel()
    spacing = np.cumsum(rng.uniform(0.75, 1.25, number + 1))
    spacing = (spacing - spacing[0]) / (spacing[-1] - spacing[0])
    along = np.interp(phase, np.arange(number + 1), spacing)
    steps = np.diff(outline, axis=0)
    length = np.r_[0, np.cumsum(np.hypot(steps[:, 0], steps[:, 1]))]
    reached = length / length[-1]
    base = np.stack(
        [np.interp(along, reached, curve) for curve in outline.T], axis=1
    )
    step = np.gradient(base, axis=0)
    step /= np.hypot(step[:, 0], step[:, 1])[:, None] + 1e-9
    outwards = step[:, ::-1] * [1, -1]
    height = np.repeat(rng.uniform(0.7, 1.3, number), len(TOOTH))
    rise = np.where(TOOTH <= 0.7, TOOTH / 0.7, (1 - TOOTH) / 0.3) ** 1.15
    height *= np.tile(rise, number) * max(traits.tooth_depth, 0.004)
    height *= np.clip(along / 0.12, 0, 1) * np.clip((1 - along) / 0.1, 0.2, 1)
    teeth = base + height[:, None] * (outwards + 0.55 * step)
    return np.concatenate([teeth, outline[-1:]])


def _secondaries(outline, starts, ends, traits):
    """Curve the secondary veins from the midrib to the margin."""
    tip = outline[ends] * [0.97, 1.0]
    root = np.stack([np.zeros_like(starts), starts], axis=1)
    span = tip - root
    length = np.hypot(span[:, 0], span[:, 1])[:, None]
    angle = np.deg2rad(traits.vein_angle * (1.3 - 0.35 * starts))
    heading = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return _arch(root, root + 0.5 * length * heading, tip)


def _forks(outline, secondaries, ends, traits, rng):
    """Branch some veins to the margin, below the ends of the veins."""
    veins, points = len(secondaries), secondaries.shape[1]
    number = round(np.clip(traits.forks, 0, 1) * veins)
    forked = np.sort(rng.permutation(veins)[:number])
    off = rng.uniform(0.42, 0.62, len(forked))
    root = secondaries[forked, (off * points).astype(int)]
    before = np.where(forked > 0, ends[forked - 1], ends[0] * 0.55)
    target = outline[(0.5 * before + 0.5 * ends[forked]).astype(int)]
    tip = root + (target - root) * 0.95
    corner = np.stack([target[:, 0], root[:, 1]], axis=1)
    return _arch(root, 0.25 * root + 0.35 * tip + 0.4 * corner, tip)


def _tertiaries(secondaries, rng, rungs=7):
    """Connect neighboring secondary veins."""
    lower, upper = secondaries[:-1], secondaries[1:]
    points = secondaries.shape[1]
    along = np.linspace(0.14, 0.9, rungs) * points
    shift = rng.uniform(-0.6, 0.6, (len(lower), rungs))
    index = np.clip(along + shift, 0, points - 1).astype(int)
    rows = np.arange(len(lower))[:, None]
    root, tip = lower[rows, index], upper[rows, index]
    jitter = rng.normal(0, 0.012, root.shape)
    middle = 0.5 * (root + tip) + [0.0, 0.012] + jitter
    root, middle, tip = (x.reshape(-1, 2) for x in (root, middle, tip))
    return _arch(root, middle, tip, points=6)


def _bend(leaf, rng):
    """Curve the whole leaf sideways, and its midrib slightly."""
    curve, wave = rng.normal(0, 0.10), rng.normal(0, 0.05)

    def bend(points):
        x, y = points[..., 0], points[..., 1] - 0.4
        shift = curve * y**2 + wave * y**3
        lean = 2 * curve * y + 3 * wave * y**2
        return np.stack([x + shift, points[..., 1] - x * lean], axis=-1)

    return leaf.move(bend)


def _arch(root, control, tip, points=14):
    """Quadratic Bezier curves, (curves, points, 2)."""
    t = np.linspace(0, 1, points)[:, None]
    root, control, tip = (p[:, None] for p in (root, control, tip))
    return (1 - t) ** 2 * root + 2 * t * (1 - t) * control + t**2 * tip

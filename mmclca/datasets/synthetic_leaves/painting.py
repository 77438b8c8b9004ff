# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Render a synthetic leaf as if scanned.

Shapes are filled at twice the resolution and averaged; color and light are
computed at the final resolution to save time.
"""

from functools import lru_cache

import cv2
import numpy as np

from .shape import PETIOLE

SUPERSAMPLING = 2
SHIFT = 4  # fractional bits of polygon corners in OpenCV
AREA = 0.23  # mean share of the image covered by the blade


def _rgb(red, green, blue):
    return np.array([red, green, blue]).reshape(3, 1, 1)


BLADE = _rgb(94, 126, 64)
VEIN = _rgb(188, 198, 128)
YELLOW = _rgb(158, 156, 66)
BROWN = _rgb(112, 82, 50)
PAPER = _rgb(248, 248, 246)


def paint_leaf(leaf, rng, size):
    """Render a leaf to RGB, uint8, (size, size, 3).

    ``rng`` decides on pose, color, light and damage.
    """
    canvas = size * SUPERSAMPLING
    leaf, unit = _pose(leaf, rng, canvas)
    blade, half = _fill_blade(leaf, canvas)
    veins = _draw_veins(leaf, unit, canvas)
    holes, spots = _damage(leaf, rng, unit, canvas)
    petiole = np.zeros((canvas, canvas), np.uint8)
    width = np.linspace(0.030, 0.020, 14) * unit
    _fill(petiole, _ribbons(leaf.midrib[None, :14], width)[0])
    mask = cv2.subtract(cv2.max(blade, petiole), holes)
    mask, half, veins, holes, spots = (
        cv2.resize(layer, (size, size), interpolation=cv2.INTER_AREA).astype(
            np.float32
        )
        / 255
        for layer in (mask, half, veins, holes, spots)
    )
    leaf_image = _blade(mask, half, veins, holes, spots, rng)
    paper = _paper(mask, rng)
    image = paper + (leaf_image - paper) * mask
    image = np.clip(image + 0.5, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(image.transpose(1, 2, 0))


def _pose(leaf, rng, canvas):
    """Rotate, scale and place a leaf; return it with its length in pixels."""
    outline = np.concatenate([leaf.left, leaf.right[::-1]])
    angle = np.deg2rad(rng.normal(0, 11))
    cos, sin = np.cos(angle), np.sin(angle)
    turn = np.array([[cos, sin], [sin, -cos]])  # y points down in images
    x, y = outline.T
    doubled_area = np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))
    area = abs(doubled_area) / 2
    unit = canvas * np.sqrt(AREA * rng.normal(1, 0.12) / area)
    extent = np.concatenate([outline, leaf.midrib]) @ turn
    low, high = extent.min(0), extent.max(0)
    unit = min(unit, 0.92 * canvas / (high - low).max())
    room = canvas - unit * (high - low)
    corner = room * rng.uniform(0.35, 0.65, 2) - unit * low
    return leaf.move(lambda points: points @ turn * unit + corner), unit


def _fill_blade(leaf, canvas):
    """Return masks of the blade and its left half, for the shading."""
    blade, half = (np.zeros((canvas, canvas), np.uint8) for _ in range(2))
    _fill(blade, np.concatenate([leaf.left, leaf.right[::-1]]))
    midrib = leaf.midrib[PETIOLE:]
    _fill(half, np.concatenate([leaf.left, midrib[::-1]]))
    return blade, half


def _draw_veins(leaf, unit, canvas):
    """Draw the veins; finer veins are fainter."""
    layer = np.zeros((canvas, canvas), np.uint8)
    lines = _fixed(leaf.tertiaries)
    cv2.polylines(layer, lines, False, 70, 1, cv2.LINE_AA, SHIFT)
    thin = np.linspace(0.0065, 0.0030, 14)
    middle = np.linspace(0.0100, 0.0035, 14)
    thick = np.r_[np.full(PETIOLE, 0.024), np.linspace(0.020, 0.004, 30)]
    for curves, width, value in (
        (leaf.forks, thin, 130),
        (leaf.secondaries, middle, 170),
        (leaf.midrib[None], thick, 255),
    ):
        for vein in _ribbons(curves, width * unit):
            _fill(layer, vein, value)
    return layer


def _damage(leaf, rng, unit, canvas):
    """Return masks of holes (insect bites) and brown spots."""
    holes, spots = (np.zeros((canvas, canvas), np.uint8) for _ in range(2))
    for layer, often, big in ((holes, 0.7, 0.02), (spots, 2.5, 0.010)):
        for _ in range(rng.poisson(often)):
            margin = leaf.left if rng.random() < 0.5 else leaf.right
            along = rng.uniform(0.12, 0.85)
            edge = margin[int(along * len(margin))]
            rib = leaf.midrib[PETIOLE + int(along * 29)]
            center = rib + (edge - rib) * rng.uniform(0.15, 1.0)
            radius = unit * big * rng.uniform(0.35, 1.2)
            _fill(layer, _blob(center, radius, rng))
    return holes, spots


def _blob(center, radius, rng):
    angle = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    shape, phase = rng.uniform(0.05, 0.3, 3), rng.uniform(0, 6.3, 3)
    waves = np.arange(1, 4)[:, None] * angle + phase[:, None]
    reach = radius * (1 + shape @ np.sin(waves))
    return center + reach[:, None] * np.stack(
        [np.cos(angle), np.sin(angle)], 1
    )


def _blade(mask, half, veins, holes, spots, rng):
    """Color every pixel as if the leaf filled the image."""
    size = len(mask)
    light = _relief(veins, half, mask, rng)
    inside = mask > 0.5
    light -= light[inside].mean()
    color = _near(BLADE, rng, 0.11, 6)
    image = color * (1 + light)
    _mix(image, YELLOW, _clouds(rng, size, 5) * 0.10 + rng.uniform(0, 0.12))
    _mix(image, _near(VEIN, rng, 0.04, 3), veins * rng.uniform(0.5, 0.85))
    rim = cv2.GaussianBlur(holes, (0, 0), size / 150)
    rust = np.minimum(spots + 1.6 * rim, 1) * 0.8
    _mix(image, _near(BROWN, rng, 0.1, 5), rust)
    return image


def _relief(veins, half, mask, rng):
    """Shade an uneven surface, relative to the color, (size, size)."""
    size = len(veins)
    bulge = cv2.GaussianBlur(veins, (0, 0), size / 110)
    slope = bulge - np.roll(bulge, (2, 1), (0, 1))
    fold = cv2.GaussianBlur(half, (0, 0), size / 75) - 0.5
    edge = cv2.GaussianBlur(mask, (0, 0), size / 60)
    return (
        0.55 * slope
        - 0.22 * bulge
        + np.float32(rng.normal(0, 0.10)) * fold
        + 0.12 * edge
        + 0.05 * _clouds(rng, size, 7)
        + _crop(_areoles(size), rng, size)
        + _crop(_grain(size), rng, size)
    )


def _paper(mask, rng):
    """Render white paper with the shadow of the leaf."""
    size = len(mask)
    contact = cv2.GaussianBlur(mask, (0, 0), size / 90)
    wide = cv2.GaussianBlur(mask, (0, 0), size / 28)
    wide = np.roll(wide, (size // 55, size // 90), (0, 1))
    light = 1 - 0.16 * contact - 0.15 * wide
    light += 0.006 * _clouds(rng, size, 4)
    light += 0.35 * _crop(_grain(size), rng, size)
    return _near(PAPER, rng, 0.006, 1) * light


def _clouds(rng, size, cells):
    """Smooth noise with mean 0 and standard deviation of about 1."""
    coarse = rng.standard_normal((cells, cells), np.float32)
    return cv2.resize(coarse, (size, size), interpolation=cv2.INTER_CUBIC)


@lru_cache(maxsize=2)
def _areoles(size):
    """Texture of the finest veins, from which all leaves are cropped."""
    noise = np.random.default_rng(1).standard_normal((2 * size,) * 2)
    fine = cv2.GaussianBlur(
        noise.astype(np.float32), (0, 0), max(size / 250, 0.9)
    )
    net = np.exp(-((fine / fine.std() / 0.35) ** 2))
    return ((net - net.mean()) * 0.10).astype(np.float32)


@lru_cache(maxsize=2)
def _grain(size):
    """Scanner noise, from which all images are cropped."""
    rng = np.random.default_rng(2)
    return rng.standard_normal((2 * size,) * 2, np.float32) * 0.012


def _crop(texture, rng, size):
    top, left = rng.integers(0, size, 2)
    return texture[top : top + size, left : left + size]


def _mix(image, color, amount):
    """Blend the image with a color, in place."""
    image += (color - image) * np.clip(amount, 0, 1)


def _near(color, rng, brightness, hue):
    """Vary a color in brightness and hue."""
    shift = rng.normal(0, hue, (3, 1, 1)).clip(-1.5 * hue, 1.5 * hue)
    return np.float32(color * rng.normal(1, brightness) + shift)


def _ribbons(curves, width):
    """Polygons around curves with the given width at each point."""
    step = np.gradient(curves, axis=1)
    length = np.sqrt((step**2).sum(-1, keepdims=True))
    side = step[..., ::-1] * [0.5, -0.5] / length * width[:, None]
    return np.concatenate([curves + side, (curves - side)[:, ::-1]], axis=1)


def _fill(layer, polygon, value=255):
    cv2.fillPoly(layer, [_fixed(polygon)], value, cv2.LINE_AA, SHIFT)


def _fixed(points):
    return np.round(points * 2**SHIFT).astype(np.int32)

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cultivars (classes) and specimens (images) of synthetic leaves.

Cultivar traits vary around an imaginary plant. A specimen
adds the noise of growth, weather and scanner. Color and size vary between
specimens only, so classes differ in shape alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np

from mmclca.utils.messages import check_integer, check_number

from .painting import paint_leaf
from .shape import grow_leaf


def _trait(default, spread):
    """Declare a trait with its spread between cultivars at difference 1."""
    return field(default=default, metadata=dict(spread=spread))


@dataclass(frozen=True)
class Cultivar:
    """Traits shared by all leaves of a class.

    Lengths are relative to the blade length; positions along the midrib run
    from 0 (base) to 1 (apex).

    Args:
        width (float): Maximum width of the blade.
        widest (float): Position of the maximum width.
        taper (float): Narrowing towards both ends; 1 is blunt.
        acumen (float): Length of the drawn-out apex, 0 to 1.
        cordate (float): Extent of the base behind the petiole.
        lobes (float): Depth of the lobes, one per secondary vein.
        teeth (float): Teeth per side.
        tooth_depth (float): Height of a tooth.
        veins (float): Secondary veins per side.
        vein_angle (float): Degrees between midrib and secondary veins.
        forks (float): Share of forked secondary veins, 0 to 1.
    """

    width: float = _trait(0.66, 0.12)
    widest: float = _trait(0.38, 0.07)
    taper: float = _trait(1.30, 0.26)
    acumen: float = _trait(0.45, 0.40)
    cordate: float = _trait(0.05, 0.05)
    lobes: float = _trait(0.10, 0.09)
    teeth: float = _trait(22.0, 7.0)
    tooth_depth: float = _trait(0.018, 0.009)
    veins: float = _trait(7.0, 2.0)
    vein_angle: float = _trait(46.0, 10.0)
    forks: float = _trait(0.5, 0.45)


TRAITS = fields(Cultivar)
# standard deviation within a cultivar, relative to the spread
SPECIMEN_NOISE = 0.12
# share of this variance that all leaves of a plant have in common
PLANT_SHARE = 0.5


def make_cultivars(
    num_classes: int,
    seed: int = 0,
    difference: float = 1.0,
    plant: 'Cultivar | None' = None,
) -> list['Cultivar']:
    """Design distinct classes with a Latin hypercube.

    Every trait takes ``num_classes`` evenly spaced values, each once. Among
    200 random assignments, the one with the largest distance between its two
    most similar cultivars is selected.

    Args:
        num_classes (int): Number of cultivars, at least 1.
        seed (int): The same seed gives the same cultivars. Defaults to 0.
        difference (float): Distance between the cultivars: 0 makes them
            identical, 1 is moderate, 1.5 is easy. Defaults to 1.
        plant (Cultivar, optional): The average plant. Defaults to None: the
            default ``Cultivar``.

    Returns:
        list[Cultivar]: One per class.

    Raises:
        Error: If ``num_classes`` or ``difference`` is out of range.
    """
    check_integer(num_classes=num_classes)
    check_number(0, 2, difference=difference)
    rng = np.random.default_rng([seed, num_classes])
    levels = np.linspace(-1, 1, num_classes) if num_classes > 1 else [0.0]

    def smallest_distance(rows: np.ndarray) -> float:
        gaps = np.abs(rows[:, None] - rows[None]).sum(-1)
        return gaps[~np.eye(len(rows), dtype=bool)].min(initial=np.inf)

    deals = (
        np.stack([rng.permutation(levels) for _ in TRAITS], axis=1)
        for _ in range(200)
    )
    best = max(deals, key=smallest_distance)
    return [_vary(plant or Cultivar(), row * difference) for row in best]


def make_species(num_species, num_classes, seed=0, difference=1.0):
    """Design cultivars of several species; return species and cultivar pairs.

    Cultivars are divided evenly, and differ a third as much as species.

    Raises:
        Error: If there are more species than cultivars.
    """
    check_integer(maximum=max(num_classes, 1), num_species=num_species)
    species = make_cultivars(num_species, seed, difference)
    inside = difference / 3 if num_species > 1 else difference
    owners = [i * num_species // num_classes for i in range(num_classes)]
    return [
        (owner, cultivar)
        for owner, plant in enumerate(species)
        for cultivar in make_cultivars(
            owners.count(owner), seed + owner, inside, plant
        )
    ]


def draw_leaf(
    cultivar: 'Cultivar',
    rng: np.random.Generator,
    size: int = 224,
    plant: np.random.Generator | None = None,
) -> np.ndarray:
    """Draw a specimen as if scanned on a flatbed scanner.

    Args:
        cultivar (Cultivar): The class.
        rng (np.random.Generator): Source of the variation within a class. The
            same state gives the same image.
        size (int): Height and width in pixels. Defaults to 224.
        plant (np.random.Generator, optional): Source of the part of this
            variation that leaves of a plant share, ``PLANT_SHARE`` of the
            variance of the traits. Defaults to None: each leaf is from
            another plant.

    Returns:
        np.ndarray: RGB image, uint8, (size, size, 3).
    """
    noise = rng.standard_normal(len(TRAITS))
    if plant is not None:
        shared = plant.standard_normal(len(TRAITS))
        noise *= np.sqrt(1 - PLANT_SHARE)
        noise += np.sqrt(PLANT_SHARE) * shared
    leaf = grow_leaf(_vary(cultivar, noise * SPECIMEN_NOISE), rng)
    return paint_leaf(leaf, rng, size)


def _vary(cultivar, steps):
    """Change each trait by ``steps`` times its spread."""
    moved = {
        trait.name: getattr(cultivar, trait.name)
        + trait.metadata['spread'] * step
        for trait, step in zip(TRAITS, steps, strict=True)
    }
    return Cultivar(**moved)


def generate_leaves(
    num_leaves: int, seed: int = 0
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield names and BGR images of synthetic leaves, one per cultivar.

    Args:
        num_leaves (int): Number of leaves.
        seed (int): Random seed of their appearance. Defaults to 0.
    """
    rng = np.random.default_rng(seed)
    cultivars = make_cultivars(num_leaves, seed) if num_leaves else []
    for n, cultivar in enumerate(cultivars, start=1):
        image = draw_leaf(cultivar, rng, size=448)
        yield f'leaf {n}', np.ascontiguousarray(image[..., ::-1])

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models that fit chooses from, with what was measured of them."""

from mmclca.models import Variant

from .architecture import VIT

# the most accurate first: DeiT-Tiny, ten draws of three images a class of
# leaf40_white, the other 322 are the test. A smaller image without reduction
# is as good there, and worse on images whose classes differ in details.
ACCURACY = {
    Variant('EViT', 0.5, side, out_type='average'): accuracy
    for side, accuracy in (
        (224, 0.965),
        (208, 0.963),
        (192, 0.952),
        (160, 0.942),
        (144, 0.916),
    )
}
SIDES = tuple(variant.img_size for variant in ACCURACY)


def candidates_of(backbone: dict) -> tuple[Variant, ...]:
    """The models to choose from, the most accurate or largest one first.

    Args:
        backbone (dict): Settings of what the weights are of, see
            :func:`mmclca.fitting.architecture.backbone_of`. Those with an
            ``img_size`` take no other one.
    """
    if backbone['type'] == VIT:
        return tuple(ACCURACY)
    sides = (backbone['img_size'],) if 'img_size' in backbone else SIDES
    return tuple(Variant(None, 1.0, side) for side in sides)


def words(variant: Variant) -> str:
    """Describe a candidate: its reduction, or that all of it is read."""
    kind = 'the whole network'
    if variant.method is not None:
        kind = f'{variant.method} keep rate {variant.keep_rate}'
    return f'{kind}, {variant.img_size} px'

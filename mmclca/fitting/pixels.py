# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How the pixels that weights were trained on were normalized."""

import re

import timm

# mean and standard deviation of each channel, 0 to 255
PIXELS = dict(
    imagenet=((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    half=((127.5,) * 3, (127.5,) * 3),
)
HASH = re.compile(r'-[0-9a-f]{8,}$')


def pixels_of(name: str, pixels: str | None = None) -> tuple[tuple, str]:
    """Mean and standard deviation by timm's name of the weights.

    Args:
        name (str): Of the model, or a file's without its ending, such as
            ``deit_tiny_patch16_224-a1311bcf``.
        pixels (str, optional): A name in ``PIXELS`` in place of what timm
            says. Defaults to None.

    Returns:
        tuple[tuple, str]: Mean and standard deviation, three numbers each in
        0 to 255; a line where they are a guess, else empty.

    Raises:
        ValueError: If ``pixels`` is no such name.
    """
    if pixels is not None:
        if pixels not in PIXELS:
            raise ValueError(
                f'pixels {pixels!r} is not one of {", ".join(PIXELS)}'
            )
        return PIXELS[pixels], ''
    known = HASH.sub('', name)
    if not timm.is_model_pretrained(known):
        return PIXELS['imagenet'], (
            f'timm knows no model {name}: its pixels are taken to be '
            "normalized as ImageNet's (--pixels half for 0.5)"
        )
    cfg = timm.get_pretrained_cfg(known)
    mean, std = (
        [round(255 * x, 3) for x in values] for values in (cfg.mean, cfg.std)
    )
    return (tuple(mean), tuple(std)), ''

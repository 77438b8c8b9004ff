# Copyright (c) mmclca contributors. Licensed under Apache-2.0.


def scale_of_depth(num_layers: int) -> float:
    """What LayerScale begins with in a network of so many layers.

    Source: Touvron's thesis (2022), chapters 3 and 4, for CaiT and ResMLP.

    Args:
        num_layers (int): Layers, those of class attention not counted.
    """
    if num_layers <= 18:
        return 0.1
    return 1e-5 if num_layers <= 24 else 1e-6

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import sqrt
from statistics import NormalDist


def wilson(
    share: float, number: float, level: float = 0.95
) -> tuple[float, float]:
    """Wilson interval of a share, which holds for few images too.

    E. B. Wilson, `Probable Inference, the Law of Succession, and Statistical
    Inference <https://doi.org/10.1080/01621459.1927.10502953>`_ (1927).

    Args:
        share (float): The share that is right, 0 to 1.
        number (float): Of how many independent images.
        level (float): Level of the interval. Defaults to 0.95.

    Returns:
        tuple[float, float]: Its ends; 0 and 1 where there is no image.
    """
    if number == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = share + z * z / (2 * number)
    half = z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    scale = 1 + z * z / number
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Part of a fit's record about cues for classes outside the plant."""

from dataclasses import dataclass, field
from typing import Literal

from .wording import Advice, Description, about

# smallest share of the model's gain over chance worth a warning
# (patches with little attention may show plants)
SHARES = dict(border=0.4, patches=0.5, file=0.4)
# the cues of a probe, possible differences in new photos, and advice
PROBES = dict(
    border=(
        'the border',
        'background',
        'if plants fill the frame, this can be the plant itself; else '
        'photograph all classes in front of the same background, or crop',
    ),
    patches=(
        'the patches to which the model attends least',
        'background',
        'these may show plants, too; if not, photograph all classes in front '
        'of the same background',
    ),
    file=(
        'size, camera, day and JPEG quality',
        'camera or image size',
        'photograph all classes with the same camera and settings',
    ),
)


@dataclass(frozen=True)
class Shortcut:
    """Accuracy from cues outside the plant.

    Args:
        source (Literal['border', 'patches', 'file']): Its cues.
        accuracy (float): Accuracy of the probe.
        chance (float): Mean accuracy for permuted labels.
        highest (float): Highest accuracy for permuted labels.
        extremes (list[str]): The two most different classes. Defaults to
            [].
    """

    source: Literal['border', 'patches', 'file']
    accuracy: float
    chance: float
    highest: float
    extremes: list[str] = field(default_factory=list)

    def is_far_above_chance(self, accuracy: float | None) -> bool:
        """Whether the probe has much of the accuracy of the model."""
        gain = self.accuracy - self.chance
        return (
            accuracy is not None
            and self.accuracy > self.highest
            and gain >= SHARES[self.source] * (accuracy - self.chance)
        )

    def describe(self) -> Description:
        """Describe the probe, with advice."""
        seen, varied, advice = PROBES[self.source]
        return Description(
            (
                f'from {seen} alone, {about(self.accuracy)} of photos are '
                f'classified correctly (chance {about(self.chance)}): the '
                f'accuracy may not hold with another {varied}',
                advice,
            ),
            f'{advice[:1].upper()}{advice[1:]}.',
            Advice('to measure it, group photos by place', '--groups'),
        )

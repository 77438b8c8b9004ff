# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Part of a fit's record about cues for classes outside the plant."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from mmclca.languages import text

from .wording import Advice, Description, about, sentence

# smallest share of the model's gain over chance worth a warning
# (patches with little attention may show plants)
SHARES = dict(border=0.4, patches=0.5, file=0.4)
# kind of the cues, which selects the advice
REMEDIES = dict(border='background', patches='background', file='camera')


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

    def describe(self) -> str:
        """Describe the accuracy of the probe, and what it means."""
        return text(
            f'model.shortcut_{self.source}',
            share=about(self.accuracy),
            chance=about(self.chance),
        )


@dataclass(frozen=True)
class ShortcutsDescription:
    """Warnings about shortcuts, if any, and their advice.

    Args:
        warnings (tuple[str, ...]): Accuracy per probe.
        remedies (Description): Advice, one line per kind.
    """

    warnings: tuple[str, ...] = ()
    remedies: Description = Description()


def describe_shortcuts(shortcuts: Sequence[Shortcut]) -> ShortcutsDescription:
    """Describe shortcuts, with equal advice once."""
    if not shortcuts:
        return ShortcutsDescription()
    remedies = dict.fromkeys(
        text(f'model.remedy_{REMEDIES[x.source]}') for x in shortcuts
    )
    return ShortcutsDescription(
        warnings=tuple(x.describe() for x in shortcuts),
        remedies=Description(
            tuple(remedies),
            ' '.join(map(sentence, remedies)),
            Advice(text('model.group_places'), '--groups'),
        ),
    )

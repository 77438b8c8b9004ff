# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Part of a fit's record about prediction sets with a guarantee."""

from dataclasses import dataclass, field

from mmclca.evaluation.conformal import SetSizes, count_needed
from mmclca.languages import text

from .wording import Description, about


@dataclass(frozen=True)
class Guarantee:
    """Prediction sets with the class for most new photos.

    Args:
        level (int): Share of these photos in percent.
        unit (str): What counts: 'photo', 'group' or 'day'.
        number (int): Count of photos, groups or days behind the sets.
        sizes (SetSizes, optional): Set sizes. Defaults to None: there
            are too few photos.
        problem (str): Why there are no sets. Defaults to ''.
        coarse_classes (dict[str, str]): Coarse class per class. Defaults
            to {}: no coarse classes.
    """

    level: int
    unit: str
    number: int
    sizes: SetSizes | None = None
    problem: str = ''
    coarse_classes: dict[str, str] = field(default_factory=dict)

    def describe(self) -> Description:
        """Describe how many classes the sets have."""
        if self.sizes is None:
            return Description((self._describe_problem(),))
        key = 'model.coarse_sets' if self.coarse_classes else 'model.sets'
        line = text(
            key,
            level=self.level,
            one=about(self.sizes.one_class),
            two=about(self.sizes.two_classes),
            coarse=about(self.sizes.coarse_class),
        )
        return Description((line,), text('model.sets_explained'))

    def _describe_problem(self) -> str:
        """Describe why there are no sets."""
        needed = count_needed(self.level)
        if self.number < needed:
            return text(
                'model.too_few',
                level=self.level,
                needed=needed,
                units=text(f'model.kinds_{self.unit}'),
                number=self.number,
            )
        unit = text(f'model.kind_{self.unit}')
        return text('model.too_many_single', level=self.level, unit=unit)

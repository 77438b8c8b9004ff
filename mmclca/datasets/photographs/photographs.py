# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Photographs:
    """Photographs and their classes.

    Args:
        paths (list[str]): Absolute paths, each once.
        labels (list[int]): The class of each, a position in ``classes``.
        classes (list[str]): Names of the classes, sorted.
        groups (list[str], optional): What each shows, such as the number of
            a plant: those of one group are not to be trained and tested on.
            Defaults to None: each is a group of its own.
        splits (list[str]): 'train', 'val' or 'test' each, or '' where nobody
            has split them.
        source (str): The folder or table that they are from.
        left_out (dict[str, str]): Files that were found there and not taken,
            and why.
    """

    paths: list[str]
    labels: list[int]
    classes: list[str]
    groups: list[str] | None
    splits: list[str]
    source: str
    left_out: dict[str, str] = field(default_factory=dict)

    def __len__(self):
        return len(self.paths)

    def select(self, indices: Sequence[int]) -> 'Photographs':
        """Some of them; the classes stay as they are.

        Args:
            indices (Sequence[int]): Their positions.
        """

        def chosen(values):
            return [values[i] for i in indices]

        return replace(
            self,
            paths=chosen(self.paths),
            labels=chosen(self.labels),
            groups=None if self.groups is None else chosen(self.groups),
            splits=chosen(self.splits),
        )

    def counts(self) -> dict[str, int]:
        """Photographs by class, of all splits."""
        count = Counter(self.labels)
        return {name: count[i] for i, name in enumerate(self.classes)}

    def to_train(self) -> list[int]:
        """Positions of those that are not kept for validation or a test."""
        held_out = 'val', 'test'
        return [i for i, s in enumerate(self.splits) if s not in held_out]

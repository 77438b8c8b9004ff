# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from .spellings import clean

_WORDS = dict(
    train=r'train(ing|val)?|训练(数据)?集?',
    val=r'val(id(ation)?)?|dev(elopment)?|eval(uation)?|验证(数据)?集?',
    test=r'test(ing)?|测试(数据)?集?',
    unlabeled=r'(un|non?) ?label+(ed|s)?|无标签',
)


def words_of(name: str) -> str:
    """Return the words of a name in lower case: 'train images 2' for
    ``TrainImages_2``."""
    name = re.sub(r'(?<=[^\W\dA-Z])(?=[A-Z])', ' ', clean(name))
    name = re.sub(r'(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])', ' ', name)
    return re.sub(r'[\W_]+', ' ', name).strip().lower()


def split_named(name: str) -> str | None:
    """Return the split that a folder or a cell of a table names by a word,
    such as ``Training Set``, or 'unlabeled'; None for none or several."""
    words = words_of(name)
    found = [
        split
        for split, word in _WORDS.items()
        if re.search(rf'\b({word})(sets?|data|images?|imgs?)?\b', words)
    ]
    return found[0] if len(found) == 1 else None


SPLITS = 'train', 'val', 'test'


@dataclass(frozen=True)
class LabeledImages:
    """Photographs and their classes.

    Args:
        paths (list[str]): Their files, each once.
        labels (list[int | None]): The class of each, a position in
            ``classes``; None where it has none.
        classes (list[str]): Names of the classes.
        groups (list[str], optional): What each shows, such as the number of
            a plant: those of one group are not to be trained and tested on.
            Defaults to None: each is a group of its own.
        splits (list[str]): 'train', 'val' or 'test' each, or '' where nobody
            has split them.
        source (str): The folder or table that they are from.
        left_out (dict[str, str]): Files that were found there and not taken,
            and why.
        skipped (list[str]): Hidden images, and folders of operating systems
            and storage devices.
        notes (list[str]): What was assumed, a line each.
    """

    paths: list[str]
    labels: list[int | None]
    classes: list[str]
    groups: list[str] | None
    splits: list[str]
    source: str
    left_out: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def named(
        cls,
        paths: list[str],
        names: list[str | None],
        source: str,
        order: Sequence[str] = (),
    ) -> 'LabeledImages':
        """Photographs by the names of their classes, None for no class.

        Classes are those that have photographs, in an order that may be
        given, the others sorted: labels without a name as numbers.
        """
        found = {*names} - {None}
        rest = sorted(
            found.difference(order),
            key=lambda name: (len(name) * name.isdecimal(), name),
        )
        classes = [name for name in order if name in found] + rest
        numbers = {name: i for i, name in enumerate(classes)}
        labels = [numbers.get(name) for name in names]
        return cls(paths, labels, classes, None, [''] * len(paths), source)

    def __len__(self):
        return len(self.paths)

    @property
    def names(self) -> list[str | None]:
        """The name of the class of each, None where it has none."""
        return [None if i is None else self.classes[i] for i in self.labels]

    def select(self, indices: Sequence[int]) -> 'LabeledImages':
        """Some of them, by position; the classes stay as they are."""
        listed = 'paths', 'labels', 'groups', 'splits'
        values = {name: vars(self)[name] for name in listed}
        chosen = {k: v and [v[i] for i in indices] for k, v in values.items()}
        return replace(self, **chosen)

    def of_classes(self, labels: Sequence[int]) -> 'LabeledImages':
        """Return those of some classes, numbered anew in this order."""
        number = {label: i for i, label in enumerate(labels)}
        kept = [i for i, label in enumerate(self.labels) if label in number]
        return replace(
            self.select(kept),
            labels=[number[self.labels[i]] for i in kept],
            classes=[self.classes[label] for label in labels],
        )

    def without(self, paths: Container[str]) -> 'LabeledImages':
        """Drop some files; the classes stay as they are."""
        return self.select(
            [i for i, path in enumerate(self.paths) if path not in paths]
        )

    def counts(self) -> dict[str, int]:
        """Photographs by class, of all splits."""
        count = Counter(self.labels)
        return {name: count[i] for i, name in enumerate(self.classes)}

    def to_train(self) -> list[int]:
        """Positions of those that are not kept for validation or a test."""
        held_out = 'val', 'test'
        return [i for i, s in enumerate(self.splits) if s not in held_out]

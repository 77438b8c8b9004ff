# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from mmclca.languages import Note

from .captures import Capture
from .spellings import normalize_name

_WORDS = dict(
    train=r'train(ing|val)?|训练(数据)?集?',
    val=r'val(id(ation)?)?|dev(elopment)?|eval(uation)?|验证(数据)?集?',
    test=r'test(ing)?|测试(数据)?集?',
    unlabeled=r'(un|non?) ?label+(ed|s)?|无标签',
)


def split_words(name: str) -> str:
    """Split ``TrainImages_2`` into lower-case words: 'train images 2'."""
    name = re.sub(r'(?<=[^\W\dA-Z])(?=[A-Z])', ' ', normalize_name(name))
    name = re.sub(r'(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])', ' ', name)
    return re.sub(r'[\W_]+', ' ', name).strip().lower()


def recognize_split(name: str) -> str | None:
    """Return the split in a name such as ``Training Set``.

    It is 'train', 'val', 'test' or 'unlabeled', or None if ambiguous.
    """
    title = split_words(name)
    splits = [
        split
        for split, word in _WORDS.items()
        if re.search(rf'\b({word})(sets?|data|images?|imgs?)?\b', title)
    ]
    return splits[0] if len(splits) == 1 else None


SPLITS = 'train', 'val', 'test'


@dataclass(frozen=True)
class LabeledImages:
    """Image files with labels, groups and splits.

    Args:
        paths (list[str]): Unique paths.
        labels (list[int | None]): Positions in ``classes``; None for images
            without a class.
        classes (list[str]): Class names.
        groups (list[str], optional): Group of each image, such as the number
            of a plant; a group is never split between training and test.
            Defaults to None: each image is its own group.
        splits (list[str]): 'train', 'val' or 'test', or '' for images without
            a split.
        source (str): Folder or table of the images.
        unused (dict[str, Note]): Reasons for unused files, by path.
        hidden (list[str]): Hidden images and system folders.
        notes (list[Note]): Assumptions, one line each.
        captures (dict[str, Capture]): Day, camera and folder by path.
    """

    paths: list[str]
    labels: list[int | None]
    classes: list[str]
    groups: list[str] | None
    splits: list[str]
    source: str
    unused: dict[str, Note] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    captures: dict[str, Capture] = field(default_factory=dict)

    @classmethod
    def from_names(
        cls,
        paths: list[str],
        names: list[str | None],
        source: str,
        order: Sequence[str] = (),
    ) -> 'LabeledImages':
        """Create images from class names; None means no class.

        Classes without images are dropped. Classes not in ``order`` follow,
        sorted by name; numbers are sorted as numbers.
        """
        present = {name for name in names if name is not None}
        unordered = sorted(
            present.difference(order),
            key=lambda name: (len(name) * name.isdecimal(), name),
        )
        classes = [name for name in order if name in present] + unordered
        numbers = {name: i for i, name in enumerate(classes)}
        labels = [None if x is None else numbers[x] for x in names]
        return cls(paths, labels, classes, None, [''] * len(paths), source)

    def __len__(self):
        return len(self.paths)

    @property
    def names(self) -> list[str | None]:
        """Class name of each image, or None."""
        return [None if i is None else self.classes[i] for i in self.labels]

    def select(self, indices: Sequence[int]) -> 'LabeledImages':
        """Select images by position; keep all classes."""
        return replace(
            self,
            paths=[self.paths[i] for i in indices],
            labels=[self.labels[i] for i in indices],
            groups=self.groups and [self.groups[i] for i in indices],
            splits=self.splits and [self.splits[i] for i in indices],
        )

    def select_classes(self, labels: Sequence[int]) -> 'LabeledImages':
        """Select classes, and renumber them in the given order."""
        number = {label: i for i, label in enumerate(labels)}
        kept = [i for i, label in enumerate(self.labels) if label in number]
        selected = self.select(kept)
        return replace(
            selected,
            labels=[None if x is None else number[x] for x in selected.labels],
            classes=[self.classes[label] for label in labels],
        )

    def without(self, paths: Container[str]) -> 'LabeledImages':
        """Drop images by path; keep all classes."""
        return self.select(
            [i for i, path in enumerate(self.paths) if path not in paths]
        )

    def counts(self) -> dict[str, int]:
        """Number of images per class, over all splits."""
        count = Counter(self.labels)
        return {name: count[i] for i, name in enumerate(self.classes)}

    def to_train(self) -> list[int]:
        """Positions of the images not in validation or test."""
        held_out = 'val', 'test'
        return [i for i, s in enumerate(self.splits) if s not in held_out]

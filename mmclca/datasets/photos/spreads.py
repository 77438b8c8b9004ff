# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How classes are spread over days, cameras, folders and named groups.

If each class was photographed on a day of its own, a model may tell days
apart instead of classes, and cross-validation cannot notice it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mmclca.errors import Error
from mmclca.languages import Note

from .captures import Capture
from .labeled_images import LabeledImages

Kind = Literal['day', 'camera', 'folder', 'group']
CAPTURE_KINDS = ('day', 'folder')  # named groups, instead of an expression
_ADVICE = dict(
    day='name the files by date, or choose other groups',
    folder='put the photos of each plant or place into a folder inside the '
    'folder of its class',
)
MIN_KNOWN = 0.9  # share of photos with a day or camera, to compare classes
# words in names of single plants and their parts, in some languages
_PLANT = re.compile(
    r'(plant|tree|leaf|leave|shrub|seedling|individual|specimen|sample|fruit'
    r'|flower|grain|seed|herbar|pflanze|blatt|baum|arbre|feuille|planta|hoja'
    r'|arbol|folha|foglia|pianta|bitki|yaprak|rastenie|植株|叶|葉|株)'
    r's?[\W_]*\d+',
    re.IGNORECASE,
)

# folders of single plants: a number, maybe after such a word
_NUMBERED = re.compile(
    rf'(^|/)({_PLANT.pattern}|\W*\d{{1,4}}\W*)(/|$)', re.IGNORECASE
)


@dataclass(frozen=True)
class Spread:
    """Spread of the training photos of each class over one property.

    Args:
        kind (str): 'day', 'camera', 'folder' or 'group'.
        number (int): Distinct values.
        single (dict[str, str]): Classes with one value, '' if it is unknown.
        coinciding (list[str]): Classes in ``single`` whose value some class
            does not share, so that the value helps to guess the class.
        classes_per_value (tuple[int, int]): Fewest and most classes that
            share a value.
    """

    kind: Kind
    number: int
    single: dict[str, str]
    coinciding: list[str]
    classes_per_value: tuple[int, int]

    @property
    def is_across(self) -> bool:
        """Whether each class has at least two values."""
        return not self.single


def compute_spread(
    kind: Kind, values: Sequence[str], names: Sequence[str | None]
) -> Spread:
    """Compute the spread of photos with a value and a class name each."""
    values_of, classes_of = defaultdict(set), defaultdict(set)
    for value, name in zip(values, names, strict=True):
        values_of[name].add(value)
        classes_of[value].add(name)
    single = {
        str(name): next(iter(distinct))
        for name, distinct in values_of.items()
        if len(distinct) == 1
    }
    numbers = [len(classes) for classes in classes_of.values()]
    return Spread(
        kind=kind,
        number=len(classes_of),
        single=single,
        coinciding=[
            name
            for name, value in single.items()
            if len(classes_of[value]) < len(values_of)
        ],
        classes_per_value=(min(numbers), max(numbers)),
    )


def find_spreads(photos: LabeledImages) -> list[Spread]:
    """Compare classes by days, cameras, folders and named groups.

    Properties that are unknown for more than a tenth of the photos are left
    out, as are folders unless two classes share a folder name, and folders of
    single plants.
    """
    captures = [photos.captures.get(x, Capture()) for x in photos.paths]
    folders = [capture.folder for capture in captures]
    values_by_kind: dict[Kind, list[str]] = {
        'day': [capture.day for capture in captures],
        'camera': [capture.camera for capture in captures],
        'folder': folders,
    }
    spreads = [
        compute_spread(kind, values, photos.names)
        for kind, values in values_by_kind.items()
        if values and sum(map(bool, values)) >= MIN_KNOWN * len(values)
    ]
    are_places = not any(map(_NUMBERED.search, folders))
    spreads = [
        spread
        for spread in spreads
        if spread.kind != 'folder'
        or (are_places and spread.classes_per_value[1] > 1)
    ]
    if photos.groups is not None:
        spreads.append(compute_spread('group', photos.groups, photos.names))
    return spreads


def group_by_day(photos: LabeledImages) -> list[str]:
    """Return the day of each photo; photos without one share a group."""
    return [photos.captures[path].day for path in photos.paths]


def group_by_capture(photos: LabeledImages, kind: str) -> LabeledImages:
    """Group photos by their day or by folders below the class folders.

    Args:
        photos (LabeledImages): Photos with captures.
        kind (str): 'day' or 'folder'.

    Raises:
        Error: If it is unknown for a photo, or the same for all.
    """
    values = []
    for path in photos.paths:
        capture = photos.captures.get(path, Capture())
        values.append(capture.day if kind == 'day' else capture.folder)
    if number := values.count(''):
        raise Error(
            f'groups={kind!r}: the {kind} of {number} of {len(values)} photos '
            f'is unknown; {_ADVICE[kind]}'
        )
    if len({*values}) == 1:
        raise Error(
            f'groups={kind!r}: all photos have the {kind} {values[0]!r}; at '
            'least two are needed'
        )
    return separate_classes(replace(photos, groups=values))


def separate_classes(photos: LabeledImages) -> LabeledImages:
    """Separate groups of plants that are numbered within each class.

    ``plant1`` of two classes are two plants, since a plant has one class;
    this is noted. Other groups, such as days and places, may have photos of
    several classes, as may groups of numbers only.
    """
    groups = photos.groups
    if groups is None:
        return photos
    pairs = sorted({*zip(groups, photos.names, strict=True)}, key=str)
    number = Counter(group for group, _ in pairs)
    shared = [group for group, classes in number.items() if classes > 1]
    if not shared or not all(map(_PLANT.search, number)):
        return photos
    note = Note(
        'photos.numbered',
        dict(
            group=shared[0],
            classes=str(number[shared[0]]),
            pairs=str(len(pairs)),
            groups=str(len(number)),
        ),
    )
    return replace(
        photos,
        groups=[
            f'{name}/{group}'
            for name, group in zip(photos.names, groups, strict=True)
        ],
        notes=[*photos.notes, note],
    )

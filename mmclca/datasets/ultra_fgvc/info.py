# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Table of the Ultra-FGVC datasets.

Class and image counts follow the lists of the CLCA authors. ``train`` and
``val`` divide the official training images (``trainval``); the papers of the
benchmark train on ``trainval`` and report results on ``test``.
"""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from mmclca.utils.messages import check_choice

SPLITS = ('train', 'val', 'trainval', 'test')
STAGES = ('R1', 'R3', 'R4', 'R5', 'R6')
# validation stage of SoyAgeing as a whole
VAL_STAGE = 'R6'
_STAGE = re.compile(r'(?:^|[/_])(R[13456])(?=[/_])')


@dataclass(frozen=True)
class UltraFGVCInfo:
    """Names, counts and file names of an Ultra-FGVC dataset."""

    name: str
    title: str
    num_classes: int
    counts: dict
    class_pattern: str
    file_format: str
    folders: tuple
    parquet: str
    stages: tuple = ()

    @property
    def numbered(self):
        """bool: Whether the classes are named 1, 2, 3, ..."""
        return self.class_pattern.startswith(r'(\d')

    @property
    def parts(self):
        """tuple: One dataset per stage, or this one without stages."""
        if len(self.stages) < 2:
            return (self,)
        return tuple(SETS[f'{self.name}_{s.lower()}'] for s in self.stages)


def plain(name):
    """Reduce a name to lower-case letters and digits."""
    return re.sub('[^a-z0-9]', '', name.lower())


def get_info(name):
    """Look up a dataset by any spelling of its name.

    Raises:
        Error: If the dataset is unknown.
    """
    known = {plain(key): key for key in SETS}
    key = known.get(plain(name), name)
    check_choice(SETS, dataset=key)
    return SETS[key]


def _numbered(title, num_classes, folder, parquet):
    """Describe a dataset: two train, one val, three test images per class."""
    n = num_classes
    return UltraFGVCInfo(
        plain(title),
        title,
        num_classes,
        dict(train=2 * n, val=n, trainval=3 * n, test=3 * n),
        class_pattern=r'(\d+)_\d+',
        file_format='{cls}_{k}_{split}',
        folders=(plain(title), folder),
        parquet=f'{parquet}_dataset.parquet',
    )


_AGEING = UltraFGVCInfo(
    'soyageing',
    'SoyAgeing',
    198,
    dict(train=3960, val=990, trainval=4950, test=4950),
    class_pattern=r'(yd\d+)_R\d',
    file_format='{cls}_{stage}_{k}_{split}',
    folders=('soyageing', 'soyaging', 'soybeanageing', 'soybeanaging'),
    parquet='',
    stages=STAGES,
)


def _stage(stage):
    key = stage.lower()
    return replace(
        _AGEING,
        name=f'soyageing_{key}',
        title=f'SoyAgeing-{stage}',
        counts=dict(trainval=990, test=990),
        folders=(key, *(f'{name}{key}' for name in _AGEING.folders)),
        parquet=f'soy_ageing_{stage}_dataset.parquet',
        stages=(stage,),
    )


_ALL = (
    _numbered('Cotton80', 80, 'cotton', 'cotton80'),
    _numbered('SoyLocal', 200, 'soybean200', 'soybean'),
    UltraFGVCInfo(
        'soygene',
        'SoyGene',
        1110,
        dict(train=9562, val=3201, trainval=12763, test=11143),
        class_pattern='([^-]+)-',
        file_format='{cls}-1-{k:03d}_1_{split}',
        folders=('soygene', 'soybeangene'),
        parquet='soygene_dataset.parquet',
    ),
    _AGEING,
    *map(_stage, STAGES),
    _numbered('SoyGlobal', 1938, 'soybean2000', 'soyglobal'),
)
SETS = {info.name: info for info in _ALL}


class LeafImage(NamedTuple):
    """Row of a dataset list: one image."""

    path: str
    file_name: str
    class_name: str
    given: str
    split: str
    stage: str = ''
    label: int | None = None


def canonical(class_name):
    """Remove leading zeros from a class number."""
    return str(int(class_name)) if class_name.isdecimal() else class_name


def find_stage(path, info):
    """Find the growth stage in a path; empty for a dataset without stages."""
    # only R1/images/yd012_R1_1_train.png, since folders above may match
    stages = _STAGE.findall('/'.join(path.split('/')[-3:]))
    return stages[-1] if info.stages and stages else ''

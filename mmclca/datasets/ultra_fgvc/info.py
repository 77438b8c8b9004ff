# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Table of the Ultra-FGVC datasets.

Class and image counts follow the lists of the CLCA authors. ``train`` and
``val`` divide the official training images (``trainval``); the papers of the
benchmark train on ``trainval`` and report results on ``test``.
"""

import re
from dataclasses import dataclass

from mmclca.utils.messages import check_choice

SPLITS = ('train', 'val', 'trainval', 'test')
STAGES = ('R1', 'R3', 'R4', 'R5', 'R6')
# validation stage of SoyAgeing as a whole
VAL_STAGE = 'R6'


@dataclass(frozen=True)
class UltraFGVCInfo:
    """Names, counts and file names of an Ultra-FGVC dataset.

    Args:
        name (str): Name in configs.
        title (str): Name in the papers.
        num_classes (int): Number of cultivars.
        counts (dict[str, int]): Images per split.
        class_pattern (str): Pattern of file names; its group is the class.
        file_format (str): Format of file names without an extension, for
            ``cls``, ``stage``, ``split`` and the number ``k``.
        parquet (str): File in the mirror; '' for several stages.
        stages (tuple[str, ...]): Growth stages. Defaults to ().
    """

    name: str
    title: str
    num_classes: int
    counts: dict[str, int]
    class_pattern: str
    file_format: str
    parquet: str
    stages: tuple[str, ...] = ()

    @property
    def is_numbered(self) -> bool:
        """Whether the classes are named 1, 2, 3, ..."""
        return self.class_pattern.startswith(r'(\d')

    @property
    def parts(self) -> tuple['UltraFGVCInfo', ...]:
        """One dataset per stage, or this one without stages."""
        if len(self.stages) < 2:
            return (self,)
        return tuple(SETS[f'{self.name}_{x.lower()}'] for x in self.stages)


def get_info(name: str) -> UltraFGVCInfo:
    """Look up a dataset by any spelling of its name.

    Raises:
        Error: If the dataset is unknown.
    """
    key = _simplify(str(name))
    names = {_simplify(title): title for title in SETS}
    name = names.get(key, name)
    check_choice(SETS, dataset=name)
    return SETS[name]


def _simplify(name: str) -> str:
    """Reduce a name to lower-case letters and digits."""
    return re.sub('[^a-z0-9]', '', name.lower())


def _define_numbered(
    title: str, num_classes: int, parquet: str
) -> UltraFGVCInfo:
    """Describe a dataset: two train, one val, three test images per class."""
    return UltraFGVCInfo(
        name=_simplify(title),
        title=title,
        num_classes=num_classes,
        counts=dict(
            train=2 * num_classes,
            val=num_classes,
            trainval=3 * num_classes,
            test=3 * num_classes,
        ),
        class_pattern=r'(\d+)_\d+',
        file_format='{cls}_{k}_{split}',
        parquet=f'{parquet}_dataset.parquet',
    )


def _define_ageing(stage: str = '') -> UltraFGVCInfo:
    """Describe SoyAgeing, or one of its growth stages."""
    counts = dict(train=3960, val=990, trainval=4950, test=4950)
    return UltraFGVCInfo(
        name=f'soyageing_{stage.lower()}' if stage else 'soyageing',
        title=f'SoyAgeing-{stage}' if stage else 'SoyAgeing',
        num_classes=198,
        counts=dict(trainval=990, test=990) if stage else counts,
        class_pattern=r'(yd\d+)_R\d',
        file_format='{cls}_{stage}_{k}_{split}',
        parquet=f'soy_ageing_{stage}_dataset.parquet' if stage else '',
        stages=(stage,) if stage else STAGES,
    )


_ALL = (
    _define_numbered('Cotton80', 80, 'cotton80'),
    _define_numbered('SoyLocal', 200, 'soybean'),
    UltraFGVCInfo(
        name='soygene',
        title='SoyGene',
        num_classes=1110,
        counts=dict(train=9562, val=3201, trainval=12763, test=11143),
        class_pattern='([^-]+)-',
        file_format='{cls}-1-{k:03d}_1_{split}',
        parquet='soygene_dataset.parquet',
    ),
    _define_ageing(),
    *map(_define_ageing, STAGES),
    _define_numbered('SoyGlobal', 1938, 'soyglobal'),
)
SETS = {info.name: info for info in _ALL}

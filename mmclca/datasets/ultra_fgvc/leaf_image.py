# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One image of a set, and what its names tell."""

import re
from typing import NamedTuple

SPLIT_WORDS = dict(train='train', val='val', validation='val', test='test')
_STAGE = re.compile(r'(?:^|[/_])(R[13456])(?=[/_])')


class LeafImage(NamedTuple):
    """One image of a set, as a layout lists it.

    Args:
        path (str): Where mmengine reads it.
        file_name (str): Its name without folders; a row number in a parquet
            file that keeps no names.
        class_name (str): Its class, called alike in every layout.
        given (str): Its class as the layout calls it: a label, a folder.
        split (str): The list that it is in.
        stage (str): Growth stage, where the layout tells it; else empty.
        label (int, optional): The number of its class, once all classes are
            known. Defaults to None.
    """

    path: str
    file_name: str
    class_name: str
    given: str
    split: str
    stage: str
    label: int | None = None


def canonical(class_name):
    """Call a class 7 where a file says 007."""
    return str(int(class_name)) if class_name.isdecimal() else class_name


def stage_of(path, info):
    """Find the growth stage in a path; empty where the set has none."""
    if not info.stages:
        return ''
    # R1/images/yd012_R1_1_train.png, not a folder further up.
    stages = _STAGE.findall('/'.join(path.split('/')[-3:]))
    return stages[-1] if stages else ''

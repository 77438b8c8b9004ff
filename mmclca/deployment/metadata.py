# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
from collections.abc import Sequence
from dataclasses import asdict

from mmengine.config import Config
from torch import nn

from mmclca.models import reduces
from mmclca.version import __version__

from .preprocessing import Preprocessing


def metadata_of(
    config: Config,
    model: nn.Module,
    preprocessing: Preprocessing,
    classes: Sequence[str],
    threshold: dict | None = None,
) -> dict[str, str]:
    """What travels in an exported file beside the weights.

    Args:
        config (Config): The config of the model.
        model (nn.Module): The classifier.
        preprocessing (Preprocessing): What is done to an image before it.
        classes (Sequence[str]): Names of the classes.
        threshold (dict, optional): ``score`` and ``threshold``, below which
            an image is of none of these. Defaults to None.

    Returns:
        dict[str, str]: Texts by name: ``preparation`` and ``classes`` as
        JSON; ``threshold``, JSON, null without one; the text of the
        ``config``; ``mmclca_version``; ``method``, the
        name of the reducer or 'none'; ``keep_rate``, JSON, a number or one a
        stage.
    """
    reducer = model.backbone.reducer if reduces(model.backbone) else None
    return dict(
        # the name that exported files have had from the start
        preparation=json.dumps(asdict(preprocessing)),
        classes=json.dumps(list(classes), ensure_ascii=False),
        threshold=json.dumps(threshold),
        config=config.pretty_text,
        mmclca_version=__version__,
        method=type(reducer).__name__ if reducer else 'none',
        keep_rate=json.dumps(reducer.keep_rate if reducer else 1.0),
    )

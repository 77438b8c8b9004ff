# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether two configs lead to the same result."""

import json
from hashlib import sha256
from pathlib import PurePath

# sections that decide what a run learns and how it is tested
DECIDING = (
    'model',
    'train_dataloader',
    'test_dataloader',
    'test_evaluator',
    'optim_wrapper',
    'param_scheduler',
    'auto_scale_lr',
    'train_cfg',
    'test_cfg',
    'load_from',
    'randomness',
    'custom_hooks',
)
# settings within them that change the pace alone
PACE = ('num_workers', 'persistent_workers', 'pin_memory', 'val_interval')


def config_hash(cfg: dict) -> str:
    """Sixteen digits that tell configs apart whose results may differ.

    Of paths only the last part counts: a result holds on other machines,
    whose data and weights lie elsewhere.

    Args:
        cfg (Config): The whole config of a run.
    """
    deciding = {name: _plain(cfg.get(name)) for name in DECIDING}
    text = json.dumps(deciding, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def _plain(value):
    if isinstance(value, dict):
        # the folder of all sets; other types name that of their own set
        of_all = value.get('type') == 'mmclca.UltraFGVC'
        left_out = (*PACE, 'data_root') if of_all else PACE
        kept = {k: v for k, v in value.items() if k not in left_out}
        return {str(key): _plain(inner) for key, inner in kept.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, str) and '://' not in value:
        return PurePath(value).name
    return value

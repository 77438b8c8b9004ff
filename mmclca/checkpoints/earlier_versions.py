# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Convert the names of earlier checkpoints and model folders.

Stored configs and fit.json keep the names of their version.
They are converted once, when they are read, so other code knows the present
names only.
"""

from collections.abc import Mapping

# old registered type -> new type, both without scope
TYPES: dict[str, str] = {
    'AtLeastSampler': 'MinLengthSampler',
    'FiniteHook': 'CheckInvalidLossHook',
    'KeepRateWarmUpHook': 'KeepRateScheduleHook',
    'LoadPhotograph': 'LoadPhoto',
}
# (new type without scope, old option) -> new option
OPTIONS: dict[tuple[str, str], str] = {
    ('ResMLP', 'communication'): 'token_mixer',
    ('ResMLP', 'ending'): 'pooling',
    ('ToMe', 'fuse'): 'merge',
    ('DistilledHead', 'fusion'): 'output',
    ('TokenReductionRetriever', 'stage'): 'feature',
}
# old key in fit.json -> new key; the key of an inner value is written with
# the old keys around it, such as 'probe.share'
RECORD_KEYS: dict[str, str] = {
    'held_out': 'test',
    'probe.share': 'late_cls_weight',
    'probe.strength': 'alpha',
    'series': 'near_duplicate_counts',
    'training.holdout': 'finetune_val',
    'call.photographs': 'photos',
    'learning_curve.photographs': 'photos',
    'photographs': 'photos',
}

# old name of a file in a model folder -> new name
FILE_NAMES = {'evidence.safetensors': 'cv_probabilities.safetensors'}


def convert_config(config: dict) -> dict:
    """Return settings with the present names of types and options.

    Args:
        config (dict): Plain settings, which are not changed.
    """
    return {
        name: _rename_settings(value, TYPES, OPTIONS)
        for name, value in config.items()
    }


def restore_config(config: dict) -> dict:
    """Return settings with the names of the first version.

    Digests of models are computed from them, so that thresholds, galleries
    and stored features stay valid if a name changes.

    Args:
        config (dict): Plain settings with present names, which are not
            changed.
    """
    first_types = {new: old for old, new in TYPES.items()}
    first_options = {
        (type_name, new): old for (type_name, old), new in OPTIONS.items()
    }
    return {
        name: _rename_settings(value, first_types, first_options)
        for name, value in config.items()
    }


def _rename_settings(
    settings, types: dict[str, str], options: dict[tuple[str, str], str]
):
    """Rename types and options in a value of a config, at all depths.

    Args:
        settings: Value of a config.
        types (dict[str, str]): New type per type, both without scope.
        options (dict[tuple[str, str], str]): New option per present type and
            option.
    """
    if isinstance(settings, list | tuple):
        values = [_rename_settings(x, types, options) for x in settings]
        return type(settings)(values)
    if not isinstance(settings, dict):
        return settings
    settings = {
        name: _rename_settings(value, types, options)
        for name, value in settings.items()
    }
    registered = settings.get('type')
    if not isinstance(registered, str):
        return settings
    scope, dot, name = registered.rpartition('.')
    settings['type'] = f'{scope}{dot}{types.get(name, name)}'
    present = TYPES.get(name, name)
    return {
        options.get((present, option), option): value
        for option, value in settings.items()
    }


def convert_record(record: Mapping) -> dict:
    """Return the content of fit.json with the present keys.

    Args:
        record (Mapping): Parsed JSON, which is not changed.
    """
    content = _convert_keys(record, '')
    if isinstance(content.get('problems'), list):
        # problems were lines such as 'Skipped: 1 duplicate'
        content['problems'] = [
            dict(kind='line', reason=problem)
            if isinstance(problem, str)
            else problem
            for problem in content['problems']
        ]
    cost = content.get('cost')
    if isinstance(cost, dict) and isinstance(cost.get('busy'), str):
        cost['busy'] = cost['busy'].removeprefix('; ')
    return content


def _convert_keys(content, path: str):
    """Convert the keys of a JSON value, at all depths."""
    if isinstance(content, list):
        return [_convert_keys(item, path) for item in content]
    if not isinstance(content, Mapping):
        return content
    return {
        RECORD_KEYS.get(f'{path}{key}', key): _convert_keys(
            value, f'{path}{key}.'
        )
        for key, value in content.items()
    }

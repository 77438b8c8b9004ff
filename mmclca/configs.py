# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read configs, override and check their settings."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import signature
from pathlib import Path

from mmengine.config import Config, config
from mmengine.runner import Runner
from mmengine.utils import to_2tuple
from mmpretrain import list_models
from mmpretrain.apis.model import ModelHub

import mmclca.registry  # noqa: F401, registers the names of our configs
from mmclca.building import config_errors
from mmclca.errors import Error
from mmclca.utils.messages import check_integer

# settings read by mmengine and the tools, besides the runner's arguments
MORE_SETTINGS = (
    'auto_scale_lr',
    'compile',
    'efficient_conv_bn_eval',
    'find_unused_parameters',
    'model_wrapper_cfg',
    'runner_type',
    'sync_bn',
    'tta_model',
    'tta_pipeline',
)


def read_config(name, options={}):
    """Read a config by its path or name, and override settings.

    Raises:
        FileNotFoundError: If there is neither; suggests a similar name.
        Error: See :func:`open_config`.
    """
    is_file = Path(name).is_file()
    cfg = open_config(name) if is_file else _named_config(str(name))
    merge_options(cfg, options)
    return cfg


def open_config(path) -> Config:
    """Parse a config file.

    Raises:
        OSError: If the file cannot be opened.
        Error: If it is invalid, or its code raises an error.
    """
    try:
        with _byte_order_marks_skipped():
            return Config.fromfile(path)
    except OSError:
        raise
    except Exception as error:  # configs are code, which may raise anything
        reason = f'{type(error).__name__}: {error}'
        raise Error(f'{path} cannot be read ({reason})') from error


@contextmanager
def _byte_order_marks_skipped() -> Iterator[None]:
    """Let mmengine read configs with a byte order mark."""

    def open_text(file, mode='r', encoding=None):
        encoding = 'utf-8-sig' if mode == 'r' else encoding
        return open(file, mode, encoding=encoding)

    config.open = open_text
    try:
        yield
    finally:
        del config.open


def _named_config(name):
    if name.lower() in list_models():
        return ModelHub.get(name).config
    close = get_close_matches(Path(name).stem, list_models(), n=1)
    hint = f' (do you mean {close[0]}?)' if close else ''
    raise FileNotFoundError(
        f'no config file or config named {name!r}{hint}; for all names, call '
        "mmpretrain.list_models('*clca*')"
    )


def require_settings(cfg, *names):
    """Check that a config has the required settings.

    Raises:
        Error: Names the missing settings.
    """
    missing = [name for name in names if _is_missing(cfg, name.split('.'))]
    if missing:
        raise Error(f'missing in the config: {", ".join(missing)}')


def _is_missing(settings, path):
    for name in path:
        settings = (settings or {}).get(name)
    return settings is None


def merge_options(cfg, options):
    """Override settings of a config.

    An unknown name gives a warning only, because a hook may read it.

    Raises:
        Error: If an unknown name is similar to a known one, or a plain
            value would replace a group of settings.
    """
    known = {*cfg, *signature(Runner.__init__).parameters, *MORE_SETTINGS}
    for key in options:
        name = key.partition('.')[0]
        _check_kind(cfg, key, options[key])
        if name in known:
            continue
        problem = f'setting {key}: the config has no {name}'
        close = get_close_matches(name, known, n=1)
        if close:
            raise Error(f'{problem}; do you mean {close[0]}?')
        warnings.warn(
            f'{problem}; it was added, but may have no effect', stacklevel=2
        )
    with config_errors():
        cfg.merge_from_dict(options)


def _check_kind(cfg, key, new):
    """Raise if a plain value would replace a group of settings."""
    first, *inner = key.split('.')
    old = cfg.get(first)
    for name in inner:
        old = old.get(name) if isinstance(old, dict) else None
    # a nested group may have a name as value, such as an architecture
    whole = dict | list | tuple | None | (str if new and inner else dict)
    if isinstance(old, dict) and not isinstance(new, whole):
        raise Error(
            f'setting {key}={new}: {key} is a group of settings; set '
            f'one of them, such as {key}.{next(iter(old), "type")}=...'
        )


def check_patches(cfg, size=None):
    """Raise if the image size is not a multiple of the patch size.

    mmpretrain would pad such images with black. ``size`` is (height, width),
    by default ``img_size`` of the backbone.
    """
    backbone = cfg.model.get('backbone') or {}
    own, patch = backbone.get('img_size'), backbone.get('patch_size', 16)
    size = own and (size or own)  # without img_size, any size fits
    sides = zip(to_2tuple(size or 0), to_2tuple(patch), strict=True)
    for side, of_patch in sides:
        check_integer(patch_size=of_patch)
        if side % of_patch:
            raise Error(
                f'img_size={size} must be a multiple of patch_size={patch}, '
                f'such as {side - side % of_patch + of_patch}'
            )

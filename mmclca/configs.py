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


def _named_config(name: str) -> Config:
    if name.lower() in list_models():
        return ModelHub.get(name).config
    close = get_close_matches(Path(name).stem, list_models(), n=1)
    hint = f' (do you mean {close[0]}?)' if close else ''
    raise FileNotFoundError(
        f'no config file or config named {name!r}{hint}; for all names, call '
        "mmpretrain.list_models('*clca*')"
    )


def require_settings(cfg: Config, *names: str) -> None:
    """Check that a config has the required settings.

    Raises:
        Error: Names the missing settings, or an outer setting that is not a
            group of settings.
    """
    missing = [name for name in names if get_setting(cfg, name) is None]
    if missing:
        raise Error(f'missing in the config: {", ".join(missing)}')


def get_setting(cfg: Config, name: str) -> object:
    """Return a setting of a config by its name, such as ``model.head``.

    None stands for a missing setting.

    Raises:
        Error: If an outer setting is not a group of settings.
    """
    settings, outer = cfg, []
    for key in name.split('.'):
        if settings is None:
            return None
        if not isinstance(settings, dict | Config):
            raise Error(
                f'{".".join(outer)}={settings!r} in the config must be a '
                f'group of settings (a dict) with {key}'
            )
        settings = settings.get(key)
        outer.append(key)
    return settings


def merge_options(cfg: Config, options: dict) -> None:
    """Override settings of a config.

    An unknown name gives a warning only, because a hook may read it.

    Raises:
        Error: If an unknown name is similar to a known one, or a plain
            value would replace a group of settings.
    """
    settings = {*cfg, *signature(Runner.__init__).parameters, *MORE_SETTINGS}
    for key in options:
        name = key.partition('.')[0]
        _check_group(cfg, key, options[key])
        if name in settings:
            continue
        problem = f'setting {key}: the config has no {name}'
        close = get_close_matches(name, settings, n=1)
        if close:
            raise Error(f'{problem}; do you mean {close[0]}?')
        warnings.warn(
            f'{problem}; it was added, but may have no effect', stacklevel=2
        )
    with config_errors():
        cfg.merge_from_dict(options)


def _check_group(cfg: Config, key: str, new: object) -> None:
    """Raise if a plain value would replace a group of settings."""
    first, *inner = key.split('.')
    old = cfg.get(first)
    for name in inner:
        old = old.get(name) if isinstance(old, dict) else None
    # a nested group may have a name as value, such as an architecture
    replacement = dict | list | tuple | None | (str if new and inner else dict)
    if isinstance(old, dict) and not isinstance(new, replacement):
        raise Error(
            f'setting {key}={new}: {key} is a group of settings; set '
            f'one of them, such as {key}.{next(iter(old), "type")}=...'
        )


def check_patches(cfg: Config, size: tuple[int, int] | None = None) -> None:
    """Raise if the image size is not a multiple of the patch size.

    mmpretrain would pad such images with black. ``size`` is (height, width),
    by default ``img_size`` of the backbone.

    Raises:
        Error: Names a size that fits, or the setting with another type.
    """
    default_size = get_setting(cfg, 'model.backbone.img_size')
    if default_size is None:
        return  # any size fits
    size = size or default_size
    patch_size = get_setting(cfg, 'model.backbone.patch_size')
    patch_size = 16 if patch_size is None else patch_size  # 0 is refused
    sides = _to_pair('img_size', size)
    for side, patch_side in zip(
        sides, _to_pair('patch_size', patch_size), strict=True
    ):
        if side % patch_side:
            raise Error(
                f'img_size={size} must be a multiple of '
                f'patch_size={patch_size}, such as '
                f'{side - side % patch_side + patch_side}'
            )


def _to_pair(name: str, value: object) -> tuple[int, int]:
    """Return height and width; raise Error for another type."""
    pair = to_2tuple(value)
    if isinstance(pair, str) or len(pair) != 2:
        raise Error(f'{name}={value!r} must be an integer, or (height, width)')
    check_integer(**{name: pair[0]})
    check_integer(**{name: pair[1]})
    return tuple(pair)

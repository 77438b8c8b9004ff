# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the tools share."""

import sys
import warnings
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import signature
from pathlib import Path

from mmengine.config import Config, DictAction
from mmengine.config.utils import ConfigParsingError
from mmengine.runner import Runner
from mmpretrain import list_models
from mmpretrain.apis.model import ModelHub

import mmclca.registry  # noqa: F401, names the configs of this package

from .checkpoint_error import CheckpointError

# what mmengine and the tools read of a config beside the runner's arguments
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

# what mmengine, mmpretrain and mmclca raise for settings and files
WRONG_INPUT = (
    AssertionError,
    CheckpointError,
    ConfigParsingError,
    ImportError,
    KeyError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)


@contextmanager
def plain_errors(source):
    """End the program with one line where settings or files are wrong.

    Args:
        source (str | Path): What the line begins with.
    """
    try:
        yield
    except WRONG_INPUT as error:
        sys.exit(f'{source}: {" ".join(str(error).split())}')


def read_config(config, options={}):
    """Read a config by its path or by its name.

    Args:
        config (str | Path): Path of a file, or a name that
            ``mmpretrain.list_models`` gives.
        options (dict): Of ``--cfg-options``. Defaults to {}.

    Returns:
        mmengine.Config: The config, with the options.

    Raises:
        FileNotFoundError: If it is neither; suggests a name.
    """
    if Path(config).is_file():
        cfg = Config.fromfile(config)
    else:
        cfg = _named_config(str(config))
    merge_options(cfg, options)
    return cfg


def _named_config(name):
    if name.lower() in list_models():
        return ModelHub.get(name).config
    close = get_close_matches(Path(name).stem, list_models(), n=1)
    hint = f'; do you mean {close[0]}?' if close else ''
    raise FileNotFoundError(
        'No such file, and no config of that name '
        f"(mmpretrain.list_models('*clca*') gives all names){hint}"
    )


def require_settings(cfg, *names):
    """See that a config has what a tool reads.

    Args:
        cfg (mmengine.Config): The config.
        names (str): Names of settings, nested ones with dots.

    Raises:
        ValueError: If it lacks some; names all of them.
    """
    missing = [name for name in names if _lacks(cfg, name.split('.'))]
    if missing:
        raise ValueError(f'the config has no {", no ".join(missing)}')


def _lacks(settings, path):
    for name in path:
        settings = (settings or {}).get(name)
    return settings is None


def add_cfg_options(parser):
    """Add ``--cfg-options`` of every tool that reads a config.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        default={},
        metavar='KEY=VALUE',
        help='override settings of the config, nested ones with dots; lists '
        'and tuples as key="[a,b]" or key="[(a,b),(c,d)]", without spaces',
    )


def merge_options(cfg, options):
    """Override settings of a config; warn of names that nothing reads.

    Args:
        cfg (mmengine.Config): The config, changed in place.
        options (dict): Of ``--cfg-options``.
    """
    known = {*cfg, *signature(Runner.__init__).parameters, *MORE_SETTINGS}
    for key in options:
        name = key.partition('.')[0]
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f' (do you mean {close[0]}?)' if close else ''
            warnings.warn(
                f'--cfg-options {key}: the config has no {name}{hint}; it is '
                'set, but nothing may read it',
                stacklevel=2,
            )
    cfg.merge_from_dict(options)


def check_file(parser, path: Path) -> None:
    """Refuse a file of ``--out`` that cannot be written.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        path (Path): The file; its folder is made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        path.open('a').close()
        if not existed:
            path.unlink()
    except OSError as error:
        parser.error(f'--out: {path}: {error.strerror}')

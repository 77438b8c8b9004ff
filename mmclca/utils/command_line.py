# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the tools share."""

import os
import sys
import warnings
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import signature
from pathlib import Path

import torch
from mmengine.config import Config, DictAction
from mmengine.config.utils import ConfigParsingError
from mmengine.device import get_device
from mmengine.registry import RUNNERS
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


def add_run_arguments(parser):
    """Add the arguments of every tool that builds a runner from a config.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument('--work-dir', help='folder for logs and results')
    parser.add_argument(
        '--compile',
        action='store_true',
        help='compile backbone and head: slow to start, faster after that',
    )
    parser.add_argument(
        '--no-pin-memory',
        action='store_true',
        help='do not pin the memory of batches (default: where CUDA is)',
    )
    add_cfg_options(parser)
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='what starts the processes of a distributed run',
    )
    # torch.distributed.launch passes it unless told to use the environment
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)


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


def set_up_run(cfg, config, work_dir, launcher, local_rank):
    """Tell a config where its results go and how its processes start.

    Args:
        cfg (mmengine.Config): The config, changed in place.
        config (str): Its path, after which the results are named by default.
        work_dir (str, optional): Folder for results. Defaults to that of the
            config, else to ``work_dirs/NAME_OF_CONFIG``.
        launcher (str): 'none', 'pytorch', 'slurm' or 'mpi'.
        local_rank (int): Rank in this machine where the environment has none.
    """
    os.environ.setdefault('LOCAL_RANK', str(local_rank))
    default = cfg.get('work_dir') or f'./work_dirs/{Path(config).stem}'
    cfg.work_dir = work_dir or default
    cfg.launcher = launcher
    if launcher == 'pytorch' and get_device() == 'cpu':
        join_processes_on_cpu(cfg)


def join_processes_on_cpu(cfg):
    """Do without a GPU what mmengine's launcher does with one.

    Args:
        cfg (mmengine.Config): The config, changed in place.
    """
    torch.distributed.init_process_group('gloo')
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=cfg.get('find_unused_parameters', False),
    )
    wrapper.update(cfg.get('model_wrapper_cfg') or {}, device_ids=None)
    cfg.model_wrapper_cfg = wrapper


def use_amp(cfg, dtype='fp16'):
    """Train in automatic mixed precision.

    Args:
        cfg (mmengine.Config): The config, changed in place.
        dtype (str): 'fp16', whose loss is scaled lest small gradients vanish
            (the config's ``loss_scale``, or else dynamic), or 'bf16', whose
            range is that of float32 and needs no scale. Defaults to 'fp16'.
    """
    wrapper = cfg.optim_wrapper
    wrapper.type = 'AmpOptimWrapper'
    if dtype == 'bf16':
        wrapper.update(dtype='bfloat16', loss_scale=dict(enabled=False))
    else:
        wrapper.update(dtype='float16')
        wrapper.setdefault('loss_scale', 'dynamic')


def use_compile(cfg):
    """Give a config a ``CompileHook`` where it has none.

    Args:
        cfg (mmengine.Config): The config, changed in place.
    """
    hooks = cfg.get('custom_hooks') or []
    if all(hook['type'] != 'mmclca.CompileHook' for hook in hooks):
        cfg.custom_hooks = [*hooks, dict(type='mmclca.CompileHook')]


def set_loader_defaults(cfg, no_pin_memory, no_persistent_workers=False):
    """Fill in what the data loaders of a config leave open.

    Args:
        cfg (mmengine.Config): The config, changed in place.
        no_pin_memory (bool): Whether to override the loaders' pinning.
        no_persistent_workers (bool): Whether to override their keeping of
            workers from epoch to epoch.
    """
    loaders = [f'{name}_dataloader' for name in ('train', 'val', 'test')]
    for loader in filter(None, map(cfg.get, loaders)):
        has_workers = loader.get('num_workers', 0) > 0
        loader.setdefault('collate_fn', dict(type='default_collate'))
        loader.setdefault('pin_memory', torch.cuda.is_available())
        loader.setdefault('persistent_workers', has_workers)
        if no_pin_memory:
            loader.pin_memory = False
        if no_persistent_workers or not has_workers:
            loader.persistent_workers = False


def build_runner(cfg):
    """Build the runner that a config asks for.

    Args:
        cfg (mmengine.Config): The config.

    Returns:
        mmengine.runner.Runner: mmengine's, or the one of ``runner_type``.
    """
    return RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)


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

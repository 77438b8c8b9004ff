# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run commands: ``mmclca COMMAND``, tools, and tools of MMPretrain.

fit and use:
  fit                 train a classifier (one folder of photos per class)
  predict             classify new photos
  add-class           add a class, or photos of a class, in seconds
  report              write report.html again
  page                train a model and identify photos in the browser
  export              write the model as one ONNX file
  verify              find damaged and missing files of a model or training

train and test:
  train               train a model from a config
  test                test a checkpoint
  sweep               run a grid of experiments
  demo                train, test and draw a small model on synthetic leaves

analyze:
  get-flops           count GMACs, parameters and tokens
  throughput          measure speed and memory
  confusion-matrix    compute the confusion matrix on the test set
  analyze-results     draw the best and worst predictions of a test
  draw-reduction      draw the remaining patches after each stage
  vis-agreement       pairwise disagreement between models
  vis-cam             Grad-CAM heat map per class
  vis-cka             similarity of layers (CKA), attention, spectrum
  vis-confusions      examples of the most confused classes
  vis-cross-patch     cross-patch weights of a ResMLP
  vis-pooling         attention pooling per class
  vis-reconstruction  reconstructions of a masked autoencoder
  vis-rollout         attention rollout
  vis-tsne            t-SNE of image features

data:
  browse-dataset      show images before and after the pipeline
  split-folder        split class folders into train, val and test
  hold-out-classes    hold out classes to test unknown ones
  synthetic-leaves    generate a dataset of synthetic leaves
  ultra-fgvc          download and import the Ultra-FGVC datasets

models:
  probe               fit a linear probe to frozen features
  open-set            choose a threshold for unknown classes
  retrieval           find similar images in a gallery
  publish-model       write the weights of a checkpoint without its state
  print-config        print a config with all inherited settings
"""

import argparse
import logging
import os
import runpy
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from mmclca.utils.files import atomic_backend
from mmclca.utils.messages import did_you_mean, print_safe
from mmclca.version import __version__

from .errors import (
    UsageError,
    describe_error,
    is_of_disk,
    usage_error,
    usage_errors,
)
from .packages import checkpoints
from .pictures import PICTURES

# exit codes; shells use 130 for Ctrl-C
FAILED, WRONG, INTERRUPTED = 1, 2, 130
FOLDERS = 'fit', 'predict', 'add-class', 'report', 'page', 'export', 'verify'
COMMANDS = Path(__file__).parent.glob('commands/[a-z]*.py')
NAMES = [*PICTURES, *(path.stem for path in COMMANDS)]
SUBCOMMANDS = sorted(name.replace('_', '-') for name in NAMES)


def main() -> None:
    """Run the command named on the command line."""
    subcommand = _parse_subcommand(sys.argv[1:2])
    sys.argv = [f'mmclca {subcommand}', *sys.argv[2:]]
    run_command(subcommand.replace('-', '_'))


def _parse_subcommand(words: list[str]) -> str:
    parser = argparse.ArgumentParser(
        prog='mmclca',
        usage='mmclca COMMAND ... ("mmclca COMMAND --help" for its options)',
        description=__doc__.partition('\n\n')[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'subcommand', choices=SUBCOMMANDS, help=argparse.SUPPRESS
    )
    parser.add_argument('--version', action='version', version=__version__)
    if not words:
        parser.print_help()
        parser.exit()
    if not words[0].startswith('-') and words[0] not in SUBCOMMANDS:
        hint = did_you_mean(words[0].replace('_', '-'), SUBCOMMANDS)
        parser.error(
            f'{words[0]!r} is not a command{hint}; list all: mmclca --help'
        )
    return parser.parse_args(words).subcommand


def run_command(name: str) -> None:
    """Run a command as :func:`run` does.

    Args:
        name (str): Module name in ``mmclca.cli.commands``.
    """
    run(get_main(name))


def get_main(name: str) -> Callable[[], int | None]:
    """Return a function parsing the options and running a command."""
    command = load_command(name)

    def main():
        args = command.parse_args()
        advice, _ = map(vars(args).pop, ('advice', 'debug'))
        try:
            with checkpoints.opening.safe_loading(), atomic_backend():
                return command.main(args)
        except ImportError as error:  # a package may be missing
            raise usage_error(None, error) from error
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(f'{error}' or advice) from None

    return main


def load_command(name: str):
    """Return a picture command, or the module of any other command."""
    return PICTURES.get(name) or import_module(f'mmclca.cli.commands.{name}')


def upstream(name: str, **names: object) -> Callable[[], None]:
    """Return ``main`` of an MMPretrain tool, with one-line errors.

    Args:
        name (str): File in MMPretrain's ``tools`` folder.
        **names: Replacements for names imported by the tool.
    """

    def main():
        package = Path(find_spec('mmpretrain').origin).parent
        loading = checkpoints.opening.safe_loading()
        with usage_errors(), loading, atomic_backend():
            tool = runpy.run_path(str(package / '.mim/tools' / name))['main']
            tool.__globals__.update(names)
            tool()

    return main


def vis_scheduler() -> None:
    """Draw a learning-rate schedule with MMPretrain's tool.

    The tool uses a model without layers, on which layer-wise decay, AMP and
    hooks fail; they are removed.
    """
    with TemporaryDirectory() as work_dir:
        config = SimpleNamespace(fromfile=partial(_schedule_config, work_dir))
        upstream('visualization/vis_scheduler.py', Config=config)()


def _schedule_config(work_dir: str, name: str):
    from mmclca.configs import read_config, require_settings

    needed = ('optim_wrapper.optimizer', 'train_cfg', 'train_dataloader')
    with usage_errors(name):
        cfg = read_config(name)
        require_settings(cfg, *needed)
    cfg.work_dir = work_dir
    cfg.optim_wrapper = dict(optimizer=cfg.optim_wrapper.optimizer)
    cfg.default_hooks = dict(param_scheduler=dict(type='ParamSchedulerHook'))
    cfg.custom_hooks = None
    cfg.setdefault('param_scheduler', [])
    cfg.setdefault('default_scope', 'mmpretrain')
    return cfg


def prepare_process() -> None:
    """Print unencodable characters as escapes, and expand ``~``.

    Shells do not expand ``--out=~/model`` or ``data_root=~/leaves``. A
    warning of mmcv about operators that are not compiled is hidden: no
    command needs them.
    """
    message = 'Fail to import ``MultiScaleDeformableAttention``'
    warnings.filterwarnings('ignore', message)
    logging.raiseExceptions = False  # a log file on a full disk
    warnings.filterwarnings('ignore', module='PIL')  # of damaged photos
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')
    sys.argv[1:] = [
        name + sign + os.path.expanduser(value)
        for name, sign, value in map(_split_word, sys.argv[1:])
    ]


def _split_word(word: str) -> tuple[str, str, str]:
    """Split a command-line word into name, = and value."""
    name, sign, value = word.partition('=')
    return (name, sign, value) if sign else ('', '', word)


def run(main: Callable[[], int | None]) -> None:
    """Run a tool; user errors and Ctrl-C end it with one line.

    Other errors, and all errors with ``--debug``, keep their traceback.

    Args:
        main (Callable): The tool, which returns the exit code; a
            ``KeyboardInterrupt`` contains the advice on how to resume.

    Raises:
        SystemExit: If the exit code is not 0: ``FAILED`` for an error of the
            disk, ``WRONG``, ``INTERRUPTED``, or the tool's own code.
    """
    debug = '--debug' in sys.argv
    prepare_process()
    try:
        code = main()
    except (UsageError, OSError) as error:
        of_disk = is_of_disk(error)
        if not (of_disk or isinstance(error, UsageError)):
            raise
        if debug:
            raise (error.__cause__ or error) from None
        sys.stdout.flush()
        program = Path(sys.argv[0]).name
        line = f'{program}: error: {describe_error(error)}'
        print_safe(line, file=sys.stderr)
        code = FAILED if of_disk else WRONG
    except KeyboardInterrupt as error:
        if debug:
            raise
        print(file=sys.stderr)  # the terminal has shown ^C
        print_safe(f'Stopped. {error}'.strip(), file=sys.stderr)
        code = INTERRUPTED
    if code:
        sys.exit(code)

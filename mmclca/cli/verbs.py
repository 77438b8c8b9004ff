# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Running of commands: by ``mmclca VERB``, by a tool, by MMPretrain."""

import argparse
import os
import runpy
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from mmclca.utils.messages import say
from mmclca.version import __version__

from .mistakes import Mistake, mistake, plain_errors
from .pictures import KINDS

# exit codes, that of Ctrl-C as shells have it
WRONG, INTERRUPTED = 2, 130
FOLDERS = {
    'fit': 'fit a model to photographs, a folder a class',
    'predict': 'name what is on new photographs',
    'page': 'a page in the browser: drop a photograph, see its name',
    'export': 'write the model as one ONNX file',
    'report': 'write report.html again',
    'add-class': 'teach the model one more class, in seconds',
}
COMMANDS = Path(__file__).parent.glob('commands/[a-z]*.py')
NAMES = [*KINDS, *(path.stem for path in COMMANDS)]
VERBS = sorted(name.replace('_', '-') for name in NAMES)


def main() -> None:
    """Run the verb that the command line names."""
    verb = _verb_of(sys.argv[1:2])
    sys.argv = [f'mmclca {verb}', *sys.argv[2:]]
    run_command(verb.replace('-', '_'))


def _verb_of(words: list[str]) -> str:
    lines = [f'  {verb:10} {does}' for verb, does in FOLDERS.items()]
    others = ' '.join(verb for verb in VERBS if verb not in FOLDERS)
    parser = argparse.ArgumentParser(
        prog='mmclca',
        usage='mmclca VERB ... (mmclca VERB --help tells more)',
        description='\n'.join(['verbs:', *lines, f'  and {others}']),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('verb', choices=VERBS, help=argparse.SUPPRESS)
    parser.add_argument('--version', action='version', version=__version__)
    return parser.parse_args(words).verb


def run_command(name: str) -> None:
    """Run a command as :func:`run` does.

    Args:
        name (str): Of its module in ``mmclca.cli.commands``.
    """
    run(main_of(name))


def main_of(name: str) -> Callable[[], int | None]:
    """Join ``parse_args`` and ``main`` of a command."""
    command = command_named(name)

    def main():
        args = command.parse_args()
        go_on, _ = map(vars(args).pop, ('go_on', 'debug'))
        try:
            return command.main(args)
        except ImportError as error:  # a package may be missing
            raise mistake(None, error) from error
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(f'{error}' or go_on) from None

    return main


def command_named(name: str):
    """Find a kind of picture, or the module of another command."""
    return KINDS.get(name) or import_module(f'mmclca.cli.commands.{name}')


def upstream(name: str, **names) -> Callable[[], None]:
    """Find the ``main`` of a tool of MMPretrain's; its mistakes are one line.

    Args:
        name (str): Its file, in the ``tools`` of MMPretrain.
        **names: What takes the place of names that it imports.
    """

    def main():
        package = Path(find_spec('mmpretrain').origin).parent
        with plain_errors():
            tool = runpy.run_path(str(package / '.mim/tools' / name))['main']
            tool.__globals__.update(names)
            tool()

    return main


def vis_scheduler() -> None:
    """Draw a schedule by MMPretrain's tool.

    Its stand-in for a model has no layers, and none of the hooks works on it:
    layer-wise decay, AMP and hooks are left out.
    """
    with TemporaryDirectory() as work_dir:
        config = SimpleNamespace(fromfile=partial(_schedule, work_dir))
        upstream('visualization/vis_scheduler.py', Config=config)()


def _schedule(work_dir: str, name: str):
    from mmclca.configs import read_config, require_settings

    needed = ('optim_wrapper.optimizer', 'train_cfg', 'train_dataloader')
    with plain_errors(name):
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
    """Print what a stream cannot encode as escapes, and expand ``~``.

    Shells leave the ``~`` of ``--out=~/model`` and ``data_root=~/leaves``.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')
    sys.argv[1:] = [
        name + sign + os.path.expanduser(value)
        for name, sign, value in map(_parts_of, sys.argv[1:])
    ]


def _parts_of(word: str) -> tuple[str, str, str]:
    """Split a word of a command line into name, = and value."""
    name, sign, value = word.partition('=')
    return (name, sign, value) if sign else ('', '', word)


def run(main: Callable[[], int | None]) -> None:
    """Run a tool; a mistake of the user and Ctrl-C end it in one line.

    Anything else is an error of the program, and keeps its traceback, as
    all do with ``--debug``.

    Args:
        main (Callable): The tool; its result is the exit code. A
            ``KeyboardInterrupt`` that it raises says how to go on.

    Raises:
        SystemExit: With the exit code where it is not 0: ``WRONG``,
            ``INTERRUPTED``, or that of the tool.
    """
    debug = '--debug' in sys.argv
    prepare_process()
    try:
        code = main()
    except Mistake as error:
        if debug:
            raise (error.__cause__ or error) from None
        _say(f'error: {error}')
        code = WRONG
    except CalledProcessError as error:  # has said itself what is wrong
        code = error.returncode
    except KeyboardInterrupt as error:
        if debug:
            raise
        print(file=sys.stderr)  # the terminal has shown ^C
        _say(f'interrupted: {error}' if f'{error}' else 'interrupted')
        code = INTERRUPTED
    if code:
        sys.exit(code)


def _say(text: str) -> None:
    sys.stdout.flush()
    say(f'{Path(sys.argv[0]).name}: {text}', file=sys.stderr)

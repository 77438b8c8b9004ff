# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What verbs share that take the folder of a fitted model."""

from pathlib import Path

from mmclca.utils.atomic_write import finish_replacing

from ..parser import Parser


def add_folder(parser: Parser) -> None:
    """Add the folder that fit wrote.

    Args:
        parser (Parser): The parser to extend.
    """
    parser.add('folder', 'what fit wrote', type=Path, metavar='MODEL')


def add_device(parser: Parser) -> None:
    """Add where the model runs.

    Args:
        parser (Parser): The parser to extend.
    """
    parser.add('--device', 'cpu or cuda (default: cuda where there is a GPU)')


def threshold_of(folder: Path) -> Path | None:
    """The threshold of the model in a folder, None without one.

    Args:
        folder (Path): What fit wrote.
    """
    path = folder / 'threshold.json'
    return path if path.is_file() else None


def model_of(parser: Parser, folder: Path) -> str:
    """The file of the model in a folder; ends the program without one.

    Args:
        parser (Parser): It ends the program.
        folder (Path): What fit wrote.
    """
    finish_replacing(folder)
    path = folder / 'model.pth'
    if not path.is_file():
        parser.error(
            f'{folder} has no model.pth: mmclca fit PHOTOGRAPHS --out '
            f'{folder} writes it'
        )
    return str(path)

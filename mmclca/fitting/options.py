# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Options of ``fit``: its command line, its keywords and ``fit.json``.

Each option is one field of :class:`FitOptions`, with its default, help text
and check. The imports of this module are fast.
"""

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from os import PathLike
from typing import Any, TypedDict

from mmclca.errors import Error
from mmclca.languages import list_languages
from mmclca.utils.messages import check_choice, check_integer

from .budget import parse_budget

PIXELS = ('imagenet', 'half')
RUNTIMES = ('onnx', 'pytorch')


@dataclass(frozen=True)
class OptionSpec:
    """Description of an option, from which its command line is derived.

    Args:
        help (str): Noun phrase for ``--help``.
        check (Callable): Function of name and value. It raises an ``Error``
            for an invalid value, and returns the value to store.
        metavar (str): Name of the value in ``--help``; for texts without
            choices. Defaults to '': the name of the option.
        choices (tuple[str, ...]): Allowed values. Defaults to (): any.
        is_repeatable (bool): Whether the command line collects several
            values. Defaults to False.
        is_recorded (bool): Whether a resumed fit needs the same value; it is
            in ``fit.json``. Defaults to False.
        excludes (str): Name of another option, not allowed with this one.
            Defaults to ''.
    """

    help: str
    check: Callable[[str, Any], Any]
    metavar: str = ''
    choices: tuple[str, ...] = ()
    is_repeatable: bool = False
    is_recorded: bool = False
    excludes: str = ''


def check_text(name: str, value: Any) -> str | None:
    """Return a text or None; refuse other types."""
    if value is not None and not isinstance(value, str):
        raise Error(f'{name}={value!r} must be a text')
    return value


def check_path(name: str, value: Any) -> str | None:
    """Return the absolute path as a text, or None."""
    if value is None or value == '':
        return None
    if not isinstance(value, str | PathLike):
        raise Error(f'{name}={value!r} must be a path')
    return os.path.abspath(value)


def check_texts(name: str, value: Any) -> str | list[str] | None:
    """Return one text, a list of several texts, or None.

    Paths become texts.
    """
    values = [value] if isinstance(value, str | PathLike) else value or []
    if not isinstance(values, Sequence) or not all(
        isinstance(x, str | PathLike) for x in values
    ):
        raise Error(f'{name}={value!r} must be a text, a path or a list')
    texts = [str(x) for x in values if str(x)]
    if not texts:
        return None
    return texts[0] if len(texts) == 1 else texts


def check_flag(name: str, value: Any) -> bool:
    """Return a bool; refuse other types."""
    if not isinstance(value, bool):
        raise Error(f'{name}={value!r} must be True or False')
    return value


def check_folds(name: str, value: Any) -> int:
    """Return the number of folds, at least 2."""
    check_integer(2, **{name: value})
    return value


def check_budget(name: str, value: Any) -> str | None:
    """Return a budget, see :func:`parse_budget`, or None."""
    if check_text(name, value) is not None:
        parse_budget(value)
    return value


def check_one_of(*choices: str) -> Callable[[str, Any], str | None]:
    """Create a check for None and some names."""

    def check(name: str, value: Any) -> str | None:
        if value is not None:
            check_choice(choices, **{name: value})
        return value

    return check


def option(
    default: Any, help: str, check: Callable[[str, Any], Any], **spec: Any
) -> Any:
    """Create a field of :class:`FitOptions`, see :class:`OptionSpec`."""
    return field(
        default=default, metadata=dict(spec=OptionSpec(help, check, **spec))
    )


@dataclass(frozen=True)
class FitOptions:
    """Options of ``mmclca.fit``, checked and in the types of fit.json.

    Args:
        name (str, optional): Title of the report. Defaults to None: the name
            of the model or photo folder.
        language (str, optional): Language of the report, such as 'en' or
            'zh'. Defaults to None: English.
        budget (str, optional): Maximum cost per photo, such as '0.5GMACs' or
            '20ms' on this machine, or 'best' for the most accurate model.
            Defaults to None: about half the cost of the full ViT.
        runtime (str, optional): Runtime of latency measurements, 'onnx' or
            'pytorch'. Defaults to None: ONNX Runtime if it is installed,
            PyTorch on a GPU.
        weights (str | Path | Sequence, optional): File or ``timm://NAME``;
            of several, the most accurate on the photos within the budget is
            selected. Defaults to None: ViT-Tiny from timm.
        arch (str | Sequence[str], optional): Name in timm of the network
            that ``weights`` belong to, or one name per weights. Defaults to
            None: recognized by the names of the parameters and of the file.
        pixels (str, optional): Normalization used in pre-training,
            'imagenet' or 'half'. Defaults to None: as in timm.
        labels (str | Path, optional): Table of files and classes. Defaults
            to None: the folders name the classes.
        groups (str, optional): Photos to keep together, such as photos of
            one plant: a regular expression for their paths, or a column of
            the table. Defaults to None.
        folds (int): Cross-validation folds. Defaults to 5.
        class_weights (str, optional): 'balanced' to weight classes equally.
            Defaults to None: photos are weighted equally.
        any_direction (bool): Whether to train on photos turned by quarter
            turns, too, for later photos in any direction. Defaults to False.
        coarse (str | Path, optional): Table of classes and coarse classes,
            such as cultivars and species, to report the accuracy of both.
            Defaults to None.
        compare (bool): Whether to list the candidate models and compare the
            most accurate one on the photos. Defaults to False.
        fine_tune (bool): Whether to fine-tune with any number of photos.
            Defaults to False: with at least 200 photos, and 8 in the median
            class.
        probe_only (bool): Whether to skip fine-tuning. Defaults to False.
        overwrite (bool): Whether to replace an existing model. Defaults to
            False.
        verbose (bool): Whether to print technical lines, too. Defaults to
            False: they are in ``log.txt`` and in the report.
        device (str, optional): Device. Defaults to None: a GPU if available.

    Raises:
        Error: If an option has a wrong type or value, or options exclude
            each other.
    """

    name: str | None = option(
        None,
        'title of the report (default: name of the model or photo folder)',
        check_text,
    )
    language: str | None = option(
        None,
        'language of the report (default: en)',
        check_one_of(*list_languages()),
        choices=list_languages(),
    )
    budget: str | None = option(
        None,
        'maximum cost per photo, e.g. 0.5GMACs, 20ms or best (default: about '
        'half the full ViT)',
        check_budget,
        is_recorded=True,
    )
    runtime: str | None = option(
        None,
        'runtime for latency (default: onnx if installed, pytorch on a GPU)',
        check_one_of(*RUNTIMES),
        choices=RUNTIMES,
        is_recorded=True,
    )
    weights: str | list[str] | None = option(
        None,
        'pretrained weights (.pth, .safetensors, .npz) or timm://NAME; repeat '
        'to compare several and keep the most accurate (default: ViT-Tiny)',
        check_texts,
        metavar='FILE',
        is_repeatable=True,
        is_recorded=True,
    )
    arch: str | list[str] | None = option(
        None,
        'timm model name, one per --weights (default: inferred from the file)',
        check_texts,
        metavar='NAME',
        is_repeatable=True,
        is_recorded=True,
    )
    pixels: str | None = option(
        None,
        'normalization used in pre-training: that of ImageNet, or mean and '
        'standard deviation 0.5 (default: from timm)',
        check_one_of(*PIXELS),
        choices=PIXELS,
        is_recorded=True,
    )
    labels: str | None = option(
        None,
        'table of files and classes: .csv, .tsv, .xlsx or .ods',
        check_path,
        metavar='TABLE',
        is_recorded=True,
    )
    groups: str | None = option(
        None,
        'photos kept in one fold, e.g. per plant: regex for paths, table '
        'column, day, or folder (inside those of the classes)',
        check_text,
        metavar='REGEX',
        is_recorded=True,
    )
    folds: int = option(
        5, 'cross-validation folds', check_folds, is_recorded=True
    )
    class_weights: str | None = option(
        None,
        'equal weight per class (default: per image)',
        check_one_of('balanced'),
        choices=('balanced',),
        is_recorded=True,
    )
    any_direction: bool = option(
        False,
        'train on turned photos, too, for later photos in any direction',
        check_flag,
        is_recorded=True,
    )
    coarse: str | None = option(
        None,
        'table of classes and coarse classes, .csv with column titles',
        check_path,
        metavar='TABLE',
    )
    compare: bool = option(
        False,
        'table of candidate models, compared with the full ViT on your photos',
        check_flag,
    )
    fine_tune: bool = option(
        False,
        'fine-tune the backbone with any number of photos (default: with at '
        'least 200)',
        check_flag,
        excludes='probe_only',
    )
    probe_only: bool = option(
        False,
        'linear probe without fine-tuning',
        check_flag,
        excludes='fine_tune',
    )
    overwrite: bool = option(False, 'replace an existing model', check_flag)
    verbose: bool = option(
        False, 'print technical lines, too, as in log.txt', check_flag
    )
    device: str | None = option(
        None, 'cpu or cuda (default: cuda if available)', check_text
    )

    def __post_init__(self):
        for item in fields(self):
            value = get_spec(item).check(item.name, getattr(self, item.name))
            object.__setattr__(self, item.name, value)
        if self.fine_tune and self.probe_only:
            raise Error('fine_tune and probe_only exclude each other')
        self.pair_weights()

    @classmethod
    def from_keywords(cls, keywords: 'FitKeywords') -> 'FitOptions':
        """Check and convert the keywords of ``fit``."""
        values: dict[str, Any] = {**keywords}
        return cls(**values)

    def pair_weights(self) -> list[tuple[str | None, str | None]]:
        """Pair the weights with their network in timm, in their order."""
        weights, arch = (
            values if isinstance(values, list) else [values]
            for values in (self.weights, self.arch)
        )
        if arch == [None]:
            arch = arch * len(weights)
        if len(arch) != len(weights):
            raise Error(
                f'got {len(arch)} arch for {len(weights)} weights; pass one '
                'arch per weights, in the same order'
            )
        return list(zip(weights, arch, strict=True))

    @property
    def recorded(self) -> dict[str, Any]:
        """Options needed by a resumed fit, by name."""
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if get_spec(item).is_recorded
        }


class FitKeywords(TypedDict, total=False):
    """Keywords of :func:`mmclca.fit` for editors, see :class:`FitOptions`."""

    name: str | None
    language: str | None
    budget: str | None
    runtime: str | None
    weights: str | PathLike | Sequence[str | PathLike] | None
    arch: str | Sequence[str] | None
    pixels: str | None
    labels: str | PathLike | None
    groups: str | None
    folds: int
    class_weights: str | None
    any_direction: bool
    coarse: str | PathLike | None
    compare: bool
    fine_tune: bool
    probe_only: bool
    overwrite: bool
    verbose: bool
    device: str | None


def get_spec(item: Field) -> OptionSpec:
    """Describe a field of :class:`FitOptions`."""
    return item.metadata['spec']


def show_options(function: Callable) -> Callable:
    """Show the options as keywords in the signature of a function.

    It takes them as ``**options``; ``help()`` and editors see their names,
    types and defaults.
    """
    signature = inspect.signature(function)
    *parameters, _ = signature.parameters.values()
    parameters += [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=item.default,
            annotation=FitKeywords.__annotations__[item.name],
        )
        for item in fields(FitOptions)
    ]
    vars(function)['__signature__'] = signature.replace(parameters=parameters)
    return function

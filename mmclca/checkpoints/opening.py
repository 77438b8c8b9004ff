# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Open checkpoint files without running code in them.

Pickles are loaded with ``weights_only=True``; mmengine would fall back to
unrestricted loading. The weights keep their file name for reports and
errors.
"""

import json
import os
import pathlib
import re
import zipfile
from contextlib import suppress
from pickle import UnpicklingError

import torch
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from mmclca.errors import Error

from .checkpoint import Checkpoint, get_dict
from .checksums import (
    WRONG,
    compute_checksum,
    find_damaged_entry,
    verify_tensors,
)
from .digests import base_file
from .error import CheckpointError
from .gate.contents import check_tensors, recognize_format, unpacked_size
from .gate.unpickling import only_safe_globals
from .model_folder import find_model_file

# torch's messages about forbidden contents; 149 is the first opcode
# written by pickle.dump
UNSAFE = (
    r'GLOBAL \S+|reduce for .+|Can only (create|build) .+|'
    r'Unsupported operand 149'
)


def open_checkpoint(
    name: str, map_location=None, mapped: bool = False
) -> Checkpoint:
    """Open a checkpoint from a file, a model folder, a URL or timm.

    Args:
        name (str): Path, URL, ``timm://NAME``, or another address supported
            by mmengine.
        map_location (str | Callable, optional): See ``torch.load``.
            Defaults to None, the CPU.
        mapped (bool): Whether tensors in a local file are read from disk at
            their first use. Defaults to False.

    Returns:
        Checkpoint: The weights and all else in the file. Config and class
        names in ``.safetensors`` are in ``'meta'``, as in mmengine's
        checkpoints.

    Raises:
        FileNotFoundError: If the file does not exist.
        CheckpointError: If the download fails, or the file is damaged or
            contains more than tensors and plain settings.
    """
    scheme, separator, _ = name.partition('://')
    if not separator:
        return load_from_file(name, map_location, mapped)
    if scheme in SCHEMES:
        return SCHEMES[scheme](name, map_location)
    # mmengine's last prefix is '': it would open a file, and run its code
    prefixes = filter(None, CheckpointLoader._schemes)
    if not any(re.match(prefix, name) for prefix in prefixes):
        return load_from_file(name, map_location, mapped)
    try:  # mmengine's other schemes
        contents = CheckpointLoader.load_checkpoint(
            name, map_location or 'cpu'
        )
    except (AssertionError, KeyError) as error:  # of an unknown name
        raise CheckpointError(
            f'cannot open {name} ({type(error).__name__}: {error}); download '
            'the file and pass its path'
        ) from error
    return Checkpoint.from_contents(contents, name)


def load_from_file(
    filename: str, map_location=None, mapped: bool = False
) -> Checkpoint:
    """Open a model folder, or a file: pickle, ``.safetensors`` or ``.npz``."""
    path = os.path.expanduser(find_model_file(filename))
    if not os.path.isfile(path):
        raise FileNotFoundError(f'checkpoint {filename} does not exist')
    in_folder = os.path.isdir(os.path.expanduser(filename))
    name = path if in_folder else filename
    return read_checkpoint(path, name, map_location, mapped)


def load_from_http(filename: str, map_location=None) -> Checkpoint:
    """Download a checkpoint once, then open it as a local file."""
    from . import downloading

    path = downloading.download_checkpoint(filename)
    return read_checkpoint(path, filename, map_location)


def load_from_timm(filename: str, map_location=None) -> Checkpoint:
    """Load pretrained weights from timm, ``timm://NAME``, on the CPU."""
    from . import downloading

    weights = downloading.download_from_timm(filename.removeprefix('timm://'))
    return Checkpoint.from_weights(weights, filename)


def load_safetensors(filename: str, map_location=None) -> dict[str, Tensor]:
    """Read a ``.safetensors`` file on the CPU, for mmengine's loaders.

    Not every version of torch reads it with ``torch.load``.
    """
    return load_file(os.path.expanduser(filename))


SCHEMES = dict(http=load_from_http, https=load_from_http, timm=load_from_timm)
# new names for mmengine's loaders, which match them by ``re.match``
OWN_SCHEMES = {
    'timm://': load_from_timm,
    r'.*\.safetensors$': load_safetensors,
}
for scheme in OWN_SCHEMES:
    with suppress(KeyError):  # another package has registered the name
        CheckpointLoader.register_scheme(scheme, OWN_SCHEMES[scheme])


def read_checkpoint(
    path: str, name: str, map_location=None, mapped: bool = False
) -> Checkpoint:
    """Open the file at ``path``; reports and errors call it ``name``."""
    checkpoint = _read_file(path, name, map_location, mapped)
    # mmengine executes this text from old versions on resume; the current
    # key is 'cfg'
    if isinstance(checkpoint.meta.get('config'), str):
        del checkpoint.meta['config']
    _add_base(checkpoint, path, mapped)
    return checkpoint


def _read_file(path: str, name: str, map_location, mapped: bool) -> Checkpoint:
    """Read a file in any format, without its base weights."""
    try:
        file_format, size = recognize_format(path, name), unpacked_size(path)
        if file_format == 'safetensors':
            contents = _read_safetensors(path)
        elif file_format == 'npz':
            from . import downloading

            contents = downloading.read_npz(path, size)
        else:
            contents = _read_pickle(path, map_location, mapped)
        checkpoint = Checkpoint.from_contents(contents, name)
        averages = get_dict(checkpoint, 'ema_state_dict')
        for weights in (checkpoint.weights, averages):
            check_tensors(weights, size)
        return checkpoint
    except CheckpointError:
        raise
    except Exception as error:  # damaged files may raise anything
        raise _refusal(path, name, error) from error


def _read_pickle(path: str, map_location, mapped: bool):
    # the old format lacks checksums and cannot be mapped
    is_zip = zipfile.is_zipfile(path)
    if is_zip and not mapped and (entry := find_damaged_entry(path)):
        raise Error(f'{_tensor_in(path, entry)} {WRONG}')
    mapped = mapped and is_zip
    # given a path, torch would choose the format by its extension
    with only_safe_globals(), open(path, 'rb') as file:
        return torch.load(
            path if mapped else file,
            map_location=map_location or 'cpu',
            weights_only=True,
            mmap=mapped,
        )


def _tensor_in(path: str, entry: str) -> str:
    """Return the name of a damaged tensor, by default that of its entry."""
    with zipfile.ZipFile(path) as archive, suppress(Exception):
        checksums = {info.CRC for info in archive.infolist()}
        contents = _read_pickle(path, None, True)
        weights = Checkpoint.from_contents(contents, path).weights
        for name, x in weights.items():
            if compute_checksum(x) not in checksums:
                return name
    return entry


def _read_safetensors(path: str) -> dict:
    """Read weights, with config and classes from the metadata."""
    with safe_open(path, 'pt') as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        texts = file.metadata() or {}
    verify_tensors(weights, texts)
    meta = {}
    if 'config' in texts:
        meta['cfg'] = texts['config']
    if 'classes' in texts:
        meta['dataset_meta'] = dict(classes=json.loads(texts['classes']))
    return dict(meta=meta, state_dict=weights) if meta else weights


def _refusal(path: str, name: str, error: Exception) -> CheckpointError:
    reason = str(error).split('WeightsUnpickler error: ')[-1]
    unsafe = re.search(UNSAFE, reason)
    if isinstance(error, UnpicklingError) and unsafe:
        return CheckpointError(
            f'{name} is refused: it contains {unsafe.group()}, which is more '
            'than weights and plain settings and could run code; if you trust '
            'the file, save only its state dict in the environment of its '
            'training and load that'
        )
    # drop torch's advice to load the file without restrictions
    reason = reason.strip().partition('\n')[0].partition('. ')[0]
    return CheckpointError(
        f'{name} ({os.path.getsize(path)} bytes) cannot be opened '
        f'({type(error).__name__}: {reason}); the file is incomplete or not a '
        'checkpoint; copy or download it again'
    )


def _add_base(checkpoint: Checkpoint, path: str, mapped: bool) -> None:
    """Add the frozen parameters stored by :class:`SaveTrainableHook`."""
    base = checkpoint.meta.get('base')
    if not isinstance(base, str):
        return
    base = os.path.basename(base)  # never from another folder
    folder = pathlib.Path(path).absolute().parent
    files = [parent / base for parent in (folder, folder.parent)]
    file = str(next(filter(pathlib.Path.is_file, files), files[0]))
    if not os.path.isfile(file):
        raise FileNotFoundError(
            f'{checkpoint.name} needs the missing file {file}'
        )
    weights = _read_file(file, file, None, mapped).weights
    if base != base_file(weights):
        raise CheckpointError(
            f'{checkpoint.name} needs {base}, but the contents of {file} have '
            f'another hash ({base_file(weights)}); copy the base of its run '
            'there'
        )
    checkpoint.weights.update(weights)
    averages = {f'module.{name}': x for name, x in weights.items()}
    get_dict(checkpoint, 'ema_state_dict').update(averages)

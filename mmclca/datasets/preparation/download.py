# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch sets from their parquet mirror on the Hugging Face hub."""

import os
import re
import shutil
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_url
from huggingface_hub.file_download import http_get
from huggingface_hub.utils.sha import sha_fileobj

REPOSITORY = 'hibana2077/CV-dataset-all-in-parquet'
FOLDER = 'datasets/ufgvc'
MARGIN = 64 << 20

BY_HAND = f"""\
By hand, and then `check`:
  - in a browser: the hub data set {REPOSITORY}, folder {FOLDER};
  - on another machine: hf download {REPOSITORY} {FOLDER}/{{name}} \
--repo-type dataset --local-dir FOLDER;
  - a mirror of the hub: set HF_ENDPOINT;
  - the original archives: the UFG page of Griffith University or the link in \
XiaohanYu-GU/Ultra-FGVC.
docs/data_sets.md tells more."""


class DownloadError(OSError):
    """A download that failed, with what to do about it."""


def download(info, folder, revision='main', force=False):
    """Fetch one parquet file, or what is missing of it, and verify it.

    The file appears under its name only when it is whole and its SHA-256 is
    the one that the hub states. Until then it grows in a hidden file beside
    it, which a later call resumes.

    Args:
        info (UltraFGVCInfo): A set with a file of its own in the mirror.
        folder (str | Path): Where the file goes.
        revision (str): Branch, tag or commit on the hub. Defaults to 'main'.
        force (bool): Whether to replace a file that differs from the hub's.
            Defaults to False.

    Returns:
        Path: The file.

    Raises:
        DownloadError: If the hub cannot be reached, the disk is full or the
            checksum is wrong.
    """
    target = Path(folder) / info.parquet
    target.parent.mkdir(parents=True, exist_ok=True)
    remote = _metadata(info.parquet, revision)
    if target.exists() and sha256(target) == remote.etag:
        return target
    if target.exists() and not force:
        raise DownloadError(
            f'{target} exists and is not the file of the hub ({revision}). '
            'Move it away or pass --force.'
        )
    part = target.with_name(f'.{target.name}.{remote.etag[:12]}.part')
    _check_space(part, remote.size)
    _fetch(remote, part, info.parquet)
    _check_sum(part, remote.etag)
    os.replace(part, target)
    return target


def _metadata(name, revision):
    url = hf_hub_url(
        REPOSITORY,
        f'{FOLDER}/{name}',
        repo_type='dataset',
        revision=revision,
        endpoint=os.environ.get('HF_ENDPOINT'),
    )
    try:
        remote = get_hf_file_metadata(url)
    except Exception as error:  # which one depends on the hub's HTTP client
        raise DownloadError(
            f'{url} cannot be reached: {error}\n{BY_HAND.format(name=name)}'
        ) from error
    if not (remote.size and re.fullmatch('[0-9a-f]{64}', remote.etag or '')):
        raise DownloadError(
            f'{url}: the hub states no size and SHA-256 to check by '
            f'(size {remote.size}, etag {remote.etag})'
        )
    return remote


def _fetch(remote, part, name):
    done = _size(part)
    if done > remote.size:
        part.unlink()
        done = 0
    if done == remote.size:
        return
    try:
        with open(part, 'ab') as file:
            http_get(
                remote.location,
                file,
                resume_size=done,
                expected_size=remote.size,
                displayed_filename=name,
            )
    except Exception as error:  # which one depends on the hub's HTTP client
        raise DownloadError(
            f'{name}: the download was interrupted: {error}\n{_size(part)} of '
            f'{remote.size} bytes are kept. The same command resumes it.\n'
            f'{BY_HAND.format(name=name)}'
        ) from error


def _check_space(part, size):
    need = size - _size(part) + MARGIN
    free = shutil.disk_usage(part.parent).free
    if free < need:
        raise DownloadError(
            f'{part.parent} has {free >> 20} MB free; the download needs '
            f'{need >> 20} MB'
        )


def _check_sum(part, expected):
    found = sha256(part)
    if found != expected:
        part.unlink()
        raise DownloadError(
            f'The checksum of what was downloaded is wrong (SHA-256 {found}, '
            f'the hub states {expected}). It was deleted; try again.'
        )


def sha256(path):
    """Compute the SHA-256 of a file.

    Returns:
        str: 64 hexadecimal digits.
    """
    with open(path, 'rb') as file:
        return sha_fileobj(file).hex()


def _size(path):
    return path.stat().st_size if path.exists() else 0

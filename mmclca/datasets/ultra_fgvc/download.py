# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch sets from their parquet mirror on the Hugging Face hub."""

import os
from pathlib import Path

from huggingface_hub import snapshot_download

REPOSITORY = 'hibana2077/CV-dataset-all-in-parquet'
FOLDER = 'datasets/ufgvc'
BY_HAND = (
    'The same command resumes a download. By hand: hf download '
    f'{REPOSITORY} {FOLDER}/{{name}} --repo-type dataset --local-dir FOLDER; '
    'a mirror of the hub: HF_ENDPOINT; more ways: docs/data_sets.md'
)


def download(info, folder, revision='main'):
    """Fetch the parquet files of a set, or what is missing of them.

    Returns:
        list[Path]: The files.

    Raises:
        OSError: If they cannot be fetched; says how to get them by hand.
    """
    names = [f'{FOLDER}/{part.parquet}' for part in info.parts]
    files, problem = [Path(folder) / name for name in names], ''
    try:
        snapshot_download(
            REPOSITORY,
            repo_type='dataset',
            revision=revision,
            local_dir=folder,
            allow_patterns=names,
            endpoint=os.environ.get('HF_ENDPOINT'),
        )
    except Exception as error:  # which one depends on the hub's HTTP client
        problem = f': {error}'
    if problem or not all(file.is_file() for file in files):
        by_hand = BY_HAND.format(name=files[0].name)
        raise OSError(f'{info.title} could not be fetched{problem}\n{by_hand}')
    return files

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What cached pixels depend on: the file of an image, and how it is read."""

import json
import os
from hashlib import blake2b

import cv2
import mmcv
import PIL

from ..parquet.uri import PREFIX, split_uri


def name_of(transforms: list[dict]) -> str:
    """Name what is made of an image by steps of a pipeline.

    Args:
        transforms (list[dict]): Their configs.

    Returns:
        str: The same only for the same steps and the same libraries.
    """
    versions = cv2.__version__, mmcv.__version__, PIL.__version__
    text = json.dumps([transforms, versions], sort_keys=True, default=repr)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def key_of(path: str) -> str | None:
    """Name an image; the name changes when its file is written or replaced.

    Args:
        path (str): What mmengine reads: a path, or the address of an image
            in a parquet file.

    Returns:
        str | None: 32 digits; None where there is no file of which a change
        could be seen: it is missing, or on another machine.
    """
    path = str(path)
    file = split_uri(path)[0] if path.startswith(PREFIX) else path
    try:
        status = os.stat(file)
    except OSError:
        return None
    state = status.st_ino, status.st_size, status.st_mtime_ns
    text = repr((os.path.abspath(path), *state, status.st_ctime_ns))
    return blake2b(text.encode(), digest_size=16).hexdigest()

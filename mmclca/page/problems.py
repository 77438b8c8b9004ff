# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Texts on wrong input and on bugs."""

from pathlib import Path

from mmclca.languages import text


def describe_problem(error: Exception) -> str:
    """Describe wrong input, the disk or a missing package in one line."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        message = error.strerror
        if error.filename:  # without its folder, which may be private
            message = f'{Path(error.filename).name}: {message}'
    return ' '.join(message.split())


def describe_bug(error: Exception) -> str:
    """Name type and message for an unexpected error in one line."""
    return ' '.join(f'{type(error).__name__}: {error}'.split())


def describe_as_bug(problem: str) -> str:
    """Ask to report a bug."""
    return text('page.bug', problem=problem)

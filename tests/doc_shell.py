# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Bash that runs a block, and hands each program it starts to Python.

So loops, variables and patterns are the shell's own, and a dozen tools cost
one import of PyTorch. The block's ``python`` is a script that writes its
arguments to a file, says so, and waits for the exit status.
"""

import os
import subprocess

from doc_pages import PROGRAMS

SHIM = """#!/bin/bash
printf '%s\\0' "${0##*/}" "$@" > "$DOC_CALLS/words"
env -0 > "$DOC_CALLS/environment"
echo call >&3
read -r status <&0
exit "$status"
"""


def write_shims(folder):
    """Write a substitute for each program into ``folder``."""
    folder.mkdir()
    for program in PROGRAMS:
        (folder / program).write_text(SHIM)
        (folder / program).chmod(0o755)


def run_block(text, shims, call):
    """Run a block in the current folder.

    Args:
        text (str): Lines of bash.
        shims (Path): The folder of ``write_shims``.
        call (Callable): Is given the words of each program that is started
            and its environment; returns the exit status.

    Returns:
        tuple[int, str]: Exit status of the block, and what bash complains of.
    """
    environment = dict(
        os.environ,
        PATH=f'{shims}{os.pathsep}{os.environ["PATH"]}',
        DOC_CALLS=str(shims),
    )
    shell = subprocess.Popen(
        ['/bin/bash', '-euc', f'exec 3>&1 1>&2\n{text}'],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with shell:
        for _ in shell.stdout:
            shell.stdin.write(f'{_answer(shims, call)}\n')
            shell.stdin.flush()
        return shell.wait(), shell.stderr.read()


def _answer(shims, call):
    words = (shims / 'words').read_text().split('\0')[:-1]
    lines = (shims / 'environment').read_text().split('\0')[:-1]
    return call(words, dict(line.split('=', 1) for line in lines))

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Extract commands and Python blocks from documentation pages."""

import re
import shlex
from itertools import takewhile
from textwrap import dedent
from typing import NamedTuple

from tiny_run import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob('README*.md'), *ROOT.glob('docs/**/*.md'))
)
SHELLS = ('bash', 'shell', 'sh', 'console')
PROGRAMS = (
    'python',
    'pip',
    'mim',
    'make',
    'bash',
    'sh',
    'pytest',
    'git',
    'ssh',
)
FENCE = re.compile(r'^( *)```(\w*)[^\n]*\n(.*?)^ *```', re.M | re.S)
VARIABLE = r'(?:[A-Za-z_]\w*=\S* +)*'
INLINE = re.compile(rf'`({VARIABLE}(?:{"|".join(PROGRAMS)})\s[^`]+)`')
# keywords before commands in loops, and lines without a command
KEYWORD = re.compile(r'\b(?:do|then|else)\s+(?=\S)')
NO_COMMAND = ('for', 'done', 'export', 'cd', 'source', 'exit')


class Block(NamedTuple):
    """Content of a fence, or an inline command."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self):
        return f'{self.page}:{self.line}'


def read(page):
    """Return the fences and inline commands on a page in order."""
    text = (ROOT / page).read_text(encoding='utf-8')
    fences = list(FENCE.finditer(text))
    found = [_block(page, text, m.start(), m[2], dedent(m[3])) for m in fences]
    for fence in fences:  # blanks keep the line numbers
        blank = re.sub(r'[^\n]', ' ', fence[0])
        text = text[: fence.start()] + blank + text[fence.end() :]
    for m in INLINE.finditer(text):
        command = ' '.join(m[1].split())
        found.append(_block(page, text, m.start(), 'inline', command))
    return sorted(found, key=lambda block: block.line)


def _block(page, text, start, language, content):
    line = text.count('\n', 0, start) + 1
    language = 'bash' if language in SHELLS else language
    return Block(page, line, language, content)


def commands(block):
    """Return the commands in a block as lists of words, without variables."""
    joined = block.text.replace('\\\n', ' ')
    lines = [KEYWORD.sub('', line.strip()) for line in joined.splitlines()]
    split = [_without_variables(shlex.split(x, comments=True)) for x in lines]
    return [words for words in split if words and words[0] not in NO_COMMAND]


def _without_variables(words):
    while words and re.fullmatch(r'[A-Za-z_]\w*=.*', words[0]):
        words = words[1:]
    return words


def looks_like_commands(block):
    """Return whether a fence without a language starts with a program."""
    first = block.text.strip().split()[:1]
    return not block.language and first and first[0] in (*PROGRAMS, '$')


def header_commands(config):
    """Return the commands in the first comment of a config."""
    _, _, text = config.read_text().partition('# Command: ')
    comment = takewhile(
        lambda line: line.startswith('#'), f'# {text}'.split('\n')
    )
    joined = '\n'.join(line.removeprefix('#').strip() for line in comment)
    joined = re.sub(r'\\\n', '', joined.replace(' \\\n', ' '))
    lines = (re.sub(r'\s\(.*\)$', '', line) for line in joined.split('\n'))
    starts = ('python ', 'bash ')
    return [shlex.split(line) for line in lines if line.startswith(starts)]

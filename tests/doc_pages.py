# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The commands and the Python that the pages show, with where they stand."""

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
# what stands around commands in a loop, and lines without a program
KEYWORD = re.compile(r'(?:do|then|else)\s+(?=\S)')
NO_COMMAND = ('for', 'done', 'export', 'cd', 'source', 'exit')


class Block(NamedTuple):
    """What stands in a fence, or a command in a line of text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self):
        return f'{self.page}:{self.line}'


def read(page):
    """The blocks of a page in their order, commands in its text included."""
    text = (ROOT / page).read_text(encoding='utf-8')
    fences = list(FENCE.finditer(text))
    found = [_block(page, text, m.start(), m[2], dedent(m[3])) for m in fences]
    for fence in fences:  # blank, so that lines keep their numbers
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
    """Its commands as lists of words, without the variables before them."""
    joined = block.text.replace('\\\n', ' ')
    lines = [KEYWORD.sub('', line.strip()) for line in joined.splitlines()]
    split = [_without_variables(shlex.split(x, comments=True)) for x in lines]
    return [words for words in split if words and words[0] not in NO_COMMAND]


def _without_variables(words):
    while words and re.fullmatch(r'[A-Za-z_]\w*=.*', words[0]):
        words = words[1:]
    return words


def looks_like_commands(block):
    """Whether a fence without a language begins with a program."""
    first = block.text.strip().split()[:1]
    return not block.language and first and first[0] in (*PROGRAMS, '$')


def header_commands(config):
    """The commands in the first comment of a config, as lists of words."""
    _, _, text = config.read_text().partition('# Command: ')
    comment = takewhile(
        lambda line: line.startswith('#'), f'# {text}'.split('\n')
    )
    joined = '\n'.join(line.removeprefix('#').strip() for line in comment)
    joined = re.sub(r'\\\n', '', joined.replace(' \\\n', ' '))
    lines = (re.sub(r'\s\(.*\)$', '', line) for line in joined.split('\n'))
    starts = ('python ', 'bash ')
    return [shlex.split(line) for line in lines if line.startswith(starts)]

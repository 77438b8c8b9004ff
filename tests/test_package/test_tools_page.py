# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""docs/tools.md names every tool, and no other."""

import re
from collections import Counter

import pytest
from tiny_run import ROOT, load_tool

PAGE = (ROOT / 'docs/tools.md').read_text(encoding='utf-8')
TOOLS = {
    str(path.relative_to(ROOT))
    for path in (ROOT / 'tools').rglob('*')
    if path.suffix in ('.py', '.sh') and 'dev' not in path.parts
}
# those whose command lines can be read without a data set or a folder
COMMANDS = re.findall(r'`python (tools/(?:analysis|misc|vis)\S+) (.+?)`', PAGE)


def test_every_tool_is_named():
    named = re.findall(r'tools/[\w/]+\.(?:py|sh)', PAGE)
    assert set(named) == TOOLS
    assert Counter(named).most_common(1)[0][1] <= 2  # two of analyze_logs


@pytest.mark.parametrize('tool, words', COMMANDS)
def test_flags_of_the_commands(tool, words, monkeypatch):
    """What stands in a table is a command line that the tool accepts."""
    words = words.replace('IMAGES', 'a.png').replace('CHECKPOINT', 'a.pth')
    load_tool(monkeypatch, ROOT / tool, *words.split())['parse_args']()

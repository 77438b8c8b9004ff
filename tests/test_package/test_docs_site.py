# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Documentation: links, site, and API reference."""

import importlib
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest
from doc_pages import PAGES
from tiny_run import ROOT, environment

import mmclca

FENCE = re.compile(r'^ *```.*?^ *```', re.M | re.S)
LINK = re.compile(r'\]\(([^)\s]+)\)|src="([^"]+)"')
ZH = 'README_zh-CN.md'


def text_of(page):
    return (ROOT / page).read_text(encoding='utf-8')


def anchors(page):
    """Return the GitHub anchors of all headings on a page."""
    titles = re.findall(r'^#+ (.+)$', FENCE.sub('', text_of(page)), re.M)
    plain = (re.sub(r'[^\w\- ]', '', title.lower()) for title in titles)
    return {title.replace(' ', '-') for title in plain}


def local_links(page):
    """Return the local links and pictures on a page."""
    found = LINK.findall(FENCE.sub('', text_of(page)))
    links = (link or source for link, source in found)
    return [link for link in links if not re.match(r'\w+:', link)]


@pytest.mark.parametrize('page', PAGES)
def test_links_and_pictures_exist(page):
    wrong = []
    for link in local_links(page):
        name, _, anchor = link.partition('#')
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists():
            wrong.append(link)
        elif anchor:
            other = os.path.relpath(target, ROOT)
            wrong += [] if anchor in anchors(other) else [link]
    assert not wrong, f'{page} links to what is not there: {wrong}'


def public_objects():
    """Yield names and objects in ``__all__`` of all packages."""
    modules = pkgutil.walk_packages(mmclca.__path__, 'mmclca.')
    for name in (module.name for module in modules if module.ispkg):
        package = importlib.import_module(name)
        for public in vars(package).get('__all__', ()):
            yield f'{name}.{public}', getattr(package, public)


def resolved(name):
    """Return the object of a dotted name, None if not in a module."""
    module, _, attribute = name.rpartition('.')
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        return None  # a method


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    """Folder with the built site."""
    pytest.importorskip(
        'furo', reason="furo is missing: pip install 'mmclca[docs]'"
    )
    folder = tmp_path_factory.mktemp('site')
    command = [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q']
    run = subprocess.run(
        [*command, '-d', folder / 'read', 'docs', folder / 'html'],
        cwd=ROOT,
        env=environment(ROOT),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return folder / 'html'


@pytest.mark.slow
def test_site_has_every_page(site):
    for page in PAGES:
        if page.startswith('docs/'):
            built = site / Path(page).relative_to('docs').with_suffix('.html')
            assert built.exists(), page
    menu = (site / 'index.html').read_text(encoding='utf-8')
    for name in ('start', 'how_it_works', 'methods/evit', 'api/models'):
        assert f'href="{name}.html"' in menu


@pytest.mark.slow
@pytest.mark.parametrize('page', ['deployment', 'how_it_works', 'zh-CN'])
def test_site_converts_page_links(page, site):
    html = (site / f'{page}.html').read_text(encoding='utf-8')
    _, _, article = html.partition('<article')
    targets = set(re.findall(r'href="([\w/.-]+)', article))
    linked = set()
    for link in local_links(f'docs/{page}.md' if page != 'zh-CN' else ZH):
        name = link.partition('#')[0].removeprefix('docs/')
        if name.endswith('.md') and name != 'README.md':
            linked.add(name.removesuffix('.md') + '.html')
    assert linked and linked <= targets


@pytest.mark.slow
def test_each_page_has_one_description(site):
    conf = runpy.run_path(str(ROOT / 'docs/conf.py'))
    for page, text in conf['DESCRIPTIONS'].items():
        assert (ROOT / 'docs' / f'{page}.md').exists() and len(text) < 220
        html = (site / f'{page}.html').read_text(encoding='utf-8')
        assert f'<meta name="description" content="{escape(text)}">' in html
    described = re.compile(r'<meta name="description" content="([^"]+)">')
    for page in PAGES:
        if page.startswith('docs/'):
            built = site / Path(page).relative_to('docs').with_suffix('.html')
            found = described.findall(built.read_text(encoding='utf-8'))
            assert len(found) == 1 and len(found[0]) > 20, page


@pytest.mark.slow
def test_site_fetches_nothing(site):
    fetched = re.compile(r'<(?:script|img|link)[^>]*(?:src|href)="https?:')
    for page in site.rglob('*.html'):
        assert not fetched.search(page.read_text(encoding='utf-8')), page


@pytest.mark.slow
def test_reference_has_every_public_name(site):
    ids = re.compile(r'id="(mmclca\.[\w.]+)"')
    named = {
        name
        for page in (site / 'api').glob('*.html')
        for name in ids.findall(page.read_text(encoding='utf-8'))
    }
    documented = {id(resolved(name)) for name in named}
    missing = [
        name for name, thing in public_objects() if id(thing) not in documented
    ]
    assert not missing, f'add them to docs/api: {missing}'

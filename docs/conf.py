# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sphinx makes a site of the pages in this folder: ``make docs``.

Pages are Markdown that reads on a git hosting page as well. Nothing is
fetched, neither while the site is built nor by a reader's browser.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import mmclca

project = 'mmclca'
author = 'mmclca contributors'
copyright = author
release = mmclca.__version__

extensions = [
    'myst_parser',
    'sphinx.ext.autodoc',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
    'sphinx_copybutton',
]
exclude_patterns = ['_build']
nitpicky = True  # a name of this package that leads nowhere is an error
# those of other packages stay text: their sites would have to be asked
nitpick_ignore_regex = [('py:.*', r'(?!mmclca\b).*')]

highlight_language = 'none'  # where a fence names none
html_theme = 'furo'
html_title = f'mmclca {release}'
html_math_renderer = 'mathml'

myst_enable_extensions = ['dollarmath', 'html_image']
myst_fence_as_directive = ['math']
myst_heading_anchors = 4

autodoc_member_order = 'bysource'
autodoc_typehints = 'none'  # types stand in the docstrings
# else the menu of every page lists every member: a third of the build
toc_object_entries = False

# Pages below other pages in the menu; new pages in a folder are included.
BELOW = {
    'methods/README': '*',
    'results': 'results/*',
    'benchmarks/README': '*',
}

# What search engines show below the title; other pages: their first paragraph.
DESCRIPTIONS = {
    'index': 'Few-shot image classification for plant diseases, cultivars and '
    'species: train from a folder of photos, offline, without a GPU. An '
    'MMPretrain extension with token merging and pruning for ViTs.',
    'fit': 'Few-shot image classification from a folder of photos: one '
    'command, 3 to 30 photos per class, no GPU, accuracy with a confidence '
    'interval.',
    'tutorial': 'Plant disease classification from 60 public photos of coffee '
    'leaves: download, train, read the report, predict, and use the model '
    'offline on a phone.',
    'timm': 'Token merging and pruning (ToMe, EViT, ATC, DiffRate and 11 '
    'others) for vision transformers of timm and Transformers in two lines, '
    'with measured speed.',
    'coming_from': 'Commands of timm, MMPretrain, Ultralytics YOLO, '
    'AutoGluon, fastai, Teachable Machine and pybioclip, and those of mmclca.',
    'web_app': 'Offline plant identification app for phones, exported from '
    'your own photos; nothing is uploaded.',
    'configs': 'An MMPretrain extension: configs for vision transformers with '
    'token reduction and cross-layer cache aggregation (CLCA).',
    'unknown_classes': 'Flag photos of none of your classes '
    '(out-of-distribution detection), with a stated rate of false alarms.',
    'shortcuts': 'Find out whether a plant classifier uses the background, '
    'the camera or the image size instead of the plant.',
    'new_photos': 'Detect new photos that differ from the training photos '
    '(dataset shift), with a two-sample test and its measured power.',
    'sure': 'Prediction sets for photos (conformal prediction): name all '
    'classes that may be right, with a stated coverage.',
    'plants': 'Combine several photos of one plant to one calibrated '
    'prediction; how much a second and third photo help.',
}
SHORT, LENGTH = 30, 160  # letters of a description

READMES = {
    'CONTRIBUTING': 'contributing',
    'README': 'index',
    'README_zh-CN': 'zh-CN',
    'SECURITY': 'security',
}


def add_menu(app, docname, source):
    """Put ``BELOW`` into the pages, which show nothing of it elsewhere."""
    if docname in BELOW:
        entries = f':hidden:\n:glob:\n{BELOW[docname]}'
        source[0] += f'\n```{{toctree}}\n{entries}\n```\n'


def fix_included(app, path, docname, content):
    """Links and pictures of a README, as seen from this folder."""
    from_here = re.sub(r'(\]\(|src=")(?!https?:|#)', r'\1../', content[0])
    content[0] = from_here.replace('../docs/', '')


class LinksOutOfTheFolder(SphinxTransform):
    """Links of pages to what is beside ``docs`` in the repository.

    A README is a page of the site, a folder is a name without a link; a file
    can be downloaded, which MyST sees to.
    """

    default_priority = 10

    def apply(self):
        root = Path(self.env.srcdir).parent
        here = Path(self.env.doc2path(self.env.docname)).parent
        pages = {str(root / name): page for name, page in READMES.items()}
        for link in list(self.document.findall(addnodes.pending_xref)):
            target = link['reftarget']
            if target in pages:
                link['reftarget'] = pages[target]
            elif link['refdomain'] is None and (here / target).is_dir():
                link.replace_self(link.children)


def add_description(app, pagename, templatename, context, doctree):
    """Put the description of a page into its head."""
    if doctree is None:  # the index, the search, sources of modules
        return
    texts = [
        ' '.join(paragraph.astext().split())
        for paragraph in doctree.findall(nodes.paragraph)
        if isinstance(paragraph.parent, nodes.section)  # not in a table
    ]
    first = next((x for x in texts if len(x) > SHORT), context['title'])
    text = DESCRIPTIONS.get(pagename, first)
    if len(text) > LENGTH and pagename not in DESCRIPTIONS:
        text = text[:LENGTH].rsplit(' ', 1)[0] + ' ...'
    tag = f'<meta name="description" content="{escape(text)}">'
    context['metatags'] += tag


def visit_math(self, node):
    """TeX as MathML, which browsers draw without a script."""
    is_block = isinstance(node, nodes.math_block)
    math = str(tex2mathml(node.astext(), as_block=is_block))
    self.body.append(f'<p>{math}</p>' if is_block else math)
    raise nodes.SkipNode


def setup(app):
    app.connect('source-read', add_menu)
    app.connect('include-read', fix_included)
    app.connect('html-page-context', add_description)
    app.add_transform(LinksOutOfTheFolder)
    app.add_html_math_renderer(
        'mathml', (visit_math, None), (visit_math, None)
    )

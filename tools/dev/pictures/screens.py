# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Screenshots: fit in a terminal, its report, the web page and the web app,
with synthetic leaves and the default weights.
"""

import html
import shutil
import subprocess
import sys
from functools import cache, partial
from itertools import takewhile

from leaves import WORK, run

# synthetic leaves for fit: classes, photos per class
CLASSES = ('aurora', 'borealis', 'celeste', 'diana')
CLASSES += ('estrella', 'flora', 'gloria', 'helena')
PHOTOS = 7
SHOWN = 1, 7  # positions of the classes in the activation maps
COMMAND = 'fit', 'photos'
FOLDER = WORK / 'leaf_cultivars'  # gives the report its title
WIDTH, HEIGHT = 900, 1000  # of the report
THREE_PAIRS = 862  # height of the first three confused pairs
TERMINAL = """<body style="margin:0; display:inline-block">
<div style="background:#24292f; padding:10px 14px; height:12px">{buttons}</div>
<pre style="background:#0d1117; color:#e6edf3; margin:0; padding:14px 18px;
font: 14px/1.45 DejaVu Sans Mono, monospace; white-space:pre-wrap;
width:88ch">{lines}</pre></body>"""
LINE = '<div style="padding-left:11ch; text-indent:-11ch">{}</div>'
BUTTON = (
    '<i style="float:left; width:12px; height:12px; margin-right:8px; '
    'border-radius:6px; background:{}"></i>'
)
BUTTONS = ''.join(map(BUTTON.format, ('#ff5f57', '#febc2e', '#28c840')))


def draw_photos():
    """Draw synthetic leaves; hold out three per class."""
    shutil.rmtree(FOLDER / 'photos', ignore_errors=True)
    number = f'--classes={len(CLASSES)}', f'--per-class={PHOTOS + 3}'
    options = '--seed=7', '--difference=0.5', '--jobs=2'
    run('synthetic-leaves', [WORK / 'leaves', *number, *options])
    folders = sorted((WORK / 'leaves/images').iterdir())
    for name, folder in zip(CLASSES, folders, strict=True):
        (FOLDER / 'photos' / name).mkdir(parents=True)
        for file in sorted(folder.iterdir())[:PHOTOS]:
            shutil.copy(file, FOLDER / 'photos' / name)


@cache
def fitted():
    """Run fit on synthetic leaves as a user does; return the output lines
    above the latency."""
    draw_photos()
    command = [sys.executable, '-m', 'mmclca', *COMMAND, '--overwrite']
    process = subprocess.run(
        command, cwd=FOLDER, check=True, capture_output=True, text=True
    )
    # the latency below depends on the load of this computer
    lines = process.stdout.splitlines()
    return list(takewhile(lambda line: 'Latency' not in line, lines))


def screenshot(page, file, **options):
    """Write a screenshot and return its path."""
    page.screenshot(path=file, animations='disabled', **options)
    return file


def terminal():
    """Draw a terminal with the fit command and the start of its output."""
    from screenshot_page import browser

    command = f'$ python -m mmclca {" ".join(COMMAND)}'
    lines = map(html.escape, [command, *fitted()])
    body_html = ''.join(map(LINE.format, lines))
    with browser() as chromium:
        page = chromium.new_page(device_scale_factor=1.5)
        page.set_content(TERMINAL.format(buttons=BUTTONS, lines=body_html))
        body = page.locator('body')
        return screenshot(body, WORK / 'terminal.png')


def report(part='body', height=HEIGHT):
    """Draw the upper part of the report, or of a part of it."""
    from screenshot_page import browser

    fitted()
    with browser() as chromium:
        page = chromium.new_page()
        page.set_viewport_size(dict(width=WIDTH, height=HEIGHT))
        html = (FOLDER / 'model/report.html').read_text(encoding='utf-8')
        page.set_content(html.replace(f'{FOLDER.resolve()}/', ''))
        box = page.locator(part).bounding_box()
        clip = dict(box, height=height)
        file = WORK / 'report.png'
        return screenshot(page, file, full_page=True, clip=clip)


def new_leaf(number):
    """Copy a leaf that ``fit`` has not seen; return its path.

    ``number`` is the position of its class.
    """
    folder = WORK / f'leaves/images/cultivar_{number + 1:02}'
    path = WORK / f'{CLASSES[number]}.jpg'
    shutil.copy(sorted(folder.iterdir())[-1], path)
    return path


def cam():
    """Draw activation maps of the fitted model on two new leaves, before its
    first reduction."""
    fitted()
    out = WORK / 'cam.png'
    options = '--target-layers', 2, '--target-category', *SHOWN
    leaves = map(new_leaf, SHOWN)
    run('vis-cam', [FOLDER / 'model', *leaves, *options, '--save-path', out])
    return out


def page():
    """Draw the web page with the fitted model and a new leaf."""
    import screenshot_page as tool

    from mmclca.page import open_model
    from mmclca.page.identify import IdentifyTab
    from mmclca.page.server import serve, uploads_folder

    fitted()
    model = open_model(FOLDER / 'model')
    leaf = sorted((WORK / 'leaves/images/cultivar_02').iterdir())[-1]
    with (
        uploads_folder() as folder,
        serve(IdentifyTab(folder, model)) as (address, _),
        tool.browser() as chromium,
    ):
        view = chromium.new_page()
        tool.open_page(view, address)
        tool.drop(view, leaf)
        view.locator('#similar img').nth(7).wait_for()
        tool.write_picture(view, WORK / 'page.png')
    return WORK / 'page.png'


def form():
    """Draw the form of the web page with the fitted model."""
    import screenshot_page as tool

    from mmclca.page.form import FitForm
    from mmclca.page.identify import IdentifyTab
    from mmclca.page.server import serve, uploads_folder

    fitted()
    with uploads_folder() as folder, tool.browser() as chromium:
        tab = IdentifyTab(folder)
        models = FitForm(tab, FOLDER.resolve().parent, {})
        models.job.name = FOLDER.name  # the page opens the last training
        with serve(tab, form=models) as (address, _):
            view = chromium.new_page(viewport=dict(width=1000, height=900))
            view.goto(address)
            view.locator('#report iframe').wait_for()
            tool.write_picture(view, WORK / 'form.png', full_page=False)
    return WORK / 'form.png'


def web_app(width, height):
    """Draw the exported web app with a new leaf and one of another class."""
    import cv2
    import screenshot_page as tool

    from mmclca.datasets.synthetic_leaves import generate_leaves

    fitted()
    app = WORK / 'apps/leaf_cultivars/web'  # the folder names the app
    shutil.copytree(FOLDER / 'model', app.parent, dirs_exist_ok=True)
    run('export', [app.parent, '--web'])
    leaves = [WORK / 'other_class.png', WORK / 'new_leaf.jpg']
    cv2.imwrite(str(leaves[0]), next(generate_leaves(24, seed=4))[1])
    photo = sorted((WORK / 'leaves/images/cultivar_02').iterdir())[-1]
    shutil.copy(photo, leaves[1])
    with tool.served(app) as address, tool.browser() as chromium:
        view = chromium.new_page(viewport=dict(width=width, height=height))
        view.goto(address)
        tool.identify(view, *leaves)
        return screenshot(view, WORK / f'web_app_{width}.png')


PICTURES = dict(
    terminal=terminal,
    report=report,
    report_pairs=partial(report, '#confused', THREE_PAIRS),
    cam=cam,
    page=page,
    form=form,
    web_app=partial(web_app, 1200, 920),
    web_app_phone=partial(web_app, 360, 1080),
)

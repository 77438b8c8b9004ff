# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the tables of docs/tools.md from the help texts of all commands.

``python tools/dev/write_command_reference.py`` replaces the text between the
marks in the page. The help texts are in ``tests/golden/help``; a test compares
them with ``--help``.
"""

import re
from pathlib import Path

from marked_text import write_between

from mmclca import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/tools.md'
HELP = ROOT / 'tests/golden/help'
BEGIN = '<!-- tables: write_command_reference.py -->\n'
END = '<!-- end of tables -->'
TITLES = ('command', 'purpose', 'options')
SHARED = (
    *('--help', '--debug', '--device', '--cfg-options'),
    *('--batch-size', '--launcher', '--local_rank'),
)
# commands by section, with the page that explains them
SECTIONS = {
    'Fit and use': {
        'mmclca fit': 'fit',
        'tools/predict.py': 'inference',
        'demo/app.py': 'page',
        'mmclca add-class': 'fit',
        'mmclca report': 'report',
        'tools/deployment/export.py': 'deployment',
        'tools/deployment/infer_onnx.py': 'deployment',
        'tools/probe.py': 'probe',
        'tools/retrieval.py': 'retrieval',
        'tools/open_set.py': 'unknown_classes',
        'tools/demo.py': 'start',
    },
    'Train and test': {
        'tools/train.py': 'training',
        'tools/test.py': 'training',
        'tools/sweep.py': 'sweeps',
        'tools/model_converters/publish_model.py': '',
        'tools/misc/print_config.py': 'configs',
        'tools/analysis_tools/get_flops.py': 'training',
        'tools/benchmark/throughput.py': 'benchmarks/README',
    },
    'Data': {
        'tools/dataset_converters/split_folder.py': 'training',
        'tools/dataset_converters/hold_out_classes.py': 'unknown_classes',
        'tools/dataset_converters/ultra_fgvc.py': 'data_sets',
        'tools/dataset_converters/synthetic_leaves.py': '',
        'tools/visualization/browse_dataset.py': '',
    },
    'Analyze a run': {
        'tools/analysis_tools/analyze_logs.py': '',
        'tools/analysis_tools/analyze_results.py': '',
        'tools/analysis_tools/confusion_matrix.py': '',
        'tools/visualization/vis_scheduler.py': '',
    },
    'Explain a model': {
        'tools/visualization/draw_reduction.py': 'pictures',
        'tools/visualization/vis_rollout.py': 'pictures',
        'tools/visualization/vis_cam.py': 'pictures',
        'tools/visualization/vis_pooling.py': 'pictures',
        'tools/visualization/vis_confusions.py': 'pictures',
        'tools/visualization/vis_tsne.py': 'pictures',
        'tools/visualization/vis_cka.py': 'pictures',
        'tools/visualization/vis_agreement.py': 'pictures',
        'tools/visualization/vis_cross_patch.py': 'pictures',
        'tools/visualization/vis_reconstruction.py': 'pretraining',
    },
}
# for help texts that do not begin with the purpose
PURPOSES = {
    'analyze_logs': 'Plot losses and metrics, or print the training speed',
    'draw_reduction': 'Draw the patches that remain after each stage',
    'vis_cam': 'Draw class activation maps, such as Grad-CAM',
    'vis_pooling': 'Draw the weights of attention pooling',
    'vis_reconstruction': 'Draw masked images and their reconstructions',
    'vis_rollout': 'Draw the attention rollout over the patches',
    'vis_scheduler': 'Plot the learning-rate schedule',
}


def help_of(command):
    """Return the name and the text of the help file of a command."""
    name = command.replace(' ', '_')
    if command.endswith('.py'):
        name = Path(command).stem
    return name, (HELP / f'{name}.txt').read_text(encoding='utf-8')


def purpose(name, text):
    """Return the first sentence of a help text."""
    description = text.split('\n\n')[1]
    return PURPOSES.get(name) or re.split('[.;:](?: |$)', description)[0]


def options(text):
    """Return the option names of a help text, without the shared ones."""
    found = re.findall(r'^  (?:-\w, )?(--[\w-]+)', text, re.M)
    names = dict.fromkeys(name for name in found if name not in SHARED)
    return ' '.join(f'`{name}`' for name in names)


def row(command, page):
    """Return the cells of a command."""
    name, text = help_of(command)
    cell = f'[`{command}`]({page}.md)' if page else f'`{command}`'
    return [cell, purpose(name, text), options(text)]


def tables():
    """Yield the lines of all tables."""
    from mmclca.benchmark.pages import line, table_head

    for title, commands in SECTIONS.items():
        yield from ['', f'## {title}', '']
        yield from table_head(TITLES)
        for command, page in commands.items():
            yield line(row(command, page))


def write():
    """Replace the text between the marks of the page."""
    lines = '\n'.join(tables())
    write_between(PAGE, BEGIN, END, f'{lines}\n\n')


def main():
    cli.Parser(description=__doc__.partition('\n')[0]).parse_args()
    write()
    print(PAGE)


if __name__ == '__main__':
    cli.run(main)

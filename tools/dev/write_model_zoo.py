# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the model tables in docs/weights.md.

``python tools/dev/write_model_zoo.py`` counts parameters and GMACs for the
base configs at 224 px with 1000 classes, and writes tables between the marks.
``docs/weights.csv`` lists all released weights.
"""

from pathlib import Path

from marked_text import write_between

from mmclca import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/weights.md'
MODELS = ROOT / 'configs/_base_/models'
BEGIN = '<!-- {} models: tools/dev/write_model_zoo.py -->\n'
END = '<!-- end of models -->'
SIZE = (224, 224)
CLCA = 'clca-evit_'
OTHERS = ('deit', 'par-vit', 'cait', 'resmlp', 'patchconvnet')
# the paper's backbones, then similar ones
BACKBONES = (
    'vit-base-p16', 'deit-base-p16', 'deit3-base-p16', 'deit3-in21k-base-p16',
    'miil-base-p16', 'mocov3-base-p16', 'dino-base-p16', 'mae-base-p16',
    'clip-base-p16', 'vit-augreg-base-p16', 'vit-small-p16', 'vit-tiny-p16',
    'deit-small-p16', 'deit-tiny-p16', 'dinov2-base-p14', 'dinov2-small-p14',
    'dinov2-reg-base-p14', 'dinov2-reg-small-p14',
)  # fmt: skip
# top-1 in % on ImageNet-1k, quoted from Touvron's thesis (2022): trained on
# ImageNet-1k alone and tested at 224 px, without a teacher except for DeiT
QUOTED = {
    'deit-tiny-distilled-p16': 74.5,
    'deit3-small-p16': 81.4,
    'deit3-base-p16': 83.8,
    'cait-xxs24-p16': 77.6,
    'cait-xxs36-p16': 79.1,
    'cait-xs24-p16': 81.8,
    'cait-xs36-p16': 82.6,
    'cait-s24-p16': 82.7,
    'cait-s36-p16': 83.3,
    'cait-s48-p16': 83.5,
    'cait-m24-p16': 83.4,
    'cait-m36-p16': 83.8,
    'resmlp-s12-p16': 76.6,
    'resmlp-s24-p16': 79.4,
    'resmlp-b24-p16': 81.0,
    'resmlp-s12-p14': 76.9,
    'resmlp-s12-p8': 79.1,
    'resmlp-b24-p8': 81.0,
    'patchconvnet-s20': 78.7,
    'patchconvnet-s36': 80.7,
    'patchconvnet-s60': 82.1,
    'patchconvnet-s120': 83.2,
    'patchconvnet-b36': 82.8,
    'patchconvnet-b60': 83.5,
    'patchconvnet-b120': 84.1,
}


def read(name):
    """Return the base config ``name`` with its model at ``SIZE``."""
    from mmengine.config import Config

    config = Config.fromfile(MODELS / f'{name}.py')
    if 'img_size' in config.model.backbone:
        config.model.backbone.img_size = SIZE[0]
    return config


def counted(model):
    """Return parameters in millions and GMACs, as text."""
    from mmclca.evaluation.cost import count_config

    cost = count_config(model.to_dict(), SIZE)
    return f'{cost.params / 1e6:.2f}', f'{cost.flops / 1e9:.2f}'


def weights(config):
    """Return a link to the pretrained weights, or their timm name."""
    name = config.load_from
    if not name:
        return 'none'
    file = name.rpartition('/')[2]
    return f'`{name}`' if name.startswith('timm://') else f'[{file}]({name})'


def backbone_row(name):
    """Return the cells for a backbone: with CLCA and as full ViT."""
    from mmclca.models import with_reduction

    config = read(CLCA + name)
    _, gmacs = counted(with_reduction(config.model))
    return [f'`{name}`', *counted(config.model), gmacs, weights(config)]


def other_row(name):
    """Return the cells for another architecture."""
    config = read(name)
    accuracy = QUOTED.get(name, '')
    return [f'`{name}`', *counted(config.model), accuracy, weights(config)]


def others():
    """Return the base configs for other architectures."""
    names = (path.stem for path in MODELS.glob('*.py'))
    return sorted(name for name in names if name.startswith(OTHERS))


def tables():
    """Return the tables by the word in their mark."""
    from mmclca.utils.markdown import format_head, format_row

    clca = ('backbone', 'parameters, M', 'CLCA', 'full ViT', 'weights')
    other = ('base config', 'parameters, M', 'GMACs', 'top-1', 'weights')
    backbones = map(format_row, map(backbone_row, BACKBONES))
    models = map(format_row, map(other_row, others()))
    return dict(
        clca='\n'.join([*format_head(clca), *backbones]),
        other='\n'.join([*format_head(other), *models]),
    )


def main():
    cli.Parser(description=__doc__.partition('\n')[0]).parse_args()
    from mmengine.registry import init_default_scope

    init_default_scope('mmpretrain')
    for word, table in tables().items():
        write_between(PAGE, BEGIN.format(word), END, f'\n{table}\n\n')


if __name__ == '__main__':
    cli.run(main)

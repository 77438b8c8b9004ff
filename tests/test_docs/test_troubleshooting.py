# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""docs/troubleshooting.md shows messages as they are printed.

A command or a function for each message, in ``PROVOKED`` by its first words.
"""

import errno
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmpretrain.structures import DataSample
from small_models import classifier, vit
from tiny_model import write_tiny
from tiny_run import ROOT, end_of

from mmclca import dependencies
from mmclca.cli import commands
from mmclca.registry import MODELS

PAGE = ROOT / 'docs/troubleshooting.md'
MESSAGES = [
    text.strip()
    for text in re.findall(r'```text\n(.*?)```', PAGE.read_text(), re.DOTALL)
    if not text.startswith('--cfg-options')
]
# messages of others, which take another machine to provoke
NOT_PROVOKED = (
    'ModuleNotFoundError: No module',  # an environment without this package
    'ImportError: libGL',  # a machine without its libraries
    'torch.OutOfMemoryError',  # a GPU
    'ERROR: Unexpected bus error',  # a full /dev/shm
)
OPTIONS = '--cfg-options'
TINY = ('train', 'tiny.py', OPTIONS)
WIDER = ('model.backbone.arch.embed_dims=32', 'model.head.in_channels=32')
TRAIN = 'train.py: error: ...: '
EVIT = dict(type='mmclca.EViT', keep_rate=0.5)
CUSTOM = 'lf-evit-kr50_deit-tiny-p16_1xb32-20e_custom-224px'
COTTON = 'clca-evit-kr10_vit-base-p16_1xb32-50e_cotton80-448px'


class Harmful:
    """Runs a program where it is unpickled without care."""

    def __reduce__(self):
        return __import__('os').system, ('true',)


@pytest.fixture(scope='module')
def tiny(tmp_path_factory):
    """A folder with the tiny model and its data, by relative paths."""
    folder = tmp_path_factory.mktemp('tiny')
    write_tiny(folder)
    cfg = Config.fromfile(folder / 'tiny.py')
    cfg.train_cfg.max_epochs = 1
    for name in ('train', 'val', 'test'):
        cfg[f'{name}_dataloader'].dataset.data_root = 'data'
    cfg.dump(folder / 'tiny.py')
    return folder


@pytest.fixture
def tool(tiny, tmp_path, monkeypatch):
    """Runs a tool in a copy of that folder."""
    shutil.copytree(tiny, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.delenv('MMCLCA_DATA', raising=False)

    def tool(name, *words):
        end_of(monkeypatch, ROOT / f'tools/{name}.py', *words)

    return tool


def changed(**settings):
    """The tiny config with other settings, as a file."""
    cfg = Config.fromfile('tiny.py')
    cfg.update(settings)
    cfg.dump('changed.py')
    return 'changed.py'


def reduced(**options):
    return MODELS.build(vit(num_layers=3, reduce_at=(1,), **options))


def old_mmengine(tool, patch):
    known = dependencies.installed_version
    patch.setattr(
        dependencies,
        'installed_version',
        lambda name: '0.10.4' if name == 'mmengine' else known(name),
    )
    dependencies.check_dependencies()


def no_onnxscript(tool, patch):
    patch.setitem(sys.modules, 'onnxscript', None)
    tool('deployment/export', 'tiny.py', 'tiny.pth')


def no_submitit(tool, patch):
    patch.setitem(sys.modules, 'submitit', None)
    patch.delattr(commands, 'sweep', raising=False)
    for name in [x for x in sys.modules if x.startswith('mmclca.sweep')]:
        patch.delitem(sys.modules, name)
    patch.delitem(sys.modules, f'{commands.__name__}.sweep', raising=False)
    tool('sweep', ROOT / 'configs/sweeps/fig_1.py')


def no_wandb(tool, patch):
    patch.setitem(sys.modules, 'wandb', None)
    backend = dict(type='WandbVisBackend')
    visualizer = dict(type='UniversalVisualizer', vis_backends=[backend])
    tool('train', changed(visualizer=visualizer))


def rate_above_one(tool, patch):
    reduced(reducer=dict(EVIT, keep_rate=1.5))


def too_many_rates(tool, patch):
    reduced(reducer=dict(EVIT, keep_rate=[0.5, 0.5]))


def cla_model():
    return classifier(vit(reduce_at=(3, 6, 9), reducer=EVIT), cla=True)


def too_few_layers(tool, patch):
    config = cla_model()
    config['head']['num_layers'] = 3
    MODELS.build(config)


def loss_left_out(tool, patch):
    model = reduced(reducer=dict(EVIT, type='mmclca.DynamicViT'))
    model.train()(torch.zeros(2, 3, 32, 32))


def wrong_num_classes(tool, patch):
    hooks = [dict(type='mmclca.ClassCountHook')]
    config = changed(custom_hooks=hooks)
    tool('train', config, OPTIONS, 'model.head.num_classes=6')


def missing_class_folder(tool, patch):
    shutil.copytree('data', 'without_ash')
    shutil.rmtree('without_ash/ash')
    config = changed(custom_hooks=[dict(type='mmclca.ClassCountHook')])
    option = 'val_dataloader.dataset.data_root=without_ash'
    tool('train', config, OPTIONS, option)


def damage():
    Path('data/ash/0.png').write_text('no image')


def damaged_in_training(tool, patch):
    damage()
    tool('train', 'tiny.py')


def damaged_in_split(tool, patch):
    damage()
    tool('dataset_converters/split_folder', 'data')


def damaged_in_prediction(tool, patch):
    damage()
    tool('predict', 'tiny.pth', 'data')


def harmful_checkpoint(tool, patch):
    torch.save(dict(state_dict={}, extra=Harmful()), 'evil.pth')
    tool('predict', 'evil.pth', 'data', '--config', 'tiny.py')


def harmful_config(tool, patch):
    loaded = torch.load('tiny.pth', weights_only=True)
    cfg = Config.fromfile('tiny.py')
    cfg.model.backbone = dict(type='TIMMBackbone', norm_layer='os._exit')
    loaded['meta']['cfg'] = cfg.pretty_text
    torch.save(loaded, 'odd.pth')
    tool('predict', 'odd.pth', 'data')


def short_checkpoint(tool, patch):
    Path('short.pth').write_bytes(Path('tiny.pth').read_bytes()[:2000])
    tool('predict', 'short.pth', 'data')


def full_disk(tool, patch):
    def sync(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patch.setattr('mmclca.utils.atomic_write._sync', sync)
    tool('train', 'tiny.py')


def bare_weights(tool, patch):
    state = torch.load('tiny.pth', weights_only=False)['state_dict']
    torch.save(state, 'bare.pth')
    tool('predict', 'bare.pth', 'data')


def load_from_timm(tool, patch, name):
    patch.setattr('huggingface_hub.constants.HF_HUB_OFFLINE', True)
    patch.setenv('HF_HOME', str(Path.cwd()))
    tool('train', 'tiny.py', OPTIONS, f'load_from=timm://{name}')


def no_network(tool, patch):
    load_from_timm(tool, patch, 'deit_tiny_patch16_224.fb_in1k')


def no_such_timm_model(tool, patch):
    load_from_timm(tool, patch, 'deit_tiny_patch16')


def amp_wrapper(tool, patch):
    if torch.cuda.is_available():
        pytest.skip('of machines without a CUDA device')
    tool('train', 'tiny.py', OPTIONS, 'optim_wrapper.type=AmpOptimWrapper')


def sync_batch_norm(tool, patch):
    store = torch.distributed.FileStore('store', 1)
    torch.distributed.init_process_group(
        'gloo', store=store, rank=0, world_size=1
    )
    try:
        torch.nn.SyncBatchNorm(3)(torch.zeros(2, 3, 4, 4))
    finally:
        torch.distributed.destroy_process_group()


def batch_of_one(tool, patch):
    samples = [DataSample().set_gt_label(0)]
    model = MODELS.build(cla_model()).train()
    model(torch.zeros(1, 3, 32, 32), samples, mode='loss')


def no_memory(tool, patch):
    torch.empty(10**15)


def port_in_use(tool, patch):
    first = torch.distributed.TCPStore('127.0.0.1', 0, is_master=True)
    torch.distributed.TCPStore('127.0.0.1', first.port, is_master=True)


PROVOKED = {  # by a tool with its words, or by a function
    'ImportError: mmclca cannot run': old_mmengine,
    'export.py: error: ...: onnxscript': no_onnxscript,
    'sweep.py: error: submitit': no_submitit,
    f'{TRAIN}Please run "pip install wandb"': no_wandb,
    '...: No such file, and no config': (
        'analysis_tools/get_flops',
        'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224',
    ),
    f"{TRAIN}type='mmclca.Evit'": (
        *TINY,
        'model.backbone.reducer.type=mmclca.Evit',
    ),
    f'{TRAIN}--cfg-options': (*TINY, 'optim_wraper.optimizer.lr=1'),
    'ValueError: keep_rate=1.5': rate_above_one,
    'ValueError: keep_rate=[': too_many_rates,
    'ValueError: CLAHead(num_layers': too_few_layers,
    'ValueError: DynamicViT': loss_left_out,
    '.../epoch_1.pth cannot be written': full_disk,
    f'{TRAIN}model.head.num_classes is 6': wrong_num_classes,
    f'{TRAIN}model.head.num_classes is 4': missing_class_folder,
    f'{TRAIN}there is no data/my_leaves': (
        'train',
        ROOT / f'configs/few_shot/{CUSTOM}.py',
    ),
    f'{TRAIN}Cotton80': ('train', ROOT / f'configs/clca/{COTTON}.py'),
    'AssertionError: failed to load': damaged_in_training,
    'cannot be read: 1 (ash': damaged_in_split,
    'not read:': damaged_in_prediction,
    f'{TRAIN}there is no checkpoint': (*TINY, 'load_from=gone.pth'),
    'evil.pth': harmful_checkpoint,
    'short.pth': short_checkpoint,
    f'{TRAIN}tiny.pth does not fit': (*TINY, 'load_from=tiny.pth', *WIDER),
    'tiny.pth: 2 parameters': (
        *('predict', 'tiny.pth', 'data'),
        *(OPTIONS, 'model.head.num_classes=6'),
    ),
    'bare.pth': bare_weights,
    'the config in odd.pth': harmful_config,
    f'{TRAIN}timm://': no_network,
    f'{TRAIN}timm has no': no_such_timm_model,
    f'{TRAIN}``AmpOptimizerWrapper``': amp_wrapper,
    'ValueError: SyncBatchNorm': sync_batch_norm,
    'ValueError: Expected more than 1 value': batch_of_one,
    'loss: nan': (*TINY, 'optim_wrapper.optimizer.lr=1e20'),
    'DefaultCPUAllocator': no_memory,
    'DistNetworkError': port_in_use,
}


def test_each_message_of_the_page_is_provoked():
    """A message that is added needs a command here, or a reason."""
    starts = (*PROVOKED, *NOT_PROVOKED)
    for start in starts:
        assert sum(text.startswith(start) for text in MESSAGES) == 1, start
    assert len(MESSAGES) == len(starts), MESSAGES


@pytest.mark.parametrize('start', PROVOKED)
def test_message_is_as_printed(start, tool, monkeypatch, capfd):
    (message,) = [text for text in MESSAGES if text.startswith(start)]
    printed = ''
    provoke = PROVOKED[start]
    try:
        if callable(provoke):
            provoke(tool, monkeypatch)
        else:
            tool(*provoke)
    except (Exception, SystemExit) as error:
        printed = f'{type(error).__name__}: {error}'
    captured = capfd.readouterr()
    printed = f'{printed}\n{captured.out}\n{captured.err}'
    parts = [
        re.escape(part) for part in ' '.join(message.split()).split('...')
    ]
    assert re.search('.*'.join(parts), ' '.join(printed.split())), printed

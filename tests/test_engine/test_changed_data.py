# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Resume after the data, the batch size or the processes have changed."""

from contextlib import suppress
from uuid import uuid4

import pytest
from killed_runs import train as train_in_processes
from mmengine.hooks import Hook
from tiny_run import write_images, write_run

from mmclca.checkpoints.opening import load_from_file
from mmclca.engine.runner import build_runner
from mmclca.engine.training_data import find_start, read_training_data

FACTS = dict(
    unit='epochs',
    batches=4,
    batch_size=4,
    processes=1,
    sampler='DefaultSampler',
    endless=False,
    images=16,
    files='a',
)
BATCH = 'train_dataloader.batch_size'
SAMPLER = 'train_dataloader.sampler'
INSIDE = dict(type='CheckpointHook', interval=2, by_epoch=False)
BY_ITERATION = {
    'train_cfg': dict(by_epoch=False, max_iters=16, val_interval=16),
    'log_processor': dict(by_epoch=False),
}
ENDLESS = {**BY_ITERATION, SAMPLER: dict(type='InfiniteSampler')}
REPEATED = dict(type='mmclca.RepeatAugSampler', shuffle=True)
# changed settings and images per class, and the term of the message
CHANGES = [
    ({BATCH: 8}, 4, 'batch size 4, now 8'),
    ({BATCH: 2}, 4, 'batch size 4, now 2'),
    ({BATCH: 32}, 4, 'batches per epoch 4, now 1'),
    ({}, 9, 'images 16, now 36'),
    ({}, 2, 'images 16, now 8'),
    ({'train_dataloader.dataset.data_root': 'other'}, 4, 'image files'),
    ({SAMPLER: REPEATED}, 4, 'RepeatAugSampler'),
]


def change(**facts):
    return dict(FACTS, **facts)


@pytest.mark.parametrize(
    'unit, iteration, now, expected',
    [
        ('epochs', 10, {}, (2, 8)),  # unchanged
        ('epochs', 10, dict(batches=2), (2, 10)),
        ('epochs', 10, dict(files='b'), (2, 10)),
        ('epochs', 12, dict(batches=2), (2, 10)),  # its hooks only
        ('epochs', 12, {}, (2, 8)),
        ('iterations', 10, {}, (2, 8)),
        ('iterations', 12, {}, (3, 12)),
        ('iterations', 10, dict(processes=2), (2, 10)),
        ('iterations', 12, dict(images=20), (3, 12)),
    ],
)
def test_start_is_where_the_pass_begins_if_data_changed(
    unit, iteration, now, expected
):
    stored = change(unit=unit, passes=2, start=8)
    assert find_start(stored, change(unit=unit, **now), iteration) == expected


@pytest.mark.parametrize(
    'now, expected', [({}, (0, 0)), (dict(batch_size=8), (2, 10))]
)
def test_endless_stream_begins_again_only_if_data_changed(now, expected):
    """Ten batches of four are two complete passes over 16 images."""
    facts = change(unit='iterations', endless=True)
    stored = dict(facts, passes=0, start=0)
    assert find_start(stored, dict(facts, **now), 10) == expected


@pytest.mark.parametrize('epochs, batches', [(2, 4), (4, 2), (0, 4)])
def test_batches_of_checkpoint_without_facts_come_from_its_length(
    epochs, batches
):
    info = dict(max_epochs=epochs, max_iters=8)
    checkpoint = dict(meta={}, message_hub=dict(runtime_info=info))
    stored = read_training_data(checkpoint, FACTS, 2, 2 * batches)
    assert stored == change(batches=batches, passes=2, start=2 * batches)


WRONG = (-1, 11, 'x', None)


@pytest.mark.parametrize(
    'name, value',
    [*(('start', x) for x in WRONG), ('unit', None), ('batch_size', 'x')],
)
def test_facts_are_ignored_if_they_make_no_sense(name, value):
    facts = change(passes=2, start=8) | {name: value}
    stored = read_training_data(
        dict(meta=dict(training_data=facts)), FACTS, 2, 10
    )
    assert stored == change(passes=2, start=8)


class Photos(Hook):
    """Note the epoch and the images of each iteration."""

    def __init__(self):
        self.used = []

    def before_train_iter(self, runner, batch_idx, data_batch):
        paths = [sample.img_path for sample in data_batch['data_samples']]
        self.used.append((runner.epoch, paths))


class Stop(Hook):
    """Stop in an iteration, after its checkpoint."""

    priority = 'LOWEST'

    def after_train_iter(self, runner, batch_idx, data_batch, outputs):
        if runner.iter == 5:
            raise KeyboardInterrupt


@pytest.fixture
def run(config, tmp_path, monkeypatch):
    """Train in a work dir; return the images per iteration and warnings."""

    monkeypatch.setattr('mmengine.runner.loops.time.sleep', lambda _: None)

    def run(settings, per_class=4, last=None, name='run'):
        data = tmp_path / f'data{per_class}'
        if not data.exists():
            write_images(data, per_class)
        cfg = config(name=name)
        cfg.train_cfg = {}  # the loops have different settings
        cfg.merge_from_dict(
            {
                'train_dataloader.dataset.data_root': str(data),
                'default_hooks.checkpoint': INSIDE,
                'train_cfg': dict(by_epoch=True, max_epochs=3),
                **settings,
            }
        )
        cfg.experiment_name = uuid4().hex
        cfg.resume = last is not None
        cfg.load_from = last
        runner, photos = build_runner(cfg), Photos()
        runner.register_hook(photos)
        if last is None:
            runner.register_hook(Stop())
        lines = []
        runner.logger.warning = lines.append
        with suppress(KeyboardInterrupt):
            runner.train()
        return photos.used, [line for line in lines if 'Changed' in line]

    return run


def passes_of(used, size):
    """Split the images of an iteration-based run into passes."""
    paths = [path for _, batch in used for path in batch]
    return [paths[i : i + size] for i in range(0, len(paths), size)]


@pytest.mark.slow
@pytest.mark.parametrize('unit', [{}, BY_ITERATION])
@pytest.mark.parametrize('settings, per_class, term', CHANGES)
def test_resumed_run_uses_each_image_once_per_epoch_if_data_changed(
    run, tmp_path, unit, settings, per_class, term
):
    """It was stopped after six of twelve iterations of four images."""
    write_images(tmp_path / 'other', 4)
    settings = {
        key: str(tmp_path / x) if x == 'other' else x
        for key, x in settings.items()
    }
    (tmp_path / 'other' / 'ash' / '0.png').rename(
        tmp_path / 'other' / 'ash' / 'new.png'
    )
    run(unit)
    last = str(tmp_path / 'run' / 'iter_6.pth')
    used, lines = run({**unit, **settings}, per_class, last)
    assert len(lines) == 1 and term in lines[0] and ' 2' in lines[0]
    if unit:
        epochs = passes_of(used, 4 * per_class)[:1]
    else:
        epochs = [
            [path for n, batch in used if n == epoch for path in batch]
            for epoch in (1, 2)
        ]
    for paths in epochs:
        assert len(paths) == 4 * per_class
        if SAMPLER not in settings:
            assert len({*paths}) == len(paths)


@pytest.mark.slow
@pytest.mark.parametrize('unit', [{}, BY_ITERATION, ENDLESS])
def test_second_change_resumes_exactly_if_nothing_else_changed(
    run, tmp_path, unit
):
    run(unit)
    last = str(tmp_path / 'run' / 'iter_6.pth')
    whole, lines = run({**unit, BATCH: 2}, last=last, name='whole')
    assert lines
    later = str(tmp_path / 'whole' / 'iter_10.pth')
    used, lines = run({**unit, BATCH: 2}, last=later, name='again')
    assert not lines
    assert used == whole[4:]


@pytest.mark.slow
def test_run_of_another_number_of_processes_begins_the_epoch(tmp_path):
    config = write_run(tmp_path)
    words = [config.name, '--work-dir', 'work', '--cfg-options']
    # a fork fails if a test before started threads for the backward pass
    start = 'forkserver'
    once = [*words, 'train_cfg.max_epochs=1']
    assert train_in_processes(tmp_path, once, 1, start=start)
    options = ['train_cfg.max_epochs=2', '--launcher', 'pytorch', '--resume']
    assert train_in_processes(tmp_path, [*words, *options], 2, start=start)
    log = ''.join(x.read_text() for x in tmp_path.glob('work/*/*.log'))
    assert 'processes 1, now 2' in log
    facts = load_from_file(str(tmp_path / 'work/epoch_2.pth'))
    assert facts['meta']['iter'] == 4 + 2


@pytest.mark.slow
def test_training_stops_if_there_is_no_batch(run):
    loader = {'train_dataloader.drop_last': True, BATCH: 32}
    with pytest.raises(ValueError, match='no batches'):
        run(loader)

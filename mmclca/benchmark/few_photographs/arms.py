# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The frozen networks and classifiers that are compared: the probe arms."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from mmengine.config import Config

from mmclca.model_index import home
from mmclca.models import with_layer_fusion, with_reduction

DEPTH = 12
# the layers whose averages our probe reads, and the CLS token of the last one
OURS = tuple(range(9))
LAST = (DEPTH - 1,)
KEEP_RATES = (0.5, 0.25, 0.1)
METHODS = ('EViT', 'ToMe')
# ours keeps half of the tokens, and pays less by smaller images
OUR_METHOD, OUR_KEEP_RATE = 'EViT', 0.5
OUR_IMG_SIZES = (208, 192, 160, 144)
# of rivals, which keep all tokens
IMG_SIZES = (160, 144, 128)
DEPTHS = (7, 6, 5, 4)
# an image is resized to its size over this, then cropped, as in the recipes
CROP = 0.875
WEIGHTS = {
    'deit-tiny-p16': 'deit_tiny_patch16_224.pth',
    'vit-tiny-p16': 'vit_tiny_patch16_224.safetensors',
}
# what tables and the picture call the arms
OUR_PROBE = 'our probe'
NCM = 'nearest class mean, last layer'
NEIGHBOUR = '1-nearest neighbour, last layer'
LAST_LOGISTIC = 'logistic regression, last layer'
LOGISTIC = 'logistic regression, layers 0 to 8'
SMALLER = 'our probe, smaller image'
SHALLOWER = 'our probe, fewer layers'


@dataclass(frozen=True)
class Frozen:
    """What computes features: a ViT-Ti/16 with ImageNet weights.

    Args:
        backbone (str): Name of its piece in ``configs/_base_/models``.
        method (str): Name of its reducer. Defaults to '', none.
        keep_rate (float): Of the reducer. Defaults to 1.
        img_size (int): Height and width of an image in pixels.
            Defaults to 224.
    """

    backbone: str
    method: str = ''
    keep_rate: float = 1.0
    img_size: int = 224

    def config(
        self, layers: tuple[int, ...], out_type: str, num_classes: int
    ) -> Config:
        """What :class:`mmclca.apis.Probe` takes.

        Args:
            layers (tuple[int, ...]): Layers that are read.
            out_type (str): What is read of them.
            num_classes (int): Number of classes.
        """
        reduction = (self.method, self.keep_rate) if self.method else ()
        model = with_reduction(_piece(self.backbone).model, *reduction)
        model.backbone.img_size = self.img_size
        model.head.num_classes = num_classes
        model = with_layer_fusion(model, layers, out_type)
        dataset = dict(type='CustomDataset', pipeline=pipeline(self.img_size))
        return Config(dict(model=model, test_dataloader=dict(dataset=dataset)))


@dataclass(frozen=True)
class ProbeArm:
    """A classifier over some layers of a frozen network.

    Args:
        line (str): What tables and the picture call it.
        frozen (Frozen): The network.
        classifier (str): Of :func:`mmclca.apis.probe.fit_linear`.
            Defaults to 'ridge'.
        layers (tuple[int, ...]): Layers that are read. Defaults to those of
            our probe.
        out_type (str): What is read of them. Defaults to 'average'.
        strength (float, optional): Of the classifier. Defaults to None,
            chosen by folds inside the training images.
    """

    line: str
    frozen: Frozen
    classifier: str = 'ridge'
    layers: tuple[int, ...] = OURS
    out_type: str = 'average'
    strength: float | None = None

    @property
    def network(self) -> str:
        """A name of what costs: the network as far as it is read.

        The same with either weights.
        """
        frozen = self.frozen
        return '_'.join(
            [
                f'{(frozen.method or "full").lower()}'
                f'-kr{100 * frozen.keep_rate:g}',
                f'{frozen.img_size}px',
                f'{self.out_type}-{self.layers[0]}-{self.layers[-1]}',
            ]
        )

    @property
    def name(self) -> str:
        """Name of its result."""
        return f'{self.frozen.backbone}_{self.network}_{self.classifier}'

    def model(self, num_classes: int) -> Config:
        """Config of the classifier, for what it costs."""
        config = self.frozen.config(self.layers, self.out_type, num_classes)
        return config.model


def pipeline(img_size: int) -> list[dict]:
    """Steps from a file to an image of a size."""
    side = int(img_size / CROP)
    return [
        dict(type='LoadImageFromFile'),
        dict(
            type='Resize',
            scale=(side, side),
            backend='pillow',
            interpolation='bicubic',
        ),
        dict(type='CenterCrop', crop_size=img_size),
        dict(type='PackInputs'),
    ]


def probe_arms(backbone: str) -> list[ProbeArm]:
    """All arms of a backbone, those of a network after each other.

    Args:
        backbone (str): A key of ``WEIGHTS``.
    """
    return list(_arms(Frozen(backbone)))


def _arms(full: Frozen) -> Iterator[ProbeArm]:
    last = dict(layers=LAST, out_type='cls_token')
    half = replace(full, method=OUR_METHOD, keep_rate=OUR_KEEP_RATE)
    yield ProbeArm(NCM, full, 'ncm', **last)
    yield ProbeArm(NEIGHBOUR, full, 'knn', **last, strength=1)
    reduced = (
        replace(full, method=method, keep_rate=rate)
        for method in METHODS
        for rate in KEEP_RATES
    )
    for frozen in (full, *reduced):
        yield ProbeArm(LAST_LOGISTIC, frozen, 'logistic', **last)
        yield ProbeArm(LOGISTIC, frozen, 'logistic')
        yield ProbeArm(OUR_PROBE, frozen)
        if frozen in (full, half):
            for depth in DEPTHS:
                yield ProbeArm(SHALLOWER, frozen, layers=OURS[:depth])
    for size in IMG_SIZES:
        yield ProbeArm(SMALLER, replace(full, img_size=size))
    for size in OUR_IMG_SIZES:
        yield ProbeArm(OUR_PROBE, replace(half, img_size=size))


@cache
def _piece(backbone: str) -> Config:
    folder = home() / 'configs' / '_base_' / 'models'
    return Config.fromfile(folder / f'clca-evit_{backbone}.py')

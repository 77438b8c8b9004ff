# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Grafit as a model: backbone, projector, predictor and memory bank."""

from collections.abc import Iterable
from typing import Literal

import torch
import torch.nn.functional as F
from mmengine.dist import all_gather
from mmpretrain.models import ImageClassifier
from mmpretrain.models.heads import ClsHead
from mmpretrain.models.utils import CosineEMA, build_norm_layer, to_2tuple
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice, check_integer

from ..backbones import Reducible
from ..pretrained import use_safe_initializer
from . import grafit

PROJECTORS = dict(mlp=256, fc=128)  # channels of the embedding


class Projector(nn.Sequential):
    """Neck that maps the last output of a backbone to an embedding.

    Feature maps are averaged; the first of several tokens is used.
    """

    def forward(self, feats: tuple[Tensor, ...]) -> tuple[Tensor]:
        """Map outputs (B, ...) to an embedding (B, D)."""
        return (super().forward(pool_features(feats[-1])),)


def pool_features(x: Tensor) -> Tensor:
    """Return one feature per image (B, C) from a map, tokens or a vector."""
    if x.dim() == 4:
        return x.mean(dim=(2, 3))
    return x[:, 0] if x.dim() == 3 else x


def build_mlp(
    in_channels: int, hidden: int, out_channels: int, norm_cfg: dict
) -> nn.Sequential:
    """Build an MLP as in BYOL: linear, norm, ReLU, linear."""
    return nn.Sequential(
        nn.Linear(in_channels, hidden),
        build_norm_layer(norm_cfg, hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, out_channels),
    )


@torch.no_grad()
def find_channels(backbone: nn.Module) -> int:
    """Find a backbone's output channels with a black image."""
    height, width = to_2tuple(vars(backbone).get('img_size', 64))
    backbone.eval()
    feats = backbone(torch.zeros(1, 3, height, width))
    backbone.train()
    return pool_features(feats[-1]).shape[1]


class BankHead(ClsHead):
    """Classify embeddings by the nearest rows of a memory bank.

    The bank has ``num_images`` rows of ``channels``. Of these, ``k`` vote with
    temperature ``sigma``, or all if there are fewer.
    """

    def __init__(
        self,
        num_images: int,
        channels: int,
        num_classes: int,
        k: int,
        sigma: float,
    ):
        super().__init__()
        check_integer(num_classes=num_classes, k=k)
        self.num_classes = num_classes
        self.k = k
        self.sigma = sigma
        labels = torch.zeros(num_images, dtype=torch.long)
        self.register_buffer('bank', torch.zeros(num_images, channels))
        self.register_buffer('labels', labels)

    def start(self, labels: Tensor) -> None:
        """Fill the bank with random rows, equal in all processes.

        ``labels`` (N,) are the coarse training classes.
        """
        chance = torch.Generator().manual_seed(0)
        rows = torch.rand(len(labels), self.bank.shape[1], generator=chance)
        self.bank = F.normalize(2 * rows - 1, dim=1).to(self.bank)
        self.labels = labels.to(self.labels)

    @torch.no_grad()
    def update(self, embedding: Tensor, index: Tensor) -> None:
        """Update the rows of the batches of all processes."""
        index = torch.cat(all_gather(index))
        embedding = torch.cat(all_gather(embedding.detach()))
        # not in place: the gradient of the loss needs the old bank
        self.bank = grafit.update_bank(self.bank, embedding, index)

    def forward(self, feats: tuple[Tensor]) -> Tensor:
        """Map embeddings to log class scores (B, num_classes)."""
        embedding, k = self.pre_logits(feats), min(self.k, len(self.bank))
        scores = grafit.knn_scores(
            embedding, self.bank, self.labels, k, self.sigma, self.num_classes
        )
        return scores.clamp_min(torch.finfo(scores.dtype).tiny).log()


@MODELS.register_module()
class Grafit(ImageClassifier):
    """Classifier trained on coarse labels to separate fine classes.

    The kNN loss of the first view, over a memory bank of all training images,
    plus the instance loss between views. In evaluation, the k nearest rows of
    the bank vote. Training needs ``mmclca.ViewsDataPreprocessor`` and
    ``mmclca.BankHook``, which sizes the bank and fills it before tests.

    Without the instance loss, there are no predictor and target network: this
    is SNCA with ``projector='fc'`` and SNCA+ with 'mlp'.

    Args:
        backbone (dict): Config of any backbone that returns feature maps or
            CLS, with or without a reducer.
        projector (str): 'mlp', or 'fc' for one linear layer. Defaults to
            'mlp'.
        num_views (int): Views per image. Defaults to 4.
        sigma (float): Temperature for the kNN loss and the vote. Defaults to
            0.05.
        instance_weight (float): Instance loss weight. Defaults to 1.
        reduction (str): Reduction of the kNN loss: 'mean' or 'counted'.
            Defaults to 'mean'.
        out_channels (int, optional): Embedding channels. Defaults to None: 256
            for 'mlp', 128 for 'fc'.
        hidden (int): Hidden channels of the MLPs. Defaults to 4096.
        momentum (float): Initial momentum of the target network, rising to 1
            by a cosine schedule. Defaults to 0.996.
        norm_cfg (dict): Norm of the MLPs. Defaults to dict(type='BN1d').
        num_classes (int): Coarse classes. Defaults to 1000.
        num_images (int): Bank rows, set by ``BankHook``. Defaults to 0.
        k (int): Voting neighbors. Defaults to 20.
        **kwargs: ``pretrained``, ``data_preprocessor`` and ``init_cfg`` for
            ``ImageClassifier``.

    Raises:
        Error: If the projector or the reduction is unknown, or the
            instance loss has only one view.
    """

    def __init__(
        self,
        backbone: dict,
        projector: Literal['mlp', 'fc'] = 'mlp',
        num_views: int = 4,
        sigma: float = 0.05,
        instance_weight: float = 1.0,
        reduction: Literal['mean', 'counted'] = 'mean',
        out_channels: int | None = None,
        hidden: int = 4096,
        momentum: float = 0.996,
        norm_cfg: dict = dict(type='BN1d'),
        num_classes: int = 1000,
        num_images: int = 0,
        k: int = 20,
        data_preprocessor: dict | None = None,
        **kwargs,
    ):
        check_choice(PROJECTORS, projector=projector)
        check_choice(grafit.REDUCTIONS[:2], reduction=reduction)
        check_integer(num_views=num_views, minimum=1 + bool(instance_weight))
        preprocessor = dict(type='mmclca.ViewsDataPreprocessor')
        preprocessor.update(data_preprocessor or {})
        super().__init__(backbone, data_preprocessor=preprocessor, **kwargs)
        self.init_cfg = use_safe_initializer(self.init_cfg)
        width = out_channels or PROJECTORS[projector]
        channels = find_channels(self.backbone)
        layers: Iterable[nn.Module] = [nn.Linear(channels, width)]
        if projector == 'mlp':
            layers = build_mlp(channels, hidden, width, norm_cfg)
        self.neck = Projector(*layers)
        self.head = BankHead(num_images, width, num_classes, k, sigma)
        self.num_views = num_views
        self.sigma = sigma
        self.instance_weight = instance_weight
        self.reduction = reduction
        if instance_weight:
            self.predictor = build_mlp(width, hidden, width, norm_cfg)
            self.target = CosineEMA(self.online, momentum=1 - momentum)

    @property
    def online(self) -> nn.ModuleDict:
        """Backbone and neck, which the target network follows."""
        return nn.ModuleDict(dict(backbone=self.backbone, neck=self.neck))

    def loss(
        self, inputs: list[Tensor] | Tensor, data_samples: list[DataSample]
    ) -> dict:
        """Compute the losses by name, and update the bank.

        ``alone`` counts the images without another one of their class.

        Args:
            inputs (list[Tensor] | Tensor): V views (B, 3, H, W), or one.
            data_samples (list[DataSample]): ``sample_idx`` is the row of an
                image in the bank.
        """
        views = inputs if isinstance(inputs, list) else [inputs]
        if len(views) != self.num_views:
            raise Error(
                f'found {len(views)} views per image, but '
                f'num_views={self.num_views}; set the same number in MultiView'
            )
        head = self.head
        index = head.labels.new_tensor([x.sample_idx for x in data_samples])
        first, losses = embed(self, views[0])
        losses['knn_loss'] = grafit.knn_loss(
            first, head.bank, index, head.labels, self.sigma, self.reduction
        )
        losses['alone'] = grafit.is_alone(index, head.labels).sum().to(first)
        if self.instance_weight:
            other_embeddings = [embed(self, view)[0] for view in views[1:]]
            embeddings = [first, *other_embeddings]
            online = [self.predictor(embedding) for embedding in embeddings]
            with torch.no_grad():
                self.target.update_parameters(self.online)
                target = self.target.module
                targets = [embed(target, view)[0] for view in views]
            loss = grafit.instance_loss(online, targets)
            losses['instance_loss'] = self.instance_weight * loss
        head.update(first, index)
        return losses


def embed(networks: nn.Module, images: Tensor) -> tuple[Tensor, dict]:
    """Embed images (B, 3, H, W) with a ``backbone`` and a ``neck``, (B, D).

    Also returns the losses of the reducer.
    """
    backbone = networks.backbone
    if not isinstance(backbone, Reducible):
        return networks.neck(backbone(images))[0], {}
    feats, tokens = backbone.forward_tokens(images)
    return networks.neck(feats)[0], backbone.reducer.loss(tokens)

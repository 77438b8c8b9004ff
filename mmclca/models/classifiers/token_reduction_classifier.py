# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.checkpoint import fill

from ..heads import CLAHead


@MODELS.register_module()
class TokenReductionClassifier(ImageClassifier):
    """Image classifier over a :class:`TokenReductionViT`.

    It adds the auxiliary loss of the reducer, checks when it is built that
    head and backbone fit, and reports which parameters of the head are new
    when a checkpoint is loaded.

    Args:
        backbone (dict): Config of the backbone.
        neck (dict, optional): Config of a neck. Defaults to None.
        head (dict, optional): Config of the head. Defaults to None.
        pretrained (str, optional): Checkpoint to start from.
            Defaults to None.
        train_cfg (dict, optional): Batch augmentations, as in
            ``ImageClassifier``. Defaults to None.
        data_preprocessor (dict, optional): As in ``ImageClassifier``.
            Defaults to None.
        init_cfg (dict, optional): Initialization config.

    Raises:
        ValueError: If a CLA head would read another number of layers than
            the backbone returns, other channels, or normalized layers.
    """

    def __init__(
        self,
        backbone: dict,
        neck: dict | None = None,
        head: dict | None = None,
        pretrained: str | None = None,
        train_cfg: dict | None = None,
        data_preprocessor: dict | None = None,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            backbone,
            neck,
            head,
            pretrained,
            train_cfg,
            data_preprocessor,
            init_cfg,
        )
        if isinstance(self.head, CLAHead):
            _check_fit(self.backbone, self.head)
        self._register_load_state_dict_pre_hook(self._fill_head)

    def extract_feat(self, inputs: Tensor, stage: str = 'neck'):
        """See ``ImageClassifier.extract_feat``."""
        feats, _ = self.backbone.forward_tokens(inputs)
        if stage == 'backbone':
            return feats
        feats = self.neck(feats) if self.with_neck else feats
        return self.head.pre_logits(feats) if stage == 'pre_logits' else feats

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Losses of the head and of the reducer, by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample]): Their annotations.
        """
        feats, tokens = self.backbone.forward_tokens(inputs)
        feats = self.neck(feats) if self.with_neck else feats
        losses = self.head.loss(feats, data_samples)
        losses.update(self.backbone.reducer.loss(tokens))
        return losses

    def _fill_head(self, state_dict, prefix, metadata, *_):
        if 'source' in metadata and self.with_head:
            source = metadata['source']
            fill(self.head, state_dict, f'{prefix}head.', source)


def _check_fit(backbone, head: CLAHead) -> None:
    num_layers = len(backbone.out_indices)
    if head.num_layers != num_layers:
        raise ValueError(
            f'CLAHead(num_layers={head.num_layers}) reads another number of '
            f'layers than the backbone returns: out_indices='
            f'{tuple(backbone.out_indices)}, set num_layers={num_layers}'
        )
    if head.in_channels != backbone.embed_dims:
        raise ValueError(
            f'CLAHead(in_channels={head.in_channels}) does not fit the '
            f'backbone: set in_channels={backbone.embed_dims}'
        )
    if backbone.final_norm:
        raise ValueError(
            'CLAHead reads CLS tokens without the final LayerNorm: set '
            'final_norm=False in the backbone (it is True)'
        )

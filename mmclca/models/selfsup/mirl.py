# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""MIRL: targets and losses of its decoders, and the model."""

from typing import Literal

import torch
import torch.nn.functional as F
from mmpretrain.models.heads import MAEPretrainHead
from mmpretrain.models.selfsup import MAE
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice, check_integer, check_number

PIXELS = dict(type='PixelReconstructionLoss', criterion='L2')
MAX_SIZE = 63  # largest filter; its response is computed on a grid of 64 x 64
MODES = ('residual', 'multi_decoder', 'coarse2fine', 'fine2coarse')


def laplacian_of_gaussian(sigma: float, size: int) -> Tensor:
    """Return a high-pass filter (size, size), a Laplacian of Gaussian.

    Its center is positive, its sum zero and its largest frequency response 1.
    """
    at = torch.arange(size) - (size - 1) / 2
    scaled = (at[:, None] ** 2 + at**2) / (2 * sigma**2)
    kernel = (1 - scaled) * torch.exp(-scaled)
    kernel = kernel - kernel.mean()
    return kernel / torch.fft.fft2(kernel, (64, 64)).abs().max()


@MODELS.register_module()
class MIRLHead(MAEPretrainHead):
    """Losses of MIRL's decoders on pixels normalized per patch.

    `Masked Image Residual Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_, section 3.1, equations 6 and 7: the
    predictions of segment g (main part) and segment G - g + 1 (residual) are
    added. Section 4.2 compares the other modes. Each loss is divided by the
    number of losses, so that the total is their mean.

    Args:
        mode (str): 'residual', one loss per pair of segments; 'multi_decoder',
            each decoder predicts the whole target; 'coarse2fine', the shallow
            half predicts the coarse part of the image and the deep half the
            fine part, which add up to the target; 'fine2coarse', the reverse.
            Defaults to 'residual'.
        sigma (float): Standard deviation in pixels of the Laplacian of
            Gaussian that extracts the fine part; not given in the paper.
            Defaults to 1.
        size (int): Size of this filter in pixels, odd, 3 to 63; not given in
            the paper. Defaults to 7.
        patch_size (int): Patch size in pixels; set by ``MIRL``.

    Raises:
        Error: If the mode or the filter is not allowed.
    """

    def __init__(
        self,
        mode: Literal[
            'residual', 'multi_decoder', 'coarse2fine', 'fine2coarse'
        ] = 'residual',
        sigma: float = 1.0,
        size: int = 7,
        *,
        patch_size: int,
    ):
        check_choice(MODES, mode=mode)
        check_number(minimum=0.1, sigma=sigma)
        check_integer(minimum=3, maximum=MAX_SIZE, size=size)
        if size % 2 == 0:
            raise Error(f'size={size} must be odd, such as 7')
        super().__init__(PIXELS, norm_pix=True, patch_size=patch_size)
        self.mode = mode
        log = laplacian_of_gaussian(sigma, size)
        self.register_buffer('log', log, persistent=False)

    def loss(
        self, preds: list[Tensor], images: Tensor, mask: Tensor
    ) -> dict[str, Tensor]:
        """Compute the losses by name, which add up to the total.

        Args:
            preds (list[Tensor]): One prediction per segment, (B, N, P * P *
                3).
            images (Tensor): Images (B, 3, H, W).
            mask (Tensor): 1 for a masked patch, (B, N).
        """
        parts = self.parts(preds, images)
        part_name = 'pair' if self.mode == 'residual' else 'decoder'
        return {
            f'loss_{part_name}{i}': self.loss_module(pred, target, mask)
            / len(parts)
            for i, (pred, target) in enumerate(parts, start=1)
        }

    def parts(
        self, preds: list[Tensor], images: Tensor
    ) -> list[tuple[Tensor, Tensor]]:
        """Return pairs of prediction and target, both (B, N, P * P * 3)."""
        halves = [self.construct_target(images)] * 2
        if self.mode == 'residual':
            preds = add_residuals(preds)
        elif self.mode in MODES[2:]:
            fine = self.fine_part(images)
            halves = [halves[0] - fine, fine]
        if self.mode == 'fine2coarse':
            halves.reverse()
        half = len(preds) // 2
        return [(p, halves[i >= half]) for i, p in enumerate(preds)]

    def fine_part(self, images: Tensor) -> Tensor:
        """Filter images and scale them as their patches, (B, N, P * P * 3)."""
        kernel = self.log.to(images).expand(images.size(1), 1, -1, -1)
        padding = (self.log.size(0) // 2,) * 4
        padded = F.pad(images, padding, mode='reflect')
        fine = F.conv2d(padded, kernel, groups=images.size(1))
        variance = self.patchify(images).var(dim=-1, keepdim=True)
        return self.patchify(fine) / (variance + 1e-6) ** 0.5


def add_residuals(preds: list[Tensor]) -> list[Tensor]:
    """Add each deep prediction to its shallow one; keep a single one."""
    pairs = range(len(preds) // 2)
    return [preds[i] + preds[-1 - i] for i in pairs] or preds


@MODELS.register_module()
class MIRL(MAE):
    """Masked image residual learning.

    `Masked Image Residual Learning for Scaling Deeper Vision Transformers
    <https://arxiv.org/abs/2309.14136>`_. With one segment, and without DID and
    weight normalization, it equals ``MAE``.

    Args:
        backbone (dict): Config of a :class:`SegmentedMAEViT`.
        neck (dict): Config of :class:`MIRLDecoders`, without the encoder.
        head (dict): Config of a :class:`MIRLHead`, without the patch size.
        **kwargs: ``data_preprocessor``, ``pretrained`` and ``init_cfg`` for
            ``MAE``.

    Raises:
        Error: If a mode with coarse and fine parts has only one segment.
    """

    def __init__(self, backbone: dict, neck: dict, head: dict, **kwargs):
        encoder = MODELS.build(backbone)
        patch_size = encoder.patch_size
        built = MODELS.build(head, default_args=dict(patch_size=patch_size))
        if encoder.num_segments == 1 and built.mode in MODES[2:]:
            raise Error(
                f'mode={built.mode!r} needs a shallow and a deep half; set '
                'num_segments=2 or more'
            )
        neck = MODELS.build(neck, default_args=dict(encoder=encoder))
        super().__init__(encoder, neck, built, **kwargs)

    def loss(self, inputs: Tensor, data_samples=None, **kwargs) -> dict:
        """Compute the losses by name, which add up to the total.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample], optional): Not used.
            **kwargs: Not used.
        """
        preds, mask = self.predict_pixels(inputs)
        return self.head.loss(preds, inputs, mask)

    def predict_pixels(self, inputs: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the predictions of the decoders, and the mask."""
        seen = self.backbone.encode(inputs)
        segments = [*self.backbone.segments(seen)[:-1], seen.output]
        return self.neck(segments, seen.ids_restore), seen.mask

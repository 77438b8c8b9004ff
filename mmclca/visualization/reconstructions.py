# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Input, visible patches and reconstructions by masked autoencoders."""

import numpy as np
import torch
from matplotlib.figure import Figure
from mmpretrain.models.selfsup import MAE
from torch import Tensor

from mmclca.models.selfsup.mirl import MIRL, add_residuals

from .figures import Panel, picture_grid


@torch.no_grad()
def reconstructions(model: MAE, inputs: Tensor) -> list[dict]:
    """Reconstruct randomly masked images.

    Args:
        model (MAE): A masked autoencoder or a :class:`MIRL`.
        inputs (Tensor): BGR images (B, 3, H, W), uint8.

    Returns:
        list[dict[str, np.ndarray]]: RGB pictures (H, W, 3) per image, by name:
        the image, its visible patches, and each decoder output; for a pair of
        segments the main part, the residual and the sum. Predictions and sums
        show the visible patches unchanged. If the loss compares normalized
        patches, predictions get the mean and deviation of the true pixels,
        also in hidden patches.
    """
    training = model.training
    model.eval()  # keep the BatchNorm statistics of the stem
    data = dict(inputs=inputs, data_samples=[])
    images = model.data_preprocessor(data)['inputs']
    head, patches = model.head, model.head.patchify(images)
    hidden, made = _predictions(model, images)
    model.train(training)
    mean, scale = torch.zeros(()), torch.ones(())
    if head.norm_pix:
        mean = patches.mean(dim=-1, keepdim=True)
        scale = (patches.var(dim=-1, keepdim=True) + 1e-6) ** 0.5
    pictures = dict(image=patches, visible=patches * (1 - hidden))
    for name, pred in made:
        pictures[name] = pred * scale + mean * ('residual' not in name)
        if name.startswith(('prediction', 'sum')):
            pictures[name] = torch.where(hidden > 0, pictures[name], patches)
    for name, x in pictures.items():
        pictures[name] = _to_pixels(
            model.data_preprocessor, head.unpatchify(x)
        )
    rows = zip(*pictures.values(), strict=True)
    return [dict(zip(pictures, row, strict=True)) for row in rows]


def _predictions(model: MAE, images: Tensor) -> tuple[Tensor, list]:
    """Return the mask (B, N, 1), 1 if hidden, and named predictions."""
    if isinstance(model, MIRL):
        preds, mask = model.predict_pixels(images)
    else:
        latent, mask, ids_restore = model.backbone(images)
        preds = [model.neck(latent, ids_restore)]
    made = [(f'prediction {i}', pred) for i, pred in enumerate(preds, start=1)]
    if len(preds) > 1 and model.head.mode == 'residual':
        made = []
        for i, joined in enumerate(add_residuals(preds), start=1):
            parts = dict(main=preds[i - 1], residual=preds[-i], sum=joined)
            made += [(f'{name} {i}', part) for name, part in parts.items()]
    return mask.unsqueeze(-1).to(images), made


def _to_pixels(preprocessor, images: Tensor) -> np.ndarray:
    """Convert model inputs to RGB pictures (B, H, W, 3), uint8."""
    if preprocessor._enable_normalize:
        images = images * preprocessor.std + preprocessor.mean
    if not preprocessor._channel_conversion:
        images = images.flip(1)
    return images.clamp(0, 255).permute(0, 2, 3, 1).byte().cpu().numpy()


def reconstruction_figure(model: MAE, inputs: Tensor) -> Figure:
    """Draw one row per image; see :func:`reconstructions`."""
    rows = [
        [Panel(picture, name) for name, picture in pictures.items()]
        for pictures in reconstructions(model, inputs)
    ]
    return picture_grid(rows)[0]

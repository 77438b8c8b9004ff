# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from torch import Tensor


def fit_temperature(logits: Tensor, labels: Tensor, tested: int) -> float:
    """What class scores are to be divided by, so that they are calibrated.

    C. Guo et al., `On Calibration of Modern Neural Networks
    <https://arxiv.org/abs/1706.04599>`_ (2017). Labels are smoothed as in
    Platt scaling, by one image that is right and one that is wrong, so that
    few images which are all right do not make it certain.

    Args:
        logits (Tensor): (..., N, K), NaN for images that were not tested.
        labels (Tensor): Classes of the images (N,).
        tested (int): How many independent images were tested.

    Returns:
        float: The temperature with the smallest cross-entropy.
    """
    labels = labels.expand(logits.shape[:-1])
    known = ~logits[..., 0].isnan()
    logits, labels = logits[known], labels[known]
    logits, smoothing = logits.double(), 1 / (tested + 2)
    log_temperature = logits.std().add(1e-12).log().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [log_temperature], max_iter=100, line_search_fn='strong_wolfe'
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        found = F.cross_entropy(
            logits / log_temperature.exp(), labels, label_smoothing=smoothing
        )
        found.backward()
        return found

    with torch.enable_grad():
        optimizer.step(loss)
    return float(log_temperature.detach().exp())

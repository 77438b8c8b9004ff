# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models that fit chooses from, with what was measured of them."""

from dataclasses import dataclass

from mmclca.models.fusion import with_layer_fusion
from mmclca.models.variants import with_reduction

from .architecture import VIT


@dataclass(frozen=True)
class Candidate:
    """A model of the first three quarters of a ViT's layers, or a whole one.

    Args:
        method (str, optional): The reducer; None: all tokens are kept.
        keep_rate (float): Of each of its stages; 1 without a reducer.
        img_size (int): Side of an image in pixels.
        accuracy (float, optional): Of the probe on new photographs, 0 to 1,
            measured as docs/results/few_photographs.md says; None: not
            measured.
        whole (bool): Whether the last output of all layers is read, by one
            linear layer. Defaults to False.
    """

    method: str | None
    keep_rate: float
    img_size: int
    accuracy: float | None
    whole: bool = False

    def apply(self, model: dict) -> dict:
        """The config of a plain classifier as this candidate's.

        Args:
            model (dict): Of an ``ImageClassifier``, which is not changed.
        """
        if self.whole:
            return model
        if self.method is not None:
            model = with_reduction(model, self.method, self.keep_rate)
        return with_layer_fusion(model)

    def words(self) -> str:
        """The candidate in words."""
        if self.whole:
            return f'the whole network, {self.img_size} px'
        if self.method is None:
            return f'all tokens, {self.img_size} px'
        return f'{self.method} keep rate {self.keep_rate}, {self.img_size} px'


# the most accurate first: DeiT-Tiny, ten draws of three images a class of
# leaf40_white, the other 322 are the test. A smaller image without reduction
# is as good there, and worse on images whose classes differ in details.
CANDIDATES = (
    Candidate('EViT', 0.5, 224, 0.965),
    Candidate('EViT', 0.5, 208, 0.963),
    Candidate('EViT', 0.5, 192, 0.952),
    Candidate('EViT', 0.5, 160, 0.942),
    Candidate('EViT', 0.5, 144, 0.916),
)
SIDES = tuple(candidate.img_size for candidate in CANDIDATES)


def candidates_of(backbone: dict) -> tuple[Candidate, ...]:
    """The models to choose from, the most accurate or largest one first.

    Args:
        backbone (dict): Settings of what the weights are of, see
            :func:`mmclca.fitting.architecture.backbone_of`. Those with an
            ``img_size`` take no other one.
    """
    if backbone['type'] == VIT:
        return CANDIDATES
    sides = (backbone['img_size'],) if 'img_size' in backbone else SIDES
    return tuple(Candidate(None, 1.0, side, None, True) for side in sides)

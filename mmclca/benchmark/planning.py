# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which models are measured beside which."""

from collections.abc import Sequence

from .candidates import (
    Candidate,
    Size,
    mmpretrain_vit,
    timm_vit,
    varied_candidates,
    with_fused,
    with_onnx,
)


def plan(
    configs: Sequence[Candidate],
    baseline: Candidate | None = None,
    archs: Sequence[str] = (),
    img_sizes: Sequence[int] = (),
    fuse: bool = False,
    onnx: bool = False,
    **chosen,
) -> dict[Candidate, list[Candidate]]:
    """Put models beside their baselines, in the order of measuring.

    Args:
        configs (Sequence[Candidate]): Models.
        baseline (Candidate, optional): What all are compared with. Defaults
            to None: timm's plain ViT of the size of each.
        archs (Sequence[str]): Further sizes of ViTs. Defaults to ().
        img_sizes (Sequence[int]): Sides of their images. Defaults to ().
        fuse (bool): Whether models are measured fused, too.
            Defaults to False.
        onnx (bool): Whether they are, in ONNX Runtime. Defaults to False.
        **chosen: What models of each size have, of :func:`varied_candidates`.

    Raises:
        ValueError: If there are two of a name.
    """
    if baseline:
        found = {baseline: [*varied_candidates(baseline, **chosen), *configs]}
    else:
        found = _by_size(configs, archs, img_sizes, chosen)
    for one, beside in found.items():
        if fuse:
            beside += with_fused([one, *beside])
        _check_names([one, *beside])
        if onnx:
            beside[:] = with_onnx([one, *beside])[1:]
    return found


def _by_size(configs, archs, img_sizes, chosen):
    """The models beside timm's of their size."""
    sizes = {
        Size.of_arch(arch, side): [] for arch in archs for side in img_sizes
    }
    for one in configs:
        sizes.setdefault(one.vit_size, []).append(one)
    return {
        timm_vit(size): [
            *varied_candidates(mmpretrain_vit(size), **chosen),
            *own,
        ]
        for size, own in sizes.items()
    }


def _check_names(rows: list[Candidate]) -> None:
    for i, one in enumerate(rows):
        if one in rows[:i]:
            raise ValueError(
                f'a row {one.name} {one.label} is there already; leave it '
                'out, or name the file differently'
            )

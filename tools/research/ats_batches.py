# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare ATS logits for an image alone and in a batch, float32.

``OMP_NUM_THREADS=1 python tools/research/ats_batches.py --comparisons 20000``
"""

import argparse
import json
import random

import torch

from mmclca.models import TokenReductionViT

BATCH = 8


def build(rng):
    """Build a small random network with ATS."""
    embed_dims, patches = rng.choice([16, 32, 64]), rng.choice([4, 6, 8, 14])
    model = TokenReductionViT(
        arch=dict(
            embed_dims=embed_dims,
            num_layers=4,
            num_heads=2,
            feedforward_channels=2 * embed_dims,
        ),
        img_size=8 * patches,
        patch_size=8,
        reducer=dict(
            type='mmclca.ATS', keep_rate=rng.choice([0.1, 0.25, 0.5, 0.7, 0.9])
        ),
        reduce_at=(1, 2),
        cache=rng.choice([None, dict(type='mmclca.CrossLayerCache')]),
    ).eval()
    scale = rng.choice([1, 2, 4])  # weight scale: flat to peaked attention
    for parameter in model.parameters():
        parameter.data.add_(0.05 * scale * torch.randn_like(parameter))
    return model, 8 * patches


def differences(model, images):
    """Return the largest relative logit difference per image."""
    together = model(images)[-1]
    alone = torch.cat([model(image[None])[-1] for image in images])
    scale = alone.abs().amax(dim=1)
    return ((together - alone).abs().amax(dim=1) / scale).tolist()


@torch.no_grad()
def compare(seed):
    """Compare the images for a seed, in float32 and in float64."""
    torch.manual_seed(seed)
    model, size = build(random.Random(seed))
    images = torch.randn(BATCH, 3, size, size)
    errors = differences(model, images)
    if max(errors) < 1e-3:
        return errors, None
    return errors, max(differences(model.double(), images.double()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--comparisons', type=int, default=20_000)
    total = parser.parse_args().comparisons
    largest, ties = 0, []
    for seed in range(total // BATCH):
        errors, exact = compare(seed)
        if exact is None:
            largest = max([largest, *errors])
        else:
            count = sum(value >= 1e-3 for value in errors)
            row = dict(seed=seed, images=count, float32=max(errors))
            ties.append(dict(row, float64=exact))
            print(json.dumps(ties[-1]), flush=True)
    images = sum(tie['images'] for tie in ties)
    print(f'Difference above 1e-3: {images} of {total} images')
    print(f'Largest difference of the other images: {largest:.1e}')


if __name__ == '__main__':
    main()

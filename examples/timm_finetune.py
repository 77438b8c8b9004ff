# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fine-tune DeiT-Tiny of timm with half of the tokens on a folder of photos.

python examples/timm_finetune.py photos/
"""

import argparse

import timm
import torch
import torch.nn.functional as F
from timm.data import create_transform, resolve_model_data_config
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

import mmclca


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('photos', help='one folder per class')
    parser.add_argument('--model', default='deit_tiny_patch16_224')
    parser.add_argument('--random-weights', action='store_true')
    parser.add_argument('--epochs', type=int, default=10)
    args = parser.parse_args()
    photos = ImageFolder(args.photos)
    model = timm.create_model(
        args.model,
        pretrained=not args.random_weights,
        num_classes=len(photos.classes),
    )
    config = resolve_model_data_config(model)
    photos.transform = create_transform(**config, is_training=True)
    model = mmclca.reduce_tokens(model, 'ATC', keep_rate=0.5).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = DataLoader(photos, batch_size=16, shuffle=True)
    for epoch in range(args.epochs):
        for images, labels in batches:
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f'epoch {epoch + 1}: loss {loss.item():.3f}')
    torch.save(model.state_dict(), 'finetuned.pth')


if __name__ == '__main__':
    main()

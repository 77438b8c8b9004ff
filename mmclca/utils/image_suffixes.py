# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""File name extensions of images, without any import."""

IMAGE_SUFFIXES = (
    '.png',
    '.jpg',
    '.jpeg',
    '.jpe',
    '.jfif',
    '.bmp',
    '.pgm',
    '.ppm',
    '.tif',
    '.tiff',
    '.webp',
)
PHOTO_SUFFIXES = (*IMAGE_SUFFIXES, '.gif', '.avif', '.heic', '.heif')

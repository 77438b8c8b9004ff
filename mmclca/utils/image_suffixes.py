# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The endings of image files; a module of its own that imports nothing."""

IMAGE_SUFFIXES = (
    *('.png', '.jpg', '.jpeg', '.jpe', '.jfif', '.bmp', '.pgm', '.ppm'),
    *('.tif', '.tiff', '.webp'),
)
PHOTOGRAPH_SUFFIXES = (*IMAGE_SUFFIXES, '.gif', '.avif', '.heic', '.heif')

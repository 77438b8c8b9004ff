# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Schedules of ViT-Tiny within the latencies of DiffRate 0.5 at these image
# sizes. tools/sweep.py does not read this file; `python
# tools/research/pages.py schedules` measures missing results.
# Results: docs/results/schedules.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# for datasets and weights.
budgets = (192, 160)
# measured on some datasets only
incomplete = 224
sizes = (224, 208, 192, 176, 160, 144, 128)

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Three photos per class on four datasets that had no part in any choice: fit
# and linear classifiers on the full network. tools/sweep.py does not read
# this file.
# Results: docs/results/fresh_datasets.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# for datasets and weights.
datasets = ('chilli4', 'dates9', 'medleaf5', 'ricegrain14')
# of the full ViT
rivals = ('CLS, last layer, logistic', 'CLS and average, all layers, ridge')

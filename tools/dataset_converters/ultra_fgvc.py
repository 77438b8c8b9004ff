# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fetch, check and convert the Ultra-FGVC data sets.

python tools/dataset_converters/ultra_fgvc.py download cotton80 --to data
python tools/dataset_converters/ultra_fgvc.py check data
python tools/dataset_converters/ultra_fgvc.py convert data \
    --dataset cotton80 --layout released --to unpacked
"""

from mmclca.cli import run_command

if __name__ == '__main__':
    run_command('ultra_fgvc')

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Analyze a training log with MMPretrain's tool: ``python
tools/analysis_tools/analyze_logs.py plot_curve|cal_train_time LOGS``."""

from mmclca import cli

main = cli.upstream('analysis_tools/analyze_logs.py')

if __name__ == '__main__':
    cli.run(main)

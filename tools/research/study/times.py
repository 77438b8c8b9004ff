# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Milliseconds per photo in ONNX Runtime, at batch sizes 1 and 8."""

from functools import cache

from frozen import DEPTH
from tables import kept, read

from mmclca.benchmark.candidates import ONNX, Candidate
from mmclca.benchmark.steps import Setting, interleaved_seconds, make_step

from .networks import GRID, Network
from .rows import NONE
from .titles import VITS

TIMES = 'few_tokens_times'
ROUNDS = {1: 20, 8: 8}  # by batch size
ARCHITECTURE = ['architecture', 'method', 'keep_rate', 'img_size', 'depth']
VIT = 'vit_tiny'  # both ViTs have its architecture


def measure_times(network, depth):
    """Return a row with milliseconds.

    The full ViT is timed in turn with it, and both times are stored: their
    ratio depends less on other processes and the clock rate.
    """
    row = {}
    for batch, rounds in ROUNDS.items():
        steps = dict(ms=export(network, depth, batch), full=export_full(batch))
        seconds = interleaved_seconds(steps, Setting(batch=batch), rounds)
        for name, values in seconds.items():
            row[f'{name}_{batch}'] = round(1e3 * min(values) / batch, 3)
    return [row]


def export(network, depth, batch):
    """Return a network's pass in ONNX Runtime."""
    model = network.get_config(depth).model
    candidate = Candidate(network.name, model, runtime=ONNX)
    return make_step(candidate, Setting(batch=batch))


@cache
def export_full(batch):
    """Return the pass of the full ViT, exported once per batch size."""
    return export(Network(GRID['vits'][0]), DEPTH, batch)


def identify_architecture(network, depth):
    """Return the columns that identify what is timed."""
    name = VIT if network.is_vit else network.network
    method = network.method or NONE
    values = name, method, network.keep_rate, network.img_size, depth
    return dict(zip(ARCHITECTURE, values, strict=True))


def list_timed(networks):
    """List columns and networks to time, each architecture once."""
    pairs = [(x, DEPTH) for x in networks]
    pairs += [(Network(GRID['vits'][0]), depth) for depth in GRID['depths']]
    pairs = [(x, depth) for x, depth in pairs if is_timed(x)]
    return [(identify_architecture(*pair), pair) for pair in pairs]


def is_timed(network):
    """Return whether a network is timed: a single ViT is enough."""
    return not network.is_vit or network.network == VIT


def time_networks(networks):
    """Return all times; measure missing ones."""
    return kept(TIMES, measure_times, list_timed(networks))


def add_times(table):
    """Return the rows with their times, where measured.

    Each is the ratio to the full ViT timed in turn with it, in units of the
    median full ViT: clock rates differ between hours.
    """
    columns = [f'ms_{batch}' for batch in ROUNDS]
    table = table.drop(columns=columns, errors='ignore')
    times = read(TIMES)
    if times.empty:
        return table.assign(**dict.fromkeys(columns))
    for batch in ROUNDS:
        full = times[f'full_{batch}']
        ratio = times[f'ms_{batch}'] / full
        times[f'ms_{batch}'] = (ratio * full.median()).round(3)
    keys = table.assign(
        architecture=table.network.where(~table.network.isin(VITS), VIT)
    )
    merged = keys.merge(times[[*ARCHITECTURE, *columns]], 'left', ARCHITECTURE)
    return merged.drop(columns='architecture')

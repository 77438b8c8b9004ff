# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts of a fit's record about the cost of models.

Screen and report show their descriptions.
"""

from dataclasses import dataclass

from mmclca.errors import Error
from mmclca.languages import text

from .budget import COST_UNITS
from .wording import digits, file_name, percent


@dataclass(frozen=True)
class CostFigure:
    """One cost per photo, such as the latency.

    Args:
        title (str): Name.
        model (str): Model cost, with its unit.
        full (str): Cost of the full ViT.
        ratio (float): Model cost relative to the full ViT.
        runtime (str): Runtime it was measured in. Defaults to '':
            counted.
    """

    title: str
    model: str
    full: str
    ratio: float
    runtime: str = ''

    def describe(self, is_vit: bool) -> str:
        """Describe the cost in one line, for a ViT with the full one.

        Args:
            is_vit (bool): Whether the network is a ViT.
        """
        cost = self.model
        if self.runtime:
            cost = f'{cost} per photo, {self.runtime}'
        return f'{cost} (full ViT: {self.full})' if is_vit else cost


@dataclass(frozen=True)
class PhotoCost:
    """Cost per photo: model and (``_full``) full ViT.

    Args:
        gmacs (float): Multiply-accumulates in 1e9.
        gmacs_full (float): The same of the full ViT.
        params (int): Number of parameters.
        ms (float, optional): Latency in milliseconds. Defaults to None: not
            measured yet, like the fields below.
        ms_full (float, optional): The same of the full ViT.
        runtime (str, optional): Runtime of the measurement.
        busy (str): Note on a busy machine. Defaults to ''.
        machine (str, optional): Name of the machine.
    """

    gmacs: float
    gmacs_full: float
    params: int
    ms: float | None = None
    ms_full: float | None = None
    runtime: str | None = None
    busy: str = ''
    machine: str | None = None

    def __post_init__(self):
        figures = [self.gmacs, self.gmacs_full, self.params]
        if self.has_latency:
            figures += [self.ms or 0, self.ms_full or 0]
        if min(figures) <= 0:
            raise Error(f'cost has a figure that is not above 0: {self}')

    @property
    def has_latency(self) -> bool:
        """Whether the latency was measured."""
        return self.runtime is not None

    def describe(self) -> list[CostFigure]:
        """Describe the multiply-accumulates and, if measured, the latency."""
        figures = [
            CostFigure(
                text('model.computation'),
                f'{digits(self.gmacs)} GMACs',
                f'{digits(self.gmacs_full)} GMACs',
                self.gmacs / self.gmacs_full,
            )
        ]
        if self.ms and self.ms_full and self.runtime is not None:
            latency = CostFigure(
                text('model.latency'),
                f'{digits(self.ms)} ms',
                f'{digits(self.ms_full)} ms',
                self.ms / self.ms_full,
                self.runtime,
            )
            figures.append(latency)
        return figures


@dataclass(frozen=True)
class ComparedWeights:
    """Compared weights; figures are None if over the budget.

    Args:
        source (str): File or ``timm://NAME``.
        model (str, optional): Description of the model.
        gmacs (float, optional): Multiply-accumulates in 1e9.
        ms (float, optional): Latency, if the budget is one.
        accuracy (float, optional): Cross-validated accuracy.
    """

    source: str
    model: str | None = None
    gmacs: float | None = None
    ms: float | None = None
    accuracy: float | None = None

    def __post_init__(self):
        costs = (self.gmacs, self.ms)
        if any(cost is not None and cost <= 0 for cost in costs):
            raise Error(f'considered has a cost that is not above 0: {self}')

    def describe(self) -> str:
        """Describe the file, the model, its cost and its accuracy."""
        source = file_name(self.source)
        costs = [
            f'{digits(cost)} {unit}'
            for cost, unit in zip(
                (self.gmacs, self.ms), COST_UNITS.values(), strict=True
            )
            if cost
        ]
        if self.model is None or not costs:
            return text('model.over_budget', source=source)
        figures = ', '.join([self.model, *costs])
        return text(
            'model.compared',
            source=source,
            figures=figures,
            share=percent(self.accuracy),
        )

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Second tab of the page: token-reduction methods for the same photo."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import gradio as gr
import numpy as np

from mmclca.fitting.report_patches import LABELS
from mmclca.languages import text
from mmclca.registry import MODELS
from mmclca.visualization.kept_patches import (
    MIXED,
    SWATCHES,
    KeptPatches,
    legend,
)
from mmclca.visualization.painting import KEPT, MERGED

from .handlers import bind_model
from .language import label
from .plant import SeenPlant
from .prediction import classify, show_kept_patches
from .variants import NONE, MeasuredCost, Variants

COSTS = ['', 'GMACs', 'ms']  # in all languages
# legend; white and gray stand for swatches without a single color
FILLS = {swatch: swatch.fill for swatch in SWATCHES.values()} | {
    SWATCHES[KEPT]: '#ffffff',
    SWATCHES[MERGED]: '#dddddd',
    MIXED: '#ffa500',
}
COLORS = {LABELS[swatch]: fill for swatch, fill in FILLS.items()}


@dataclass(frozen=True)
class Exploration:
    """Results of a method for a photo.

    Args:
        scores (dict[str, float]): Five best scores by class, best first.
        pictures (list[tuple[np.ndarray, str]]): The photo and its patches
            after each stage, with captions.
        legend (dict[str, str]): Texts of the legend, by their keys.
        costs (list[MeasuredCost] | None): Cost of the method and of the full
            model; None until it is measured.
    """

    scores: dict[str, float]
    pictures: list[tuple[np.ndarray, str]]
    legend: dict[str, str]
    costs: list[MeasuredCost] | None = None


def explore(
    seen: SeenPlant | None, method: str, keep_rate: float
) -> Iterator[Exploration | None]:
    """Yield the results, first without the cost, which takes longer.

    None without a photo.
    """
    if seen is None:
        yield None
        return
    variants = seen.model.variants
    variant = variants.select(method, keep_rate)
    inferencer = variants.at(variant)
    prediction = classify(inferencer, seen.packed)
    patches = show_kept_patches(inferencer, seen.packed)
    exploration = Exploration(
        prediction.scores,
        draw_stages(patches),
        {LABELS[x]: text(LABELS[x]) for x in legend([patches])},
    )
    yield exploration
    costs = variants.compare_costs(variant, seen.packed, prediction)
    yield replace(exploration, costs=costs)


def draw_stages(patches: KeptPatches) -> list[tuple[np.ndarray, str]]:
    """Return the photo and its patches after each stage, with captions."""
    rows, columns = patches.hw
    whole = text('page.explore.patches', number=rows * columns)
    pictures = [(patches.image, whole)]
    for number, stage in enumerate(patches.stages, start=1):
        kept = text('page.explore.mixed')
        if not stage.mixed:
            share = f'{stage.kept:.0%}'
            kept = text(
                'page.explore.kept', share=share, kept_as=stage.kept_as
            )
        caption = text(
            'page.explore.stage',
            number=number,
            tokens=len(stage.weights),
            kept=kept,
        )
        pictures.append((stage.picture, caption))
    return pictures


@dataclass(frozen=True)
class ExploreComponents:
    """Components of the tab."""

    method: gr.Dropdown
    keep_rate: gr.Slider
    classes: gr.Label
    pictures: gr.Gallery
    legend: gr.HighlightedText
    costs: gr.Dataframe

    @property
    def results(self) -> list:
        """Components with results."""
        return [self.classes, self.pictures, self.legend, self.costs]

    def show_methods(
        self, seen: SeenPlant | None, method: str | None, keep_rate: float
    ) -> dict:
        """Return method choice and slider for a photo and its model.

        A method that the user chose stays if the model has it.
        """
        if seen is None:
            # Gradio refuses an empty dictionary
            return {self.method: gr.skip(), self.keep_rate: gr.skip()}
        variants = seen.model.variants
        start_rate = variants.trained_rate
        if method not in variants.methods:
            method, keep_rate = variants.methods[0], start_rate
        choices = [
            (label_method(name, variants), name) for name in variants.methods
        ]
        is_fixed = variants.has_fixed_rate(method)
        return {
            self.method: gr.Dropdown(choices, value=method),
            self.keep_rate: gr.Slider(
                min(0.05, start_rate),
                value=start_rate if is_fixed else keep_rate,
                interactive=not is_fixed,
                info=describe_rate(start_rate if is_fixed else None),
            ),
        }

    def show(self, exploration: Exploration | None) -> dict:
        """Return the values for results, by component."""
        if exploration is None:
            return dict.fromkeys(self.results)
        if exploration.costs is not None:
            table = [
                [
                    cost.title,
                    round_to_3(cost.gmacs),
                    round_to_3(cost.milliseconds),
                ]
                for cost in exploration.costs
            ]
            return {self.costs: table}
        return {
            self.classes: exploration.scores,
            self.pictures: exploration.pictures,
            # Gradio colors a text by its category
            self.legend: [(x, key) for key, x in exploration.legend.items()],
            self.costs: None,
        }


def describe_rate(fixed: float | None) -> str:
    """Describe the keep rate, or the only one of a method."""
    if fixed is None:
        return text('page.explore.rate')
    return text('page.explore.fixed', rate=f'{fixed:g}')


def label_method(method: str, variants: Variants) -> str:
    """Label a method with its summary, and the one of the training as such."""
    reducer = MODELS.get(method)  # None without a reducer
    title = text('page.explore.none') if method == NONE else method
    if reducer and reducer.summary:
        title = f'{title}: {reducer.summary}'
    if method == variants.trained_method:
        title = text('page.explore.trained', method=title)
    return title


def round_to_3(number: float) -> float:
    """Round to three significant digits."""
    return float(f'{number:.3g}')


def build_explore(seen: gr.State, tab: gr.Tab) -> ExploreComponents:
    """Create the components in the current tab, and bind their events.

    ``seen`` is the :class:`.SeenPlant` of the first tab, None without a
    photo. Nothing is computed before the tab is selected.
    """
    parts = _create_components()

    def run(
        photo: SeenPlant | None, method: str, keep_rate: float
    ) -> Iterator[dict]:
        for exploration in explore(photo, method, keep_rate):
            yield parts.show(exploration)

    inputs = [seen, parts.method, parts.keep_rate]
    for event in (tab.select, parts.method.input):
        methods = bind_model(
            event, parts.show_methods, inputs, [parts.method, parts.keep_rate]
        )
        bind_model(methods.then, run, inputs, parts.results)
    bind_model(parts.keep_rate.input, run, inputs, parts.results)
    return parts


def _create_components() -> ExploreComponents:
    """Create the components in the current tab."""
    gr.Markdown(label('label.explore.introduction'))
    with gr.Row():
        with gr.Column(scale=4, min_width=320):
            method = gr.Dropdown(
                [],
                label=label('label.explore.method'),
                filterable=False,
                elem_id='method',
            )
            keep_rate = gr.Slider(
                0.05,
                1,
                0.5,
                step=0.01,
                label=label('label.explore.keep_rate'),
                buttons=[],
                elem_id='keep_rate',
            )
            classes = gr.Label(
                label=label('label.explore.classes'), elem_id='explored'
            )
        with gr.Column(scale=7, min_width=320):
            gr.Markdown(label('label.explore.patches'))
            pictures = gr.Gallery(
                show_label=False, format='png', buttons=[], elem_id='survivors'
            )
            swatches = gr.HighlightedText(
                color_map=COLORS,
                show_inline_category=False,
                show_label=False,
                elem_id='legend',
            )
            gr.Markdown(label('label.explore.cost'))
            costs = gr.Dataframe(headers=COSTS, buttons=[], elem_id='costs')
    return ExploreComponents(
        method, keep_rate, classes, pictures, swatches, costs
    )

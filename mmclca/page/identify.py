# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""First tab of the page: name a photo, and show similar training photos.

The texts are written for readers without knowledge of networks.
:mod:`.identify_layout` shows them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from mmclca.errors import Error
from mmclca.languages import text

from .handlers import shown_problems
from .loaded_model import LoadedModel, ModelVersion, SimilarPhoto, load_version
from .photos import make_preview, read_photo
from .plant import PlantAnswer, SeenPlant
from .uploads import resolve_upload


@dataclass(frozen=True)
class Identification:
    """Values of the tab after a photo.

    Args:
        preview (Image.Image): The photo.
        plant (SeenPlant): The photo and earlier ones of the same plant.
        answer (PlantAnswer): Their classes.
        similar (list[SimilarPhoto] | None): Training photos similar to the
            photo; None until they are found.
    """

    preview: Image.Image
    plant: SeenPlant
    answer: PlantAnswer
    similar: list[SimilarPhoto] | None = None


class IdentifyTab:
    """Event handlers for the tab, with a model unless each visitor chooses it.

    They read photos in ``uploads`` only.
    """

    def __init__(self, uploads: str | Path, model: LoadedModel | None = None):
        self.uploads, self.model = Path(uploads).resolve(), model

    def find_model(self, version: ModelVersion | None) -> LoadedModel | None:
        """Return the page's model, or the one chosen in the form."""
        return self.model or (load_version(version) if version else None)

    def require_model(self, version: ModelVersion | None) -> LoadedModel:
        """Return the model; raise an ``Error`` without any."""
        model = self.find_model(version)
        if model is None:
            raise Error(text('page.no_model'))
        return model

    def identify(
        self,
        upload: object,
        version: ModelVersion | None = None,
        among: Sequence[str] = (),
    ) -> Iterator[Identification | None]:
        """Yield the answer to a photo, first without similar photos.

        If the photo cannot be used, warn and yield None.

        Args:
            upload (object): Message from the browser.
            version (ModelVersion, optional): Chosen model. Defaults to None.
            among (Sequence[str]): Classes that can occur. Defaults to (): all.
        """
        photo = None
        with shown_problems():
            plant = SeenPlant(self.require_model(version), {})
            photo = self._identify(upload, plant, among)
        yield photo
        if photo is not None:
            yield self._find_similar(photo)

    def add_photo(
        self,
        upload: object,
        plant: SeenPlant | None,
        among: Sequence[str] = (),
    ) -> Iterator[Identification]:
        """Yield the answer to a further photo of a plant as :meth:`identify`.

        If the photo cannot be used, warn and yield nothing.
        """
        photo = None
        with shown_problems():
            if plant is None:  # removed in the meantime
                raise Error(text('page.no_first_photo'))
            photo = self._identify(upload, plant, among)
        if photo is not None:
            yield photo
            yield self._find_similar(photo)

    def _identify(
        self, upload: object, plant: SeenPlant, among: Sequence[str]
    ) -> Identification:
        if not isinstance(among, list):  # of a forged request
            among = []
        image = read_photo(resolve_upload(upload, self.uploads))
        packed = plant.model.inferencer.prepare(image)
        if isinstance(packed, str):
            raise Error(text('page.unusable', problem=packed))
        plant = plant.add(packed)
        preview = make_preview(Image.fromarray(image[..., ::-1]))
        return Identification(preview, plant, plant.answer(among))

    def _find_similar(self, photo: Identification) -> Identification:
        plant = photo.plant
        similar = plant.model.find_similar(plant.packed['inputs'])
        return replace(photo, similar=similar)

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""When and with which camera photos were taken, unasked."""

from dataclasses import dataclass

from PIL import ExifTags, Image

from .capture_dates import parse_exif_date

# when the photo was taken, not when a program saved it
_TIMES = ExifTags.Base.DateTimeOriginal, ExifTags.Base.DateTimeDigitized


@dataclass(frozen=True)
class Capture:
    """Day, camera and folder of a photo, '' if unknown.

    Args:
        day (str): Day as in '2023-07-14'. Defaults to ''.
        camera (str): Maker and model. Defaults to ''.
        folder (str): Folders below that of the class. Defaults to ''.
    """

    day: str = ''
    camera: str = ''
    folder: str = ''


def read_exif(image: Image.Image) -> Capture:
    """Read day and camera from the EXIF data of an opened image."""
    try:
        exif = image.getexif()
        details = exif.get_ifd(ExifTags.IFD.Exif)
    except Exception:  # damaged data raise many types
        return Capture()
    days = filter(None, (parse_exif_date(details.get(x)) for x in _TIMES))
    maker, model = (
        ' '.join(str(exif.get(tag, '')).replace('\0', ' ').split())
        for tag in (ExifTags.Base.Make, ExifTags.Base.Model)
    )
    is_complete = model.lower().startswith(maker.lower())
    camera = model if is_complete else f'{maker} {model}'.strip()
    return Capture(str(next(days, '')), camera)

"""The check, before anything is sent, that a file is a recording that the model takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.uploads.mpeg_audio import mpeg_seconds
from deskwire.engine.uploads.upload import Upload
from deskwire.engine.voice.wave import wave_seconds

FORMATS: Final[Mapping[str, str]] = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""Media types, with their names on the wire: OpenAI's `input_audio` takes these two."""

FIELD: Final = "/audioUrl"


def format_of(upload: Upload, limit: int) -> str:
    """Return the format's name on the wire. Raises Invalid for another type, or more than `limit` bytes."""
    form = FORMATS.get(upload.type)
    if form is None:
        types = " or ".join(FORMATS)
        raise Invalid(Problem(FIELD, "audio_format", f"The file is {upload.type}; it must be {types}."))
    if upload.size > limit:
        message = f"The recording has {upload.size:,} bytes; at most {limit:,} are taken."
        raise Invalid(Problem(FIELD, "audio_too_long", message))
    return form


def check_length(content: bytes, form: str, limit_s: float) -> None:
    """Check a recording by the sound that it holds, whatever its header says.

    Raises Invalid if it can't be read, or lasts longer than `limit_s` seconds.
    """
    seconds = wave_seconds(content) if form == "wav" else mpeg_seconds(content)
    if seconds is None:
        raise Invalid(Problem(FIELD, "audio_unreadable", "The file can't be read as a recording."))
    if seconds > limit_s:
        message = f"The recording lasts {seconds:,.0f} s; at most {limit_s:g} s are taken."
        raise Invalid(Problem(FIELD, "audio_too_long", message))
